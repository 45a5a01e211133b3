"""Attempts to break the promises."""
