"""Integers given sums that nest: messages up a tree of sums, draws down it."""
