"""Where records are counted: DuckDB, PostgreSQL, Spark."""
