"""The test of an odds ratio as a release: a noisy count, and all that follows from it.

Given both margins of a 2 x 2 table only its first cell x11 is free, so the law of the whole noisy
table (`Congenial`: double geometric noise given the margins) is that of x11 + N, N a double
geometric integer that is drawn exactly. The ledger prices it as such a table, and prices it again
when more is published. A uniform on (-1/2, 1/2) added afterwards is free and makes N the canonical
noise of epsilon, for which the test is uniformly most powerful among the unbiased private tests
(semi-dp, Theorem 37 and Lemma 46; see `odds_ratio`). P-value, decision and interval follow from the
two numbers and the margins, for anybody.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from congenial.data.arguments import NUMBER, WHOLE, expect, texts
from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.data.text_files import rows_csv
from congenial.errors import BundleError, FigureError, GuaranteeError, InferenceError
from congenial.figures.figures import Figures
from congenial.figures.support import support
from congenial.inference.odds_ratio import (
    DIGITS,
    Alternative,
    OddsRatioQuestion,
    OddsRatioTest,
    shown,
)
from congenial.mechanisms.congenial import Congenial
from congenial.mechanisms.measured_tables import release_table
from congenial.mechanisms.released import LEVEL, Interval, Released
from congenial.mechanisms.tables_release import TablesRelease
from congenial.privacy.description import Description
from congenial.privacy.guarantee import Guarantee
from congenial.sampling.canonical import Tulap, uniform_doubles
from congenial.sampling.randomness import Randomness, SystemRandomness

JSON, CSV = "test.json", "test.csv"
_MOVED = 4  # cells that change when x11 changes by one


@dataclass(frozen=True)
class OddsRatioMechanism:
    """Draws x11 + N for a question; built from public inputs by `calibrate`.

    Formal guarantee: that of `Congenial` on the 2 x 2 table, epsilon between any two databases that
    agree with the published figures and differ in at most a* records.

    >>> from congenial import Guarantee, Schema, SemiAdjacent, Table, margin, publish
    >>> answers = {"levels": ["yes", "no"]}
    >>> schema = Schema.from_dict({"smoker": answers, "ill": answers})
    >>> people = Table(schema, ["smoker", "ill"], [[40, 60], [25, 175]])
    >>> figures = publish(people, margin("smoker"), margin("ill"))
    >>> target = Guarantee.pure(1, under=SemiAdjacent(figures))
    >>> mechanism = OddsRatioMechanism.calibrate(target, ["smoker", "ill"])
    >>> round(float(mechanism.power()[2.0]), 3)
    0.722
    """

    counts: Congenial
    question: OddsRatioQuestion

    @classmethod
    def calibrate(
        cls, target: Guarantee, table: Sequence[str], question: OddsRatioQuestion | None = None
    ) -> OddsRatioMechanism:
        """The test of the 2 x 2 table over two axes whose margins are published.

        The odds are those of the second axis having its first level, where the first axis has its
        first level against where it has its second.
        """
        names = texts(table, "the table", GuaranteeError)
        asked = OddsRatioQuestion() if question is None else question
        expect(asked, OddsRatioQuestion, "the question", "Give an OddsRatioQuestion.")
        expect(target, Guarantee, "the target", "Give for example Guarantee.pure(1, under=...).")
        refuse_other_tables(target.adjacency.figures, names)
        return cls(Congenial.calibrate(target, names), asked)

    @property
    def description(self) -> Description:
        """The law of the noisy table behind the test."""
        return self.counts.description

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, from public parameters alone."""
        promise = self.counts.guarantee
        return replace(promise, citation=f"{promise.citation}; semi-dp, Theorem 37 and Lemma 46")

    @cached_property
    def test(self) -> OddsRatioTest | None:
        """The test; None while the margins are not published."""
        return odds_test(self.description)

    def power(self) -> dict[float, float]:
        """Power at each of the question's alternatives; refused while margins are not published."""
        if self.test is None:
            raise InferenceError(
                "power depends on the margins, which are not published yet.",
                remedy="Publish them first.",
            )
        return power_of(self.test, self.question)

    def release(
        self, table: Table, randomness: Randomness | None = None, name: str = "test"
    ) -> OddsRatioRelease:
        """Draw once: the only call that spends privacy."""
        source = SystemRandomness() if randomness is None else randomness
        drawn = release_table(self.counts, table, source, name)
        uniform = float(uniform_doubles(source, 1)[0])
        return self.around(int(drawn.drawn[0][0, 0]), uniform, source, name)

    def around(self, count: int, uniform: float, source: Randomness, name: str) -> OddsRatioRelease:
        """A release with this noisy count."""
        return OddsRatioRelease(
            name,
            self.description,
            self.guarantee,
            source.label,
            source.publishable,
            self.question,
            count,
            uniform,
        )

    def decide(
        self, table: Table, randomness: Randomness | None = None, name: str = "decision"
    ) -> OddsRatioDecision:
        """Draw, and keep the decision only. It spends as much as `release`, which tells more."""
        drawn = self.release(table, randomness, name)
        common = (
            drawn.name,
            drawn.description,
            drawn.guarantee,
            drawn.randomness,
            drawn.publishable,
        )
        return OddsRatioDecision(*common, drawn.question, drawn.rejected)


