"""A table of counts given what is public already: [[release]] with `scenarios`.

Beliefs about answers are about one yes-or-no question: the released table has two cells, and `of`
names the level that counts as yes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from congenial.kinds.kind import NamedSection, Positive, exact
from congenial.kinds.loaded_kind import LoadedKind, Offers, Words

if TYPE_CHECKING:
    from congenial.mechanisms.wasserstein.given_public_release import ValuesRelease
    from congenial.privacy.guarantee import Guarantee


INDEPENDENT: Literal["independent records"] = "independent records"
ANSWERS, DEPENDENT, LISTED = "independent answers", "dependent answers", "listed databases"
_RULE = {"of", "people"}

GRAMMAR = (
    f"must be {{ believe = '{INDEPENDENT}' }}, {{ believe = '{ANSWERS}', of = 'yes', people = 400, "
    "k_anonymity = 5 } (or t_closeness = 0.1, target = 0.3), "
    f"{{ believe = '{DEPENDENT}', of = 'yes', people = 400, chances = [0.1, 0.3] }}, "
    f"{{ believe = '{LISTED}', file = 'beliefs.csv' }}, or {{ distance = 2 }} where Delta_z is "
    "assumed; because = '...' may be added to the first and the last"
)


def _form(required: dict[str, Any], **more: Any) -> dict[str, Any]:
    """One way to write `scenarios`, for editors that check a plan while it is written."""
    return {
        "type": "object",
        "properties": required | more,
        "required": list(required),
        "additionalProperties": False,
    }


_TEXT, _COUNT = {"type": "string"}, {"type": "integer", "minimum": 1}
_NUMBER = {"type": "number", "exclusiveMinimum": 0}
_PEOPLE = {"of": _TEXT, "people": _COUNT}
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
_PAIR = {"type": "array", "items": _SHARE, "minItems": 2, "maxItems": 2}
FORMS = [
    _form({"believe": {"const": INDEPENDENT}}, because=_TEXT),
    _form({"distance": _NUMBER}, because=_TEXT),
    _form({"believe": {"const": ANSWERS}, **_PEOPLE, "k_anonymity": _COUNT}),
    _form({"believe": {"const": ANSWERS}, **_PEOPLE, "t_closeness": _NUMBER, "target": _SHARE}),
    _form({"believe": {"const": DEPENDENT}, **_PEOPLE, "chances": _PAIR}),
    _form({"believe": {"const": LISTED}, "file": _TEXT}),
]


@dataclass(frozen=True)
class Believed:
    """Independent records, or the distance Delta_z that is assumed instead."""

    believe: Literal["independent records"] | None = None
    distance: Fraction | None = None
    because: str = ""


@dataclass(frozen=True)
class RuleBelieved:
    """Independent answers of `people`, of which a disclosure rule is public."""

    of: str
    people: int
    k: int | None = None
    t: Fraction | None = None
    target: Fraction | None = None

    distance: ClassVar[None] = None


@dataclass(frozen=True)
class DependentBelieved:
    """Answers that depend on one person's: chances of a yes between two bounds."""

    of: str
    people: int
    low: Fraction
    high: Fraction

    distance: ClassVar[None] = None


@dataclass(frozen=True)
class ListedBelieved:
    """A file of databases and how likely each scenario takes them."""

    file: str

    distance: ClassVar[None] = None


AnyBelief = Believed | RuleBelieved | DependentBelieved | ListedBelieved


def belief(value: Any) -> AnyBelief:
    """What a plan says, or ValueError with the grammar."""
    told = dict(value) if isinstance(value, dict) else {}
    found = _of_answers(told) if told.get("believe") in (ANSWERS, DEPENDENT, LISTED) else None
    found = found or _of_records(told)
    if found is None:
        raise ValueError(GRAMMAR)
    return found


def _of_records(told: dict[str, Any]) -> Believed | None:
    because, one = told.pop("because", ""), next(iter(told.items()), ("", None))
    if len(told) != 1 or not isinstance(because, str):
        return None
    if one == ("believe", INDEPENDENT):
        return Believed(believe=INDEPENDENT, because=because)
    return Believed(distance=exact(one[1]), because=because) if one[0] == "distance" else None


