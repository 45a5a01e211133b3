"""Any estimate from a release: the language, the quantities, and the methods of their intervals."""
