"""Where a ledger is kept: a SQLite file, or a schema of a PostgreSQL database."""
