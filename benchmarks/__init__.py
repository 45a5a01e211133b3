"""Ratios against the papers' algorithms and against peers, measured in one run."""
