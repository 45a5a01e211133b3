"""What leaves: markers planted in microdata are looked for in everything a run leaves behind."""
