"""A kind of release whose steps stand in modules of its own, each loaded when it is called for.

`kinds/X.py` then has what every command needs (the keys of a section), `X_offer.py` what builds,
checks and offers, `X_words.py` what tells people: a command loads what it uses and no more.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from congenial.kinds.kind import Checked, Document, Kind, Offer, S, Screen, Setting, Tell

if TYPE_CHECKING:
    from congenial.figures.invariants import Invariants
    from congenial.report.accuracy import Want
    from congenial.sampling.randomness import Randomness


class Offers(Protocol):
    """A module `X_offer`: what would draw, what it promises, and a release that is ready."""

    def build(self, plan: Setting, section: Any, figures: Invariants, /) -> Any:
        """What would draw, from public inputs."""

    def check(self, plan: Setting, section: Any, figures: Invariants, /) -> Checked:
        """What it promises."""

    def offer(
        self,
        plan: Setting,
        section: Any,
        built: Any,
        figures: Invariants,
        randomness: Randomness | None,
        progress: Tell,
        /,
    ) -> AbstractContextManager[Offer]:
        """A release that is ready."""


class Words(Protocol):
    """A module `X_words`: a check as plain data, and the same for people."""

    def examine(self, checked: Any, /) -> Document:
        """A check as plain data."""

    def show(self, document: Document, screen: Screen, /) -> None:
        """The same for people."""


class LoadedKind(Kind[S]):
    """A kind that names its modules; one that is asked about sums takes the wish itself."""

    @abstractmethod
    def offers(self) -> Offers:
        """The module that builds, checks and offers."""

    @abstractmethod
    def words(self) -> Words:
        """The module that tells people."""

    def build(self, plan: Setting, section: S, figures: Invariants) -> Any:
        """What would draw, over the databases that agree with the figures."""
        return self.offers().build(plan, section, figures)

    def check(
        self,
        plan: Setting,
        section: S,
        figures: Invariants,
        wish: Want | None = None,  # noqa: ARG002 - sums are not asked about
    ) -> Checked:
        """What it promises, from public parameters alone."""
        return self.offers().check(plan, section, figures)

    def offer(  # type: ignore[override]  # the module makes it
        self,
        plan: Setting,
        section: S,
        built: Any,
        figures: Invariants,
        randomness: Randomness | None,
        progress: Tell,
    ) -> AbstractContextManager[Offer]:
        """Read and check the data; what is left is to draw."""
        return self.offers().offer(plan, section, built, figures, randomness, progress)

    def examine(self, checked: Any) -> Document:
        """What the kind's words say of a check."""
        return self.words().examine(checked)

    def show(self, document: Document, screen: Screen, want: str | None = None) -> None:  # noqa: ARG002
        """The same for people."""
        self.words().show(document, screen)
