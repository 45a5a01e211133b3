"""Where records are counted: DuckDB, PostgreSQL, Spark, large Parquet files."""
