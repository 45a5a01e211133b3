"""The command line. Commands import what they need when they run, so that help is immediate."""

from __future__ import annotations

from congenial.cli.program import app, main

__all__ = ["app", "main"]
