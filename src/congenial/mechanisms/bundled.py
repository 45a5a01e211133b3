"""What a bundle needs of a release, whatever kind it is."""

from __future__ import annotations

from typing import ClassVar, Protocol

from congenial.data.schema import Schema
from congenial.figures.invariants import Invariants
from congenial.privacy.descriptions import AnyDescription
from congenial.privacy.guarantee import Guarantee


class Bundled(Protocol):
    """What a bundle needs of a release, whatever it holds."""

    kind: ClassVar[str]

    @property
    def contents(self) -> tuple[tuple[str, str], ...]:
        """Its files, and what they hold."""

    @property
    def usage(self) -> tuple[str, ...]:
        """How to begin, as lines of code."""

    @property
    def name(self) -> str:
        """What the curator calls it."""

    @property
    def description(self) -> AnyDescription:
        """The law of what was drawn."""

    @property
    def guarantee(self) -> Guarantee:
        """What is promised."""

    @property
    def randomness(self) -> str:
        """Where the noise came from."""

    @property
    def publishable(self) -> bool:
        """Whether that was the system's generator."""

    @property
    def schema(self) -> Schema:
        """What a record is."""

    @property
    def published(self) -> Invariants:
        """The figures published exactly."""

    def payload(self) -> dict[str, bytes]:
        """The files that hold what was released."""
