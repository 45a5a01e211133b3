"""How plans of records from tables begin: a file of people and its schema."""

from __future__ import annotations

PEOPLE = """
[data]
source = "people.csv"
unit = "id"

[schema]
sex = { levels = ["f", "m"] }
region = { levels = ["n", "s", "w"] }
income = { edges = [0, 1, 20000, 60000, 200000] }
job = { levels = ["a", "b", "c", "d"] }
"""
