"""One change of one constant, and the test that must fail then.

Every change is by about 20 %, and mostly in the direction that promises too much: too little noise,
or a loss that is counted too small. Changes that promise too little are here where a guarantee is
claimed to be tight.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """A text in a file of src/congenial that occurs once, what replaces it, and a test by its file
    and an expression for `-k`.
    """

    file: str
    old: str
    new: str
    tests: str
    select: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.new[:60]}"
