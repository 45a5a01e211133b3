"""Counts around counts under a prior base measure."""
