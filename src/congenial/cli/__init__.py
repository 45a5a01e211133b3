"""The command line. The file of a command is loaded when the command is asked for."""

from __future__ import annotations

from congenial.cli.program import app, main

__all__ = ["app", "main"]
