"""How a desk is set up: its folder, who may come in and by which door, and its limits."""

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
SHORTEST_SECRET = 24  # characters


@dataclass(frozen=True)
class DeskSettings:
    """One desk.

    Without `user_header` it is for the person who started it: a link with a one-time token opens
    it. With `user_header` a reverse proxy says who comes, in that header, and proves itself by
    `proxy_secret` in the header `Congenial-Proxy-Secret`; `public_origin` is the address by which
    browsers know it, such as "https://desk.example".
    """

    folder: Path
    host: str = "127.0.0.1"
    port: int = 0
    user_header: str = ""
    proxy_secret: str = field(default="", repr=False)
    public_origin: str = ""
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    def __post_init__(self) -> None:
        if not self.folder.is_dir():
            raise PlanError(f"there is no folder '{self.folder}'.", remedy="Give one with plans.")
        if self.user_header and len(self.proxy_secret) < SHORTEST_SECRET:
            raise PlanError(
                "whoever reaches the desk could claim any name: the proxy must prove itself.",
                remedy=f"Give --proxy-secret-file with {SHORTEST_SECRET} characters or more.",
            )
        if self.user_header and not self.public_origin.startswith("https://"):
            raise PlanError(
                f"public_origin = '{self.public_origin}' is not an https address.",
                remedy="Give the proxy's name with --origin, such as desk.example.",
            )
        if not self.user_header and self.host not in ("127.0.0.1", "::1"):
            raise PlanError(
                f"a desk for one person listens on this machine only, not on '{self.host}'.",
                remedy="Leave --listen out, or set up a proxy with --user-header.",
            )

    @property
    def for_a_team(self) -> bool:
        """Whether a proxy says who comes."""
        return bool(self.user_header)

    def origins(self, port: int) -> tuple[str, ...]:
        """The addresses that a browser may have it under."""
        if self.for_a_team:
            return (self.public_origin.rstrip("/"),)
        return (f"http://127.0.0.1:{port}", f"http://localhost:{port}", f"http://[::1]:{port}")
