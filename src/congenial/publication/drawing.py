"""From a release that is ready to a bundle that is out, whatever kind of release it is.

Order, so that a crash never under-counts: reserve in the ledger, mark as drawn, draw, write the
bundle under a temporary name, rename it, commit. Whatever was marked as drawn stays spent.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from congenial.errors import MandateError
from congenial.kinds.kind import Offer
from congenial.ledger.ledger import Ledger
from congenial.pairs.pairs import Pairs
from congenial.pairs.secrets import SecretPairs
from congenial.pairs.sensitive_values import SensitiveValues
from congenial.publication import bundle
from congenial.publication.plan import Plan

# What a budget counts, where that is more than the promise is about.
FOR_WHAT: dict[type[Pairs], str] = {
    SensitiveValues: " for whole records",
    SecretPairs: ", whatever is believed,",
}


@dataclass(frozen=True)
class ReleaseResult:
    """Result of `release`: what was drawn, where the bundle is, and the promise in words."""

    release: Any
    folder: Path
    digest: str
    promise: str


def carry_out(
    plan: Plan, offer: Offer, folder: Path, ledger: Ledger, progress: Callable[[str], Any]
) -> ReleaseResult:
    """Reserve, mark as drawn, draw, write, rename, commit."""
    guarantee = offer.guarantee
    with ledger.reserve(offer.description, guarantee, offer.name, plan.digest) as reservation:
        progress("drawing")
        if not offer.holds(ledger):
            raise MandateError(
                "a figure was published while this release was being prepared.",
                remedy="Run the release again; nothing was drawn.",
            )
        with _to_the_end(progress):
            reservation.mark_drawn()
            drawn = replace(offer.draw(), guarantee=guarantee)
            words = guarantee.explain(ledger.account(FOR_WHAT.get(type(guarantee.adjacency), "")))
            progress("writing the bundle")
            prepared = bundle.write(drawn, folder, words, offer.report(drawn, words))
            prepared.publish()
            reservation.commit(prepared.digest)
    return ReleaseResult(drawn, folder, prepared.digest, words)


@contextmanager
def _to_the_end(progress: Callable[[str], Any]) -> Iterator[None]:
    """Let Ctrl-C wait until what was drawn is published: it stays spent in any case.

    A second Ctrl-C is obeyed at once. Outside the main thread nothing can be held back, and where
    it is ignored (a job in the background) nothing has to be.
    """
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield
        return
    asked = False

    def wait(*_: Any) -> None:
        nonlocal asked
        if asked:
            signal.signal(signal.SIGINT, usual)
            raise KeyboardInterrupt
        asked = True
        progress("drawn already, so finishing; press again to give it up, spent all the same")

    signal.signal(signal.SIGINT, wait)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if asked:
        raise KeyboardInterrupt
