"""From a plan file to a published folder."""
