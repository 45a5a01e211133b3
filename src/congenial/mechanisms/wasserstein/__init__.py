"""Releases calibrated to how far one secret moves the law of a statistic, given public figures."""
