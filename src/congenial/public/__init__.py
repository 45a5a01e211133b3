"""What is published exactly, and what that leaves to protect."""