def _of_answers(told: dict[str, Any]) -> AnyBelief | None:
    keys, believe = set(told) - {"believe"}, told["believe"]
    if believe == LISTED:
        named = keys == {"file"} and isinstance(told["file"], str)
        return ListedBelieved(told["file"]) if named else None
    if not (isinstance(told.get("of"), str) and _count(told.get("people"))):
        return None
    who: tuple[str, int] = told["of"], told["people"]
    if believe == DEPENDENT:
        chances = told.get("chances")
        if keys != _RULE | {"chances"} or not isinstance(chances, list) or len(chances) != 2:
            return None
        return DependentBelieved(*who, _share(chances[0]), _share(chances[1]))
    if keys == _RULE | {"k_anonymity"} and _count(told["k_anonymity"]):
        return RuleBelieved(*who, k=told["k_anonymity"])
    if keys == _RULE | {"t_closeness", "target"}:
        return RuleBelieved(*who, t=exact(told["t_closeness"]), target=_share(told["target"]))
    return None


def _share(value: Any) -> Fraction:
    """A number from 0 to 1, exactly."""
    none = isinstance(value, int | Decimal) and not isinstance(value, bool) and value == 0
    found: Fraction = Fraction(0) if none else exact(value)
    if found > 1:
        raise ValueError("target and chances are shares, from 0 to 1")
    return found


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


@dataclass(frozen=True)
class PriorCounts:
    """`base_measure` with `prior`: a file of earlier counts, and what they weigh."""

    prior: str
    alpha: Fraction
    kappa: Fraction


def _base_measure(value: Any) -> Any:
    if value in ("naive", "congenial"):
        return value
    if not isinstance(value, dict) or set(value) != {"prior", "alpha", "kappa"}:
        raise ValueError(
            "must be 'naive', 'congenial', or { prior = 'last-release.csv', alpha = 0.1, "
            "kappa = 0.5 }"
        )
    if not isinstance(value["prior"], str):
        raise ValueError("prior must name a CSV file")
    return PriorCounts(value["prior"], exact(value["alpha"]), exact(value["kappa"]))


class ScenariosSection(NamedSection):
    """[[release]] with `scenarios`: a table of counts, protected given what is public already."""

    table: list[str] = Field(min_length=1)
    scenarios: Annotated[AnyBelief, BeforeValidator(belief), WithJsonSchema({"anyOf": FORMS})]
    given: list[str] = []
    base_measure: Annotated[str | PriorCounts, BeforeValidator(_base_measure)] = "congenial"
    loss: Literal["l1", "l2"] = "l1"
    epsilon: Positive
    basis: Literal["theorem"] | None = None

    @model_validator(mode="after")
    def _possible(self) -> ScenariosSection:
        if self.delta is not None:
            raise ValueError("scenarios promise epsilon without delta; leave delta out")
        if self.mechanism not in ("auto", "wasserstein_exponential"):
            raise ValueError(
                f"mechanism = {self.mechanism!r} does not take scenarios; write 'auto'"
            )
        return self

    def refused_beside(self, publishes: bool, others: int) -> str:
        """Beside no other release where its distance is assumed: such promises do not add up."""
        if self.scenarios.distance is None or not others:
            return super().refused_beside(publishes, others)
        return (
            f"release '{self.name}' assumes its distance, and such a promise does not add up "
            "with any other release from the same data; believe = 'independent records' does"
        )


class GivenPublic(LoadedKind[ScenariosSection]):
    """Counts drawn around the true ones, protected given what somebody knows already."""

    key = "scenarios"
    name = "values"
    section = ScenariosSection
    instead: ClassVar[str] = ""

    def offers(self) -> Offers:
        """`given_public_offer`."""
        from congenial.kinds import given_public_offer

        return given_public_offer

    def words(self) -> Words:
        """`given_public_words`."""
        from congenial.kinds import given_public_words

        return given_public_words

    def shown(self, section: ScenariosSection) -> Sequence[str]:
        """The axes of the table."""
        return section.table

    @property
    def release_class(self) -> type[ValuesRelease]:
        """`ValuesRelease`."""
        from congenial.mechanisms.wasserstein.given_public_release import ValuesRelease

        return ValuesRelease

    def report(self, release: ValuesRelease, promise: str) -> str:
        """The report, without the earlier counts that only the curator's plan names."""
        from congenial.kinds.given_public_verification import report

        return report(release, promise)

    def expected_report(self, release: ValuesRelease, promise: str, page: str) -> str:
        """The report that `page` should be, with its pictures left empty."""
        from congenial.kinds.given_public_verification import expected_report

        return expected_report(release, promise, page)

    def further_promise(self, release: ValuesRelease) -> Guarantee | None:
        """What is promised without any assumption about beliefs."""
        from congenial.kinds.given_public_verification import further_promise

        return further_promise(release)


KIND = GivenPublic()
