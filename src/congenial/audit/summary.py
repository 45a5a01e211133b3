"""Every mechanism on every small universe it can serve: the rows of the exact audit.

A table mechanism joins by registering; what is not a table is listed in `laws`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from congenial.audit.exact_audit import MOST_OUTPUTS, ExactAudit, Verdict, exact_audit
from congenial.audit.law_audits import LAWS
from congenial.audit.universes import FURTHER, UNIVERSES, SmallUniverse
from congenial.data.argument_rules import CALL, FLAG, takes
from congenial.errors import StructureError
from congenial.mechanisms import calibrate as _registering  # noqa: F401 - fills the registry
from congenial.mechanisms.mechanism import REGISTRY, Mechanism
from congenial.pairs.adjacency import Adjacency
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.tradeoff import Approximate, Gaussian, Pure, Tradeoff, ZeroConcentrated

# Little noise: few outputs carry nearly all the mass, so that windows and draws are decisive.
TARGETS: dict[type[Tradeoff], Callable[[Adjacency], Guarantee]] = {
    Pure: lambda under: Guarantee.pure(4, under),
    Approximate: lambda under: Guarantee.approximate(8, 1e-2, under),
    ZeroConcentrated: lambda under: Guarantee.zero_concentrated(6, under),
    Gaussian: lambda under: Guarantee.gaussian(3, under),
}
QUICK = ("voting age", "both margins", "sparse margins", "rows come and go", "stand-ins")
QUICK_OUTPUTS = 1_500


@dataclass(frozen=True)
class Case:
    """A calibrated mechanism on a universe; `refused` says why there is none."""

    name: str
    mechanism: Mechanism | None
    universe: SmallUniverse
    target: str
    refused: str = ""

    def __str__(self) -> str:
        return f"{self.name}-{self.target}-{self.universe.label}".replace(" ", "_")


@dataclass(frozen=True)
class AuditRow:
    """One line of the exact audit: what is promised, and the worst that was found.

    pairs, outputs: how many were compared. promised, worst: in the promise's own `parameter`
    (epsilon, rho, mu). verdict: "attained" and "holds" pass.
    """

    mechanism: str
    universe: str
    pairs: int
    outputs: int
    parameter: str
    promised: float
    worst: float
    verdict: Verdict

    @classmethod
    def of(cls, mechanism: str, universe: str, found: ExactAudit) -> AuditRow:
        """The row of an audit."""
        return cls(
            mechanism,
            universe,
            found.pairs,
            found.outputs,
            found.parameter,
            found.stated,
            found.worst,
            found.verdict,
        )

    @property
    def passed(self) -> bool:
        """Whether the promise holds, and is attained where that is claimed."""
        return self.verdict in ("attained", "holds")


def table_cases(universes: Sequence[SmallUniverse]) -> Iterator[Case]:
    """Every registered mechanism, under every target it takes, on every universe; refusals too."""
    for mechanism in REGISTRY.values():
        for universe in universes:
            if mechanism.conditions and not universe.statements:
                continue
            for target in mechanism.targets:
                built, reason = None, ""
                try:
                    built = mechanism.calibrate(
                        TARGETS[target](universe.adjacency), universe.release
                    )
                except StructureError as error:
                    reason = str(error)
                yield Case(mechanism.name, built, universe, target.__name__, reason)


@takes(quick=FLAG, progress=CALL)
def audit_every_mechanism(
    quick: bool = False, progress: Callable[[str], Any] = lambda _: None
) -> list[AuditRow]:
    """`exact_audit` of every registered mechanism, under every promise it takes, on every small
    universe, and of the laws that are not tables.

    Where a row has not `passed`, a promise is broken: `worst` exceeds `promised` by more than
    rounding, or a promise that is claimed to be attained is not. quick: fewer universes and
    smaller windows, for a test suite. progress: called with each name. All takes a minute or two.
    """
    every = [u for u in (*UNIVERSES, *FURTHER) if not quick or u.label in QUICK]
    rows = []
    for case in table_cases(every):
        if case.mechanism is not None:
            progress(f"{case.name}: {case.universe.label}")
            most = QUICK_OUTPUTS if quick else MOST_OUTPUTS
            found = exact_audit(case.mechanism, case.universe, most=most)
            rows.append(AuditRow.of(f"{case.name} ({case.target})", case.universe.label, found))
    for name, label, audit in LAWS:
        progress(f"{name}: {label}")
        rows.append(AuditRow.of(name, label, audit()))
    return rows
