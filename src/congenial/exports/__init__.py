"""A bundle in the formats that other tools read: one file of this room for each format."""
