"""Constants of calibration changed by a fifth, one at a time: a test must notice each of them."""
