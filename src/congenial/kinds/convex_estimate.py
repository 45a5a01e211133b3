"""A mean, a sum, a quantile or a regression: [[release]] with `estimate`.

With `scenarios` it is protected given what somebody who knows public figures believes.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator, WithJsonSchema, model_validator

from congenial.kinds.kind import NamedSection, Positive, exact
from congenial.kinds.loaded_kind import LoadedKind, Offers, Words

if TYPE_CHECKING:
    from congenial.mechanisms.wasserstein.gradient_estimate import EstimateRelease
    from congenial.privacy.guarantee import Guarantee

INDEPENDENT, NORMAL = "independent records", "normal records"
GRAMMAR = (
    f"beside an estimate must be {{ believe = '{INDEPENDENT}', people = 400 }} or "
    f"{{ believe = '{NORMAL}', people = 400, variance = 90, means = {{ 'last year' = {{ people = "
    "400, error = 0.5 } } }; means may be left out"
)
_COUNT = {"type": "integer", "minimum": 1}
_NUMBER = {"type": "number", "exclusiveMinimum": 0}


def _form(**keys: Any) -> dict[str, Any]:
    """A table of these keys, of which `means` may be left out."""
    return {
        "type": "object",
        "properties": keys,
        "required": [key for key in keys if key != "means"],
        "additionalProperties": False,
    }


_MEANS = {"type": "object", "additionalProperties": _form(people=_COUNT, error=_NUMBER)}
FORMS = [
    _form(believe={"const": INDEPENDENT}, people=_COUNT),
    _form(believe={"const": NORMAL}, people=_COUNT, variance=_NUMBER, means=_MEANS),
]


@dataclass(frozen=True)
class RecordsBelieved:
    """What is believed of `people` records: independent; normal too, where `variance` is given.

    `means`: public means of normal records, each with its people and the size of its error.
    """

    people: int
    variance: Fraction | None = None
    means: tuple[tuple[str, int, Fraction], ...] = ()


def _believed(value: Any) -> RecordsBelieved:
    told = dict(value) if isinstance(value, dict) else {}
    believe, people = told.pop("believe", None), told.pop("people", None)
    keys = {NORMAL: {"variance", "means"}, INDEPENDENT: set[str]()}.get(believe)
    if keys is None or not _count(people) or set(told) | {"means"} != keys | {"means"}:
        raise ValueError(GRAMMAR)
    if believe == INDEPENDENT:
        return RecordsBelieved(people)
    means = told.get("means", {})
    if not isinstance(means, dict):
        raise ValueError(GRAMMAR)
    named = tuple((label, *_public_mean(one)) for label, one in means.items())
    return RecordsBelieved(people, exact(told["variance"]), named)


def _public_mean(value: Any) -> tuple[int, Fraction]:
    if not isinstance(value, dict) or set(value) != {"people", "error"}:
        raise ValueError(GRAMMAR)
    if not _count(value["people"]):
        raise ValueError(GRAMMAR)
    return value["people"], exact(value["error"])


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


class EstimateSection(NamedSection):
    """[[release]] with `estimate`: a statistic that minimises a convex loss, drawn near it."""

    estimate: dict[str, Any]
    scenarios: (
        Annotated[RecordsBelieved, BeforeValidator(_believed), WithJsonSchema({"anyOf": FORMS})]
        | None
    ) = None
    given: list[str] = []
    epsilon: Positive

    @model_validator(mode="after")
    def _possible(self) -> EstimateSection:
        if self.delta is not None:
            raise ValueError("an estimate promises epsilon without delta; leave delta out")
        if self.mechanism not in ("auto", self._own):
            raise ValueError(f"mechanism = {self.mechanism!r} makes no such estimate; write 'auto'")
        if self.scenarios is None and self.given:
            raise ValueError("given says what is public to those who hold a belief: add scenarios")
        normal = self.scenarios is not None and self.scenarios.variance is not None
        if normal and not self._adds_up:
            raise ValueError(
                f"given '{NORMAL}' every number of the data moves with one answer, which bounds a "
                f"mean or a sum and no other estimate; believe = '{INDEPENDENT}'"
            )
        return self

    @property
    def _adds_up(self) -> bool:
        return bool({"mean", "sum"} & set(self.estimate))

    @property
    def _own(self) -> str:
        """The mechanism that makes it."""
        if self.scenarios is None:
            return "k_norm_gradient"
        return "wasserstein_exponential" if self._adds_up else "wasserstein_gradient"

    def refused_beside(self, publishes: bool, others: int) -> str:
        """Beside no other release where records are believed to be normal."""
        if self.scenarios is None or self.scenarios.variance is None or not others:
            return super().refused_beside(publishes, others)
        return (
            f"release '{self.name}' is calibrated to the law of its own mean, and such a promise "
            f"does not add up with any other release from the same data; believe = '{INDEPENDENT}' "
            "does"
        )


class EstimateKind(LoadedKind[EstimateSection]):
    """A statistic near its best value for the data, by the K-norm gradient mechanism."""

    key = "estimate"
    name = "estimate"
    section = EstimateSection
    instead: ClassVar[str] = "Its law is in release.json: see docs/how-to/estimate-a-statistic."

    def offers(self) -> Offers:
        """`convex_estimate_offer`."""
        from congenial.kinds import convex_estimate_offer

        return convex_estimate_offer

    def words(self) -> Words:
        """`convex_estimate_words`."""
        from congenial.kinds import convex_estimate_words

        return convex_estimate_words

    @property
    def release_class(self) -> type[EstimateRelease]:
        """`EstimateRelease`."""
        from congenial.mechanisms.wasserstein.gradient_estimate import EstimateRelease

        return EstimateRelease

    def report(self, release: EstimateRelease, promise: str) -> str:
        """The report, from what a bundle holds."""
        from congenial.report.convex_estimate_report import render

        return render(release, promise, self.further_promise(release))

    def further_promise(self, release: EstimateRelease) -> Guarantee | None:
        """What is promised to anybody, where the promise is one given public information."""
        if release.persons is release.guarantee:
            return None
        from congenial.kinds.plan_scenarios import further_promise

        return further_promise(release)


KIND = EstimateKind()
