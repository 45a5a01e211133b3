"""What a draw gives away beside its value: low-order bits, time, and what a fault leaves."""
