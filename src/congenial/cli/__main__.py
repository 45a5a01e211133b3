"""`python -m congenial.cli` is the `congenial` command."""

from __future__ import annotations

from congenial.cli import main

main()