@dataclass(frozen=True)
class OddsRatioDecision:
    """One bit about an odds ratio, with what the ledger needs to count it (`Ledger.record`).

    It promises and costs what the whole release would: the law behind it is the same, and the
    noisy count was thrown away. `rejected` is p <= question.alpha.
    """

    name: str
    description: Description
    guarantee: Guarantee
    randomness: str
    publishable: bool
    question: OddsRatioQuestion
    rejected: bool


@dataclass(frozen=True)
class OddsRatioRelease(Released):
    """A test of an odds ratio: `count` is x11 + N as drawn, `uniform` the number from (0, 1) that
    is added less one half; `p_value`, `rejected`, `odds_interval` and `power` follow from them, and
    so does the noisy table `counts`, of which `interval(condition)` speaks.
    """

    kind: ClassVar[str] = "odds ratio test"
    contents: ClassVar[tuple[tuple[str, str], ...]] = (
        (
            f"{JSON}, {CSV}",
            "what was asked, the noisy count behind the test, p-value, decision, interval (an end "
            "that is infinite is null) and power",
        ),
    )
    usage: ClassVar[tuple[str, ...]] = (
        "release.p_value(), release.rejected",
        "release.odds_interval(0.95), release.power(2)",
    )
    name: str
    description: Description
    guarantee: Guarantee
    randomness: str
    publishable: bool
    question: OddsRatioQuestion
    count: int
    uniform: float

    @cached_property
    def test(self) -> OddsRatioTest:
        """The test that the published margins and the law of the noise give."""
        test = odds_test(self.description)
        if test is None:
            raise FigureError("the margins of the table are not published.")
        return test

    @property
    def statistic(self) -> float:
        """x11 plus canonical noise."""
        return self.count + (self.uniform - 0.5)

    def p_value(
        self, null_value: float | None = None, alternative: Alternative | None = None
    ) -> float:
        """The p-value of the release's own question, or of another one: nothing is spent."""
        asked = self.question
        return self.test.p_value(
            self.statistic,
            float(asked.null_value) if null_value is None else null_value,
            asked.alternative if alternative is None else alternative,
        )

    @property
    def rejected(self) -> bool:
        """Whether the question's hypothesis is rejected at its alpha."""
        return self.p_value() <= self.question.alpha

    def odds_interval(self, level: float | None = None) -> tuple[float, float]:
        """Confidence interval of the odds ratio, by default at the question's level."""
        return self.test.interval(
            self.statistic, float(self.question.level) if level is None else level
        )

    @cached_property
    def counts(self) -> TablesRelease:
        """The noisy 2 x 2 table: the margins and the count give every cell."""
        (first, second), (left, _), count = self.test.rows, self.test.columns, self.count
        values = np.array([[count, first - count], [left - count, second - left + count]])
        law, promise = self.description, self.guarantee
        return TablesRelease.of_one(
            self.name, law, promise, values, self.randomness, self.publishable
        )

    def interval(self, what: str, /, level: float = LEVEL) -> Interval:
        """Confidence interval for the true number of people who meet a condition."""
        return self.counts.interval(what, level)

    def power(self, at: float) -> float:
        """The probability of rejecting when the odds ratio is `at`."""
        asked = self.question
        expect(at, NUMBER, "an odds ratio", "Give a number such as 2.", GuaranteeError)
        power = self.test.power(float(asked.alpha), at, float(asked.null_value), asked.alternative)
        return float(power)

    # ---- files -------------------------------------------------------------------------------

    @cached_property
    def found(self) -> dict[str, Any]:
        """What follows from the draw, as printed."""
        low, high = self.odds_interval()
        power, errors = power_of(self.test, self.question), self.counts.cell_errors()
        return {
            "count_sd": rounded(float(errors[0][0, 0])),
            "count_interval": [int(end[0, 0]) for end in errors[1:]],
            "p_value": rounded(self.p_value()),
            "rejected": self.rejected,
            "interval": [rounded(low), rounded(high)],
            "power": [{"odds_ratio": rounded(at), "power": rounded(p)} for at, p in power.items()],
        }

    def to_arrow(self) -> Any:
        """What was asked and found: a row for each, as text."""
        import pyarrow as pa

        (first, second), *rows = self._rows()  # the first row is the heading
        return pa.table(
            {first: [label for label, _ in rows], second: [str(label) for _, label in rows]}
        )

    def payload(self) -> dict[str, bytes]:
        """The files of a bundle that hold the test."""
        document = {
            "odds_ratio": list(self.description.table),
            "compares": compared(self.schema, self.description.table),
            "hypothesis": self.question.hypothesis,
            "question": self.question.to_dict(),
            "margins": {"rows": list(self.test.rows), "columns": list(self.test.columns)},
            "count": self.count,
            "uniform": self.uniform,
            **self.found,
        }
        text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
        return {JSON: text.encode(), CSV: rows_csv(self._rows()).encode()}

    def _rows(self) -> Iterator[tuple[str, Any]]:
        asked, outcome = self.question, self.found
        yield "what", "value"
        yield "compares", compared(self.schema, self.description.table)
        yield "hypothesis", asked.hypothesis
        yield "alpha", shown(asked.alpha)
        yield "noisy count", self.count
        yield "noisy count, sd", outcome["count_sd"]
        for which, count in zip(("low", "high"), outcome["count_interval"], strict=True):
            yield f"noisy count, {which}", count
        yield "uniform", self.uniform
        yield "p-value", outcome["p_value"]
        yield "rejected", "yes" if outcome["rejected"] else "no"
        for which, end in zip(("from", "to"), outcome["interval"], strict=True):
            yield f"interval at {shown(asked.level)}, {which}", "infinite" if end is None else end
        for entry in outcome["power"]:
            yield f"power at an odds ratio of {entry['odds_ratio']:g}", entry["power"]

    @classmethod
    def from_payload(
        cls, *, payload: Mapping[str, bytes], description: Description, **common: Any
    ) -> OddsRatioRelease:
        """Inverse of `payload`; what follows from the draw is worked out again."""
        refuse_other_tables(description.support, description.table)
        document = json.loads(payload[JSON])
        count, uniform = document["count"], document["uniform"]
        expect(count, WHOLE, f"the count in {JSON}", "Get a fresh copy.", BundleError)
        expect(uniform, float, f"the uniform in {JSON}", "Get a fresh copy.", BundleError)
        if not 0 < uniform < 1:
            raise BundleError(f"{JSON} holds a uniform that is not between 0 and 1.")
        question = OddsRatioQuestion.from_dict(document["question"])
        return cls(
            description=description, question=question, count=count, uniform=uniform, **common
        )


