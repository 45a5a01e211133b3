"""SecretPairs: two answers of one person, seen by somebody who knows the public figures.

The promise of partially private data (partially-private-data, Definition 3): whoever knows z
and holds one of the stated beliefs learns little about one person's answer from the release. It
says nothing about what z reveals by itself. How much noise that takes is worked out in
transport/; which promises may be put together is decided here, by the corrected composition
rules (the printed ones are false, see docs/errata).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from congenial.data.arguments import WHOLE, expect
from congenial.data.schema import Schema
from congenial.errors import BundleError, GuaranteeError
from congenial.figures.figures import Figures
from congenial.pairs.finite_scenarios import FiniteScenarios
from congenial.pairs.pairs import Pairs
from congenial.pairs.scenarios import (
    LEVELS,
    SECRET_WORDS,
    BoundedCounts,
    ConditionalNormal,
    Conditionals,
    DependentCounts,
    Independence,
    IndependentRecords,
    Level,
    Query,
    Scenarios,
    Secrets,
    StatedLaws,
)

LEAKAGE = "what the public figures reveal by themselves"  # belongs to `Guarantee.not_covered`
PEOPLE = (("", 1),)  # the terms of a statement about everybody
OTHER_BELIEFS = "somebody whose belief about the data is not one of those named"


BELIEFS = "Give a tuple of scenarios, such as (IndependentRecords(),)."


@dataclass(frozen=True)
class SecretPairs(Pairs):
    """Secrets of single persons under scenarios, given public figures.

    `scenarios`: one or more classes of beliefs; the promise holds for all of them. `given`: the
    public figures z in words (besides those the scenarios name and the figures). `level`:
    whether releases are calibrated to laws of a statistic ("query") or of whole databases
    ("database"); only the latter add up.
    """

    metric = "secret pairs"
    counted = " without any assumption about beliefs"
    assumptions = ("whoever reads the release holds one of the named beliefs",)
    """What must be true for the promise to mean what it says."""

    schema: Schema
    scenarios: tuple[Scenarios, ...]
    given: tuple[str, ...] = ()
    level: Level = "query"
    published: Figures | None = None

    def __post_init__(self) -> None:
        if isinstance(self.scenarios, Scenarios):
            object.__setattr__(self, "scenarios", (self.scenarios,))
        expect(self.scenarios, (tuple, list), "scenarios", BELIEFS, GuaranteeError)
        for scenario in self.scenarios:
            expect(scenario, Scenarios, "a scenario", BELIEFS, GuaranteeError)
        if not self.scenarios:
            raise GuaranteeError(
                "without scenarios nothing is promised.", remedy="State one belief."
            )
        if self.level not in LEVELS:
            raise GuaranteeError(
                f"level = '{self.level}' is not known.", remedy=f"Use {' or '.join(LEVELS)}."
            )
        if len({scenario.secrets for scenario in self.scenarios}) != 1:
            raise GuaranteeError(
                "the scenarios hide different things (what a person answered, and whether they "
                "are in the data).",
                remedy="Make one promise for each kind.",
            )
        if self.published is not None and self.published.schema != self.schema:
            raise GuaranteeError(
                "the figures have another schema.", remedy="Use one schema for both."
            )
        self._check_figures()

    def _check_figures(self) -> None:
        """Refuse a closed form given figures that it is not worked out for.

        Records that are independent stay so given their number (where people are not added or
        removed), but given no other figure: one answer then moves somebody else's.
        """
        figures = [*self.figures.equalities, *self.figures.bounds]
        if self.secrets == "replace-one":
            figures = [s for s in figures if s.terms != PEOPLE or s.by]
        if figures and not all(scenario.conditioned for scenario in self.scenarios):
            kind = next(scenario.kind for scenario in self.scenarios if not scenario.conditioned)
            raise GuaranteeError(
                f"given '{figures[0].label}' records are not independent, and no formula says how "
                f"far one answer moves the others in scenarios of kind '{kind}'.",
                remedy=(
                    "Publish only the total, or state the distance given that figure (in a plan: "
                    "scenarios = { distance = 4 })."
                ),
            )

    @property
    def figures(self) -> Figures:
        """Public figures that are exact statistics of the table, if there are any."""
        return self.published if self.published is not None else Figures(self.schema)

    @property
    def composes(self) -> bool:
        """Whether the losses of two releases over these pairs add up: at database level only."""
        return self.level == "database"

    @classmethod
    def composes_as_written(cls, data: Mapping[str, Any]) -> bool:
        """The same of stored pairs."""
        return data.get("level") == "database"

    @property
    def secrets(self) -> Secrets:
        """Which secrets: a person's answer, or also whether the person is in the data."""
        return self.scenarios[0].secrets

    @property
    def side(self) -> str:
        """What one side of a pair is."""
        return "answer" if self.secrets == "replace-one" else "case"

    @property
    def facts(self) -> tuple[str, ...]:
        """Everything public that the promise takes as known."""
        labels = [s.label for s in (*self.figures.equalities, *self.figures.bounds)]
        labels += [fact for scenario in self.scenarios for fact in scenario.facts]
        return tuple(dict.fromkeys([*self.given, *labels]))

    @property
    def words(self) -> str:
        """The pairs that must look alike, as a clause of the promise."""
        knows = f"{self._knows} and " if self.facts else ""
        return f"{SECRET_WORDS[self.secrets]}, as seen by somebody who {knows}{self._believes}"

    @property
    def guesser(self) -> str:
        """Somebody who holds one of the beliefs."""
        knows = f"{self._knows}, " if self.facts else ""
        return f"{knows}{self._believes}, and thinks the two {self.side}s equally likely"

    @property
    def _knows(self) -> str:
        return f"knows the public figures ({'; '.join(self.facts)})"

    @property
    def _believes(self) -> str:
        beliefs = dict.fromkeys(scenario.belief for scenario in self.scenarios)
        return f"believes that {'; or that '.join(beliefs)}"

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What the promise says nothing about."""
        return (LEAKAGE, OTHER_BELIEFS) if self.facts else (OTHER_BELIEFS,)

    @property
    def excluded(self) -> tuple[str, ...]:
        """Secret pairs left out, because a scenario gives one of them probability 0 or 1."""
        return tuple(pair for scenario in self.scenarios for pair in scenario.excluded)

    def conditionals(self, query: Query | None = None) -> Iterator[Conditionals]:
        """The pairs of laws that must look alike, of all scenarios."""
        for scenario in self.scenarios:
            yield from scenario.conditionals(self.level, query)

    def independence(self, *blocks: Collection[int]) -> Independence:
        """The weakest statement about the blocks that holds in every scenario."""
        order: tuple[Independence, ...] = ("blocks", "given the secret", "none")
        return max((scenario.independence(blocks) for scenario in self.scenarios), key=order.index)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "metric": self.metric,
            "level": self.level,
            "given": list(self.given),
            "scenarios": [scenario.to_dict() for scenario in self.scenarios],
            "words": self.words,
        }

    @classmethod
    def from_dict(cls, figures: Figures, data: Mapping[str, Any]) -> SecretPairs:
        """Inverse of `to_dict`, given the figures (with their schema) written beside it."""
        scenarios = tuple(read_scenarios(entry) for entry in data["scenarios"])
        published = figures if figures.statements else None
        return cls(figures.schema, scenarios, tuple(data["given"]), data["level"], published)


SCENARIOS: tuple[type[Scenarios], ...] = (
    IndependentRecords,
    StatedLaws,
    BoundedCounts,
    DependentCounts,
    ConditionalNormal,
    FiniteScenarios,
)


def read_scenarios(data: Mapping[str, Any]) -> Scenarios:
    """Inverse of `Scenarios.to_dict`; laws that were not written down stay away."""
    for kind in SCENARIOS:
        if data["kind"] == kind.kind:
            return kind.from_dict({key: value for key, value in data.items() if key != "kind"})
    raise BundleError(
        f"this version of congenial does not know scenarios of kind {data['kind']!r}.",
        remedy="Use the version of congenial named in the bundle.",
    )


# --- what a promise over secret pairs means ------------------------------------------------------


def event_gap(epsilon: float) -> float:
    """Probabilities of an event under the two secrets differ by at most tanh(eps/2), sharp.

    The same number bounds the total variation between what is believed after the release and what
    would be believed had the person's record been replaced; the paper's e^eps - 1 is above 1 from
    eps = ln 2 on.
    """
    return math.tanh(epsilon / 2)


def belief_gap(epsilon: float) -> float:
    """A belief in one secret against the other moves by at most tanh(eps/4), sharp.

    Attained from a prior odds of e^(-eps/2), that go to e^(eps/2).
    """
    return math.tanh(epsilon / 4)


# --- putting promises together -------------------------------------------------------------------


@dataclass(frozen=True)
class Joint:
    """How two losses go together: they "add", the larger one counts ("max"), or "refuse"."""

    rule: Literal["add", "max", "refuse"]
    reason: str

    def require(self) -> Joint:
        """Itself; GuaranteeError with the reason when refused."""
        if self.rule == "refuse":
            raise GuaranteeError(
                f"the two promises cannot be combined: {self.reason}",
                remedy="Calibrate both at level 'database', or release both statistics as one "
                "vector calibrated at once.",
            )
        return self


def may_add(
    one: SecretPairs,
    other: SecretPairs,
    blocks: tuple[Collection[int], Collection[int]] | None = None,
) -> Joint:
    """How the losses of two releases with independent noise go together.

    `blocks`: the people (numbered from 0) whose records each release looks at, if they are
    disjoint. Lemmas 6 and 7 as printed are false; what is true:

    - blocks independent of each other and of everybody else given z: the larger loss counts;
    - both calibrated to one coupling of databases: losses add, since that coupling serves both;
    - blocks independent given (secret, z): losses add, since the releases are independent then.
    """
    for pairs in (one, other):
        expect(pairs, SecretPairs, "what is compared", "Give SecretPairs.", GuaranteeError)
    if any(getattr(one, x) != getattr(other, x) for x in ("scenarios", "facts", "figures")):
        return Joint("refuse", "they are about different beliefs or different public figures.")
    kind: Independence = "none"
    if blocks is not None:
        _check_blocks(blocks)
        if set(blocks[0]) & set(blocks[1]):
            raise GuaranteeError(
                "the two blocks of people overlap.",
                remedy="Leave out the blocks, or make them disjoint.",
            )
        kind = one.independence(*blocks)
    if kind == "blocks":
        return Joint("max", "the blocks are independent given the public figures.")
    if one.level == other.level == "database":
        return Joint("add", "both are calibrated to one coupling of databases.")
    if kind == "given the secret":
        return Joint("add", "the blocks are independent given the secret and the public figures.")
    if blocks is None:
        return Joint(
            "refuse",
            "each is calibrated to its own statistic, and two statistics that each hide a secret "
            "can reveal it together.",
        )
    return Joint(
        "refuse", "the blocks depend on each other given the secret and the public figures."
    )


def _check_blocks(blocks: object) -> None:
    """Two collections of whole numbers."""
    remedy = "Give two collections of people's numbers, from 0."
    expect(blocks, (tuple, list), "blocks", remedy, GuaranteeError)
    both = list(blocks)  # type: ignore[call-overload]
    if len(both) != 2:
        raise GuaranteeError(f"there are {len(both)} blocks.", remedy=remedy)
    for block in both:
        expect(block, Collection, "a block", remedy, GuaranteeError)
        for person in block:
            expect(person, WHOLE, "a person's number", remedy, GuaranteeError)
