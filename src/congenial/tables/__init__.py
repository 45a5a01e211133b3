"""Several tables of one population at once: which, how precisely, and what they say together."""
