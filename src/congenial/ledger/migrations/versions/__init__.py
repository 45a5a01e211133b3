"""One file per version; a published one is never edited."""
