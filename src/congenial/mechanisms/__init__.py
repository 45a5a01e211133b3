"""What is released: one family of mechanisms per file, all under one protocol."""
