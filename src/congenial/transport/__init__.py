"""How far apart two laws are."""
