"""What is spent: one ledger per population."""
