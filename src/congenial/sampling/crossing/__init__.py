"""Integers given sums that cross: atom totals tied by equations."""