# ---- steps ---------------------------------------------------------------------------------------


def refuse_other_tables(figures: Figures, names: Sequence[str]) -> None:
    """Refuse what is no 2 x 2 table of which both margins, and nothing more, are public."""
    axes = figures.schema.axes(tuple(names))
    if len(axes) != 2 or any(axis.size != 2 for axis in axes) or names[0] == names[1]:
        raise GuaranteeError(
            "an odds ratio needs two attributes with two categories each.",
            remedy="Name two such attributes; one with more categories can be made coarser in the "
            "schema (within).",
        )
    if figures.bounds:
        raise FigureError(
            f"'{figures.bounds[0].label}' is a bound, and the test of an odds ratio cannot use "
            "bounds.",
            remedy="Leave out the bound, or release the table instead.",
        )
    structure = support(figures, tuple(names))
    if len(structure.ties) != 1 or structure.ties[0].shape != (2, 2):
        raise FigureError(
            f"the test of an odds ratio needs the counts by {names[0]} and by {names[1]} to be "
            "published exactly, all of them positive, and nothing else to be published about the "
            "table.",
            remedy=f"Publish {{ total = true, by = ['{names[0]}'] }} and {{ total = true, by = "
            f"['{names[1]}'] }}.",
        )


def odds_test(description: Description) -> OddsRatioTest | None:
    """The test of a noisy 2 x 2 table given its margins; None while they are not known."""
    (tie,) = support(description.support, description.table).ties
    if tie.values is None:
        return None
    cells = np.empty(4)  # some table with these margins, not the true one
    cells[tie.groups] = np.linalg.lstsq(tie.equations.astype(float), tie.values, rcond=None)[0]
    table = cells[support(description.support, description.table).labels]
    rows, columns = (np.rint(table.sum(axis=axis)).astype(int).tolist() for axis in (1, 0))
    return OddsRatioTest(tuple(rows), tuple(columns), Tulap(_MOVED * description.scale))


def power_of(test: OddsRatioTest, asked: OddsRatioQuestion) -> dict[float, float]:
    """Power at each alternative that a question names."""
    at = np.array(asked.alternatives)
    powers = test.power(float(asked.alpha), at, float(asked.null_value), asked.alternative)
    return dict(zip(at.tolist(), powers.tolist(), strict=True))


def compared(schema: Schema, names: Sequence[str]) -> str:
    """Which odds the ratio is of, in words."""
    rows, columns = schema.axes(tuple(names))
    return (
        f"the odds of {columns.name} = {columns.levels[0]} where {rows.name} = {rows.levels[0]}, "
        f"divided by those where {rows.name} = {rows.levels[1]}"
    )


def rounded(value: float) -> float | None:
    """A result to six digits; None where it is infinite."""
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
