"""Nonnegative tables by post-processing: the nearest table that keeps every figure."""
