"""K-norm noise: the gauge of the hull of differences, and noise of that norm."""
