"""Numbers that splitting and its compiled loops share, apart from the loops: no compiler is loaded
to know them.
"""

from __future__ import annotations

WHOLE = 62  # a row of integer weights fills at most 2^62
RARE = 1 << 41  # an outcome with a smaller weight is checked on its own
OUT_OF_WORDS, DONE = 0, 2
