"""How a desk is set up: its folder, its address and its limits."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path

from congenial.errors import PlanError

LARGEST_REQUEST = 2 * 2**20  # bytes
SLOWEST_REQUEST = 15.0  # seconds for a request to arrive
SLOWEST_ANSWER = 90.0  # seconds for an answer to a form
SLOWEST_WORK = 900.0  # seconds for the work behind a page
PATIENCE = 2.0  # seconds after which a page shows how far its work is
AT_ONCE = 4  # pages that are worked out at the same time


@dataclass(frozen=True)
class DeskSettings:
    """One desk, of the person who started it: a link with a token that works once opens it."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = 0
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    def __post_init__(self) -> None:
        if not self.folder.is_dir():
            raise PlanError(f"there is no folder '{self.folder}'.", remedy="Give one with plans.")
        if self.host not in ("127.0.0.1", "::1"):
            raise PlanError(
                f"a desk listens on this machine only, not on '{self.host}'.",
                remedy="Use 127.0.0.1 or ::1. Colleagues run a desk of their own.",
            )

    def origins(self, port: int) -> tuple[str, ...]:
        """The addresses that a browser may have it under."""
        return (f"http://127.0.0.1:{port}", f"http://localhost:{port}", f"http://[::1]:{port}")
