"""The kinds of release, one per file."""
