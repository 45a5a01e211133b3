"""Hostile input: plans, conditions, bundles and data that nobody meant well with."""
