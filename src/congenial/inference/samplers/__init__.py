"""How posteriors are drawn."""
