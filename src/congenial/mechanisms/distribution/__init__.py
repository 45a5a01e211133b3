"""Distribution privacy: publish statistics without revealing what the whole dataset is like."""
