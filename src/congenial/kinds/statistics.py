"""Statistics that hide what the whole dataset is like: [[release]] with `statistics`.

The laws of the statistics are stated by an expert, or fitted to modelling data, a file of other
people or a share of the data kept apart. Resampling is keyed by the section itself, so that `check`
and `release` show the same noise; the noise itself is drawn from the system's randomness like that
of any release.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from congenial._notebook import Picture
from congenial.data.predicate import parse
from congenial.data.tabulate import Microdata
from congenial.data.vector_statistics import Statistic, Statistics, Vector
from congenial.errors import DataError, GuaranteeError, PlanError, StructureError
from congenial.kinds.kind import (
    Checked,
    Document,
    Kind,
    Ready,
    Tell,
    unit_words,
)
from congenial.kinds.plan_sections import NamedSection, Positive, Section, exact
from congenial.kinds.planned_data import PlannedData
from congenial.kinds.statistics_verification import checks
from congenial.mechanisms.distribution.assumptions import Diagnosis, diagnose
from congenial.mechanisms.distribution.choose import Choice, calibrate_distribution
from congenial.mechanisms.distribution.fit import FittedLaws, fit_pairs, numpy_generator
from congenial.mechanisms.distribution.model_checks import cost_rows, relaxed
from congenial.mechanisms.distribution.sampling_error import CONFIDENCE, SamplingError, cost_words
from congenial.mechanisms.distribution.statistics_release import StatisticsRelease
from congenial.mechanisms.released import LEVEL
from congenial.pairs.distributions import DistributionPairs
from congenial.pairs.properties import Property, read_property
from congenial.pairs.stated_laws import GaussianLaw
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.tradeoff import Approximate, Gaussian, Tradeoff
from congenial.report.page import PageColumn, PageTable, amount, counted, table
from congenial.report.release_page import Headline, promise_facts, release_page
from congenial.report.render import basis_of
from congenial.report.svg import LawCurve, law_curves
from congenial.sampling.randomness import Randomness, SeededRandomness

if TYPE_CHECKING:
    from congenial.data.vector_statistics import Records
    from congenial.figures.figures import Figures
    from congenial.mechanisms.distribution.distribution_mechanism import DistributionMechanism
    from congenial.privacy.guarantee import Guarantee

_NUMBER = re.compile(r"\d[\d.]*(?:e[+-]?\d+)?")
CAPTION = (
    "The statistics under each scenario, as fitted and with the noise added. The closer the "
    "dashed curves of two scenarios are, the less the release reveals."
)
TRIED = (
    PageColumn("mechanism"),
    PageColumn("expected error", number=True),
    PageColumn("root mean square", number=True),
    PageColumn("directions with noise", number=True),
    PageColumn("why not"),
)


@dataclass(frozen=True)
class StatisticsReport:
    """What a report needs besides the draw, worked out before it.

    `tried` are the mechanisms that were calibrated, as the page shows them.
    """

    tried: tuple[tuple[str, ...], ...]
    diagnosis: str
    persons: Guarantee | None
    fit: str

    @classmethod
    def of(
        cls, choice: Choice, diagnosis: Diagnosis, persons: Guarantee | None, fit: str
    ) -> StatisticsReport:
        """From what was calibrated."""
        return cls(_tried(choice), diagnosis.words, persons, fit)

    def to_dict(self) -> dict[str, Any]:
        """What no bundle holds, as plain data for the head of the page."""
        return {
            "fit": self.fit,
            "diagnosis": self.diagnosis,
            "tried": [list(row) for row in self.tried],
        }

    @classmethod
    def from_dict(cls, basis: dict[str, Any], persons: Guarantee | None) -> Self:
        """Inverse of `to_dict`.

        Of the error of the fit, which stands beside the promise, only numbers are taken from the
        page.
        """
        tried = tuple(tuple(str(value) for value in row) for row in basis["tried"])
        diagnosis, fit = str(basis["diagnosis"]), str(basis["fit"])
        fit = fit if _in_our_words(fit) else ""
        return cls(tried, diagnosis, persons, fit)

    def render(self, release: StatisticsRelease, promise: str) -> str:
        """The report as one HTML document; `promise` is the paragraph printed at release time."""
        origin = release.guarantee.adjacency.origin.words  # type: ignore[attr-defined]
        more = [("Error of the fit", self.fit)] if self.fit else []
        return release_page(
            "statistics.html",
            release,
            promise,
            basis=self.to_dict(),
            headlines=_headlines(release),
            values=_values(release),
            promise_facts=promise_facts(release.guarantee, *more),
            persons=self.persons,
            origin=origin[0].upper() + origin[1:],
            laws=_laws(release),
            picture=_picture(release),
            diagnosis=self.diagnosis,
            several=len(self.tried) > 1,
            tried=table(TRIED, self.tried),
        )


def _in_our_words(fit: str) -> bool:
    """Whether a page states the error of the fit in our words, if at all; no bundle has its
    numbers.
    """
    forms = {
        _NUMBER.sub("#", SamplingError(parameter, bound, 0.95, "").beside(0.1) + cost)
        for cost in ("", cost_words(1.5))
        for parameter in ("epsilon", "delta")
        for bound in (0.01, 0.5, math.inf)  # kept, not kept, unknown
    }
    return _NUMBER.sub("#", fit) in forms | {""}


def _tried(choice: Choice) -> tuple[tuple[str, ...], ...]:
    """The mechanisms that were calibrated, as shown: no more digits than the page has."""
    rows = [
        (
            candidate["mechanism"],
            "-" if candidate["expected_error"] is None else float(candidate["expected_error"]),
            candidate.get("root_mean_square", "-"),
            candidate.get("directions", "-"),
            candidate.get("why_not", ""),
        )
        for candidate in choice.table()
    ]
    return table(TRIED, rows).rows


def _laws(release: StatisticsRelease) -> PageTable:
    pairs: Any = release.guarantee.adjacency
    rows = [
        [law.label, name, float(law.mean[at]), math.sqrt(float(law.covariance[at, at]))]
        for law in pairs.laws
        for at, name in enumerate(pairs.statistics)
    ]
    columns = [
        PageColumn("scenario"),
        PageColumn("statistic"),
        PageColumn("mean", number=True),
        PageColumn("standard deviation", number=True),
    ]
    return table(columns, rows)


def _headlines(release: StatisticsRelease) -> list[Headline]:
    headlines = []
    for name in release.statistics:
        interval = release.interval(name, LEVEL)
        ends = f"{amount(interval.low)} to {amount(interval.high)}"
        headlines.append(Headline(name, amount(interval.estimate), f"{LEVEL:.0%} interval {ends}"))
    return headlines


def _values(release: StatisticsRelease) -> PageTable:
    rows = []
    for name in release.statistics:
        interval = release.interval(name, LEVEL)
        rows.append([name, interval.estimate, interval.low, interval.high])
    columns = [
        PageColumn("statistic"),
        PageColumn("released value", number=True),
        PageColumn(f"{LEVEL:.0%} from", number=True),
        PageColumn("to", number=True),
    ]
    words = "Intervals for the statistics of these data, from the known noise."
    return table(columns, rows, words)


def _picture(release: StatisticsRelease) -> Picture | None:
    """The laws of each statistic before and after noise; none where laws are not Gaussian."""
    pairs: Any = release.guarantee.adjacency
    if not pairs.gaussian:
        return None
    noise = release.noise.total_covariance.diagonal().tolist()
    panels = []
    for at, name in enumerate(pairs.statistics):
        own = [(law, float(law.covariance[at, at])) for law in pairs.laws]
        curves = [
            LawCurve(law.label, float(law.mean[at]), math.sqrt(v), math.sqrt(v + noise[at]))
            for law, v in own
        ]
        panels.append((name, curves))
    return Picture(law_curves(panels), CAPTION)


NOT_PROTECTED = "not protected"  # what `persons` says of a release that promises them nothing


def _persons(value: Any) -> Any:
    """`persons`: in so many words not protected, or what the noise must promise to them too."""
    if value == NOT_PROTECTED:
        return value
    if not isinstance(value, dict) or set(value) not in ({"epsilon", "delta"}, {"mu"}):
        raise ValueError(
            f"must be '{NOT_PROTECTED}', or a promise: {{ epsilon = 1, delta = 1e-6 }} or "
            "{ mu = 0.5 }"
        )
    numbers = {name: exact(number) for name, number in value.items()}
    if "mu" in numbers:
        return Gaussian(numbers["mu"])
    if numbers["delta"] >= 1:
        raise ValueError("delta must be below 1")
    return Approximate(numbers["epsilon"], float(numbers["delta"]))


def _real(value: Any) -> Any:
    """A finite number as a double."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal | Fraction | float):
        raise ValueError("must be a number")
    if not math.isfinite(value):
        raise ValueError("must be finite")
    return float(value)


Real = Annotated[float, BeforeValidator(_real)]


class LawSection(Section):
    """One entry of `laws`: a Gaussian law of the statistics that an expert states."""

    name: str = Field(min_length=1)
    mean: list[Real] = Field(min_length=1)
    covariance: list[list[Real]] = Field(min_length=1)


class StatisticsSection(NamedSection):
    """[[release]] with `statistics`: numbers about the records that hide what the whole dataset is
    like.
    """

    alone: ClassVar[bool] = True

    statistics: dict[str, dict[str, Any]] = Field(min_length=1)
    protect: dict[str, Any] | list[dict[str, Any]] | None = None
    modelling: str | Positive | None = None
    laws: list[LawSection] | None = Field(default=None, min_length=2)
    apart: list[list[str]] | None = Field(default=None, min_length=1)
    records: int = Field(ge=2)
    replications: int = Field(default=1000, ge=2)
    epsilon: Positive
    confidence: Positive | Literal["off"] | None = None  # None: 0.95
    weights: dict[str, Positive] = {}
    persons: Annotated[str | Tradeoff | None, BeforeValidator(_persons)] = None

    @model_validator(mode="after")
    def _possible(self) -> StatisticsSection:
        for name in ("delta", "confidence"):
            value = getattr(self, name)
            if isinstance(value, Fraction) and value >= 1:
                raise ValueError(f"{name} must be below 1")
        if not set(self.weights) <= set(self.statistics):
            raise ValueError("weights must name statistics of the release")
        self._one_source_of_laws()
        if isinstance(self.modelling, Fraction):
            if self.modelling >= 1:
                raise ValueError("modelling, as a share of the data, must be below 1")
            if self.persons != NOT_PROTECTED:
                raise ValueError(
                    "modelling as a share of the data publishes distributions fitted to people "
                    "in these data: write persons = 'not protected', or give other people's data"
                )
        return self

    def _one_source_of_laws(self) -> None:
        """Laws are fitted (`protect` and `modelling`), or stated (`laws`); not both."""
        fitting = (self.protect, self.modelling)
        if self.laws is None and (None in fitting or self.apart is not None):
            raise ValueError(
                "give protect and modelling (distributions are learnt from data), or laws "
                "(stated by an expert) with apart = [['one', 'other']] (the pairs)"
            )
        if self.laws is None:
            return
        if fitting != (None, None) or self.confidence is not None:
            raise ValueError(
                "laws are stated by an expert, so leave out protect, modelling and confidence"
            )
        if any(len(pair) != 2 for pair in self.apart or ()):
            raise ValueError("apart must be a list of pairs of names of laws")


@dataclass(frozen=True)
class Asked:
    """A section in the library's terms: what is computed and what is hidden."""

    query: Statistics
    hide: Property | None  # None where an expert states the laws

    @classmethod
    def read(cls, plan: PlannedData, section: StatisticsSection) -> Self:
        """What is asked, or why it makes no sense; reads no data."""
        try:
            parts = tuple(Statistic.read(name, spec) for name, spec in section.statistics.items())
            query = Statistics(plan.schema, parts)
            hide = None if section.protect is None else read_property(section.protect)
            for condition in hide.conditions if hide else ():
                parse(condition, plan.schema)
            for scenario in hide.scenarios if hide else ():
                scenario.sizes(section.records)
        except (TypeError, ValueError, AttributeError):
            raise PlanError(
                f"release '{section.name}': statistics or protect has a value of the wrong type.",
                remedy="Columns and conditions are text, shares are numbers; see "
                "docs/reference/plan.md.",
            ) from None
        return cls(query, hide)


@dataclass(frozen=True)
class StatisticsCheck(Checked):
    """What a release of statistics would promise, and every mechanism that was tried."""

    mechanism: DistributionMechanism
    fit: FittedLaws
    choice: Choice
    persons: Guarantee | None

    @property
    def fit_words(self) -> str:
        """What the sampling error of the fit does to the promise; empty for laws that are given."""
        error, target = self.mechanism.fit_error, self.mechanism.target
        if error is None:
            return ""
        return error.beside(float(getattr(target, error.parameter))) + self._cost_words

    @property
    def _cost_words(self) -> str:
        """How much larger errors are because the noise allows for the error of the fit."""
        pairs = self.fit.pairs
        if self.mechanism.fit_ignored or not pairs.gaussian or self.mechanism.noise.rank == 0:
            return ""
        try:
            plain = _choose(self.section, self.fit, "off")
        except StructureError:  # nothing to compare with
            return ""
        ratio = (self.choice.candidates[0].error or 0.0) / (plain.candidates[0].error or 1.0)
        return cost_words(ratio)

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """Whether the sampled statistics look as assumed; no test where laws are stated."""
        return diagnose(self.fit) if self.fit.samples else Diagnosis(())

    @property
    def model_error(self) -> list[dict[str, float]]:
        """What laws that are somewhat wrong cost: Theorems 4.6 and 4.7, for several lambda."""
        if not self.fit.pairs.gaussian:
            return []
        target = self.mechanism.target
        rows = []
        for row in cost_rows(self.mechanism):
            lam = row["lambda"]
            _, delta = relaxed(float(target.epsilon), target.delta, lam)
            rows.append(row | {"delta_with_noise": delta, "noise_per_distance": 1 / lam})
        return rows


class StatisticsKind(Kind[StatisticsSection]):
    """Numbers about the records, with noise that hides what the whole dataset is like."""

    key = "statistics"
    name = "statistics"
    section = StatisticsSection
    words = "check_statistics.txt"
    release_class = StatisticsRelease
    given_figures = False
    instead: ClassVar[str] = (
        "Their noise is described in release.json: see docs/how-to/hide-a-property."
    )

    # ---- from the plan to a draw ---------------------------------------------------------------

    def build(self, plan: PlannedData, section: StatisticsSection, figures: Figures) -> Asked:
        """What is asked; refused beside exact figures, which the promise does not take into
        account.
        """
        if figures.statements:
            raise PlanError(
                f"release '{section.name}' hides a property of the whole dataset, which is not "
                "possible together with exact figures.",
                remedy="Leave out [publish], or release a protected table instead.",
            )
        asked = Asked.read(plan, section)
        if section.laws is not None:
            _stated(section, asked)  # refuses laws that make no sense
        return asked

    def check(
        self,
        plan: PlannedData,
        section: StatisticsSection,
        figures: Figures,
    ) -> StatisticsCheck:
        """Fit and calibrate without the data to be released, unless a share of them is for
        modelling.

        Where a unit column is given, the promise says that the two files were found to have nobody
        in common, as it will once the release has checked it.
        """
        asked = self.build(plan, section, figures)
        if section.laws is not None:
            return _calibrated(plan, section, _stated(section, asked))
        if not isinstance(section.modelling, str):
            with Microdata.open(plan.source, plan.schema, plan.unit) as data:
                fit = _fitted(section, asked, *_split(section, asked, data))
        else:
            with _modelling(plan, section.modelling) as modelling:
                fit = _fitted(section, asked, modelling, None)
            if plan.unit.column is not None:
                origin = replace(fit.pairs.origin, apart="checked")
                fit = replace(fit, pairs=replace(fit.pairs, origin=origin))
        return _calibrated(plan, section, fit)

    def promise(
        self,
        plan: PlannedData,  # noqa: ARG002 - it is not about single persons
        section: StatisticsSection,  # noqa: ARG002
        mechanism: DistributionMechanism,
    ) -> Guarantee:
        """What the mechanism promises; who is one person does not matter to it."""
        return mechanism.guarantee

    def ready(
        self,
        plan: PlannedData,
        section: StatisticsSection,
        built: Asked,
        figures: Figures,  # noqa: ARG002 - there are none beside it
        data: Microdata,
        progress: Tell,
    ) -> Ready:
        """Fit, calibrate and compute."""
        progress("fitting the distributions")
        if section.laws is not None:
            fit, vector = _stated(section, built), built.query.compute(data)
        elif isinstance(section.modelling, str):
            with _modelling(plan, section.modelling) as modelling:
                fit = _fitted(section, built, modelling, data)
            vector = built.query.compute(data)
        else:
            apart, rest = _split(section, built, data)
            fit = _fitted(section, built, apart, rest)
            every = np.arange(len(rest))[None]
            vector = Vector(built.query.names, rest.vectors(every)[0], len(rest))
        checked = _calibrated(plan, section, fit)
        checked.mechanism.check(vector)
        report = StatisticsReport.of(
            checked.choice, checked.diagnosis, checked.persons, checked.fit_words
        )

        def drawn(values: Vector, source: Randomness | None) -> StatisticsRelease:
            release = checked.mechanism.release(values, source, section.name)
            return replace(release, person_guarantee=checked.persons)

        zeros = Vector(built.query.names, np.zeros(len(built.query.names)), vector.records)
        return Ready(
            draw=lambda randomness: drawn(vector, randomness),
            made_up=lambda: drawn(zeros, SeededRandomness(0)),
            report=report.render,
            mechanism=checked.mechanism,
        )

    # ---- the bundle ----------------------------------------------------------------------------

    def report(self, release: StatisticsRelease, promise: str) -> str:
        """The report; what was fitted and tried, which no bundle holds, is as on the page it came
        with.
        """
        origin, persons = release.origin, release.person_guarantee
        if origin is None:
            return StatisticsReport((), "", persons, "").render(release, promise)
        return StatisticsReport.from_dict(basis_of(origin.page()), persons).render(release, promise)

    def further_promise(self, release: StatisticsRelease) -> Guarantee | None:
        """What is promised to single persons, where anything is."""
        return release.person_guarantee

    def checks(self, release: StatisticsRelease) -> dict[str, bool]:
        """Both promises, and whether the noise is large enough for them."""
        return checks(release)

    # ---- telling people ------------------------------------------------------------------------

    def examine(self, checked: StatisticsCheck) -> Document:
        """The check of one section as plain data."""
        mechanism, persons = checked.mechanism, checked.persons
        error = mechanism.fit_error
        bounded = error is not None and math.isfinite(error.bound)
        deviations = (mechanism.noise.total_covariance.diagonal() ** 0.5).tolist()
        return {
            **super().examine(checked),
            "title": counted(len(checked.section.statistics), "statistic"),
            "statistics": list(checked.section.statistics),
            "records": checked.section.records,
            "mechanism": mechanism.name,
            "candidates": checked.choice.table(),
            "errors": [
                {"what": name, "standard_deviation": deviation}
                for name, deviation in zip(checked.section.statistics, deviations, strict=True)
            ],
            "fit_error": error and vars(error) | {"bound": error.bound if bounded else None},
            "fit_words": checked.fit_words,
            "model_error": checked.model_error,
            "diagnosis": checked.diagnosis.words,
            "doubtful": [
                {"assumption": test.assumption, "about": test.about, "test": test.test, "p": test.p}
                for test in checked.diagnosis.doubtful
            ],
            "persons": None if persons is None else persons.explain(),
            "per_person": None if persons is None else persons.tradeoff.words,
        }


KIND = StatisticsKind()


# ---- laws: stated, or fitted to modelling data ---------------------------------------------------


def _stated(section: StatisticsSection, asked: Asked) -> FittedLaws:
    """The laws that an expert states, in the place of fitted ones; nothing was sampled."""
    laws = [GaussianLaw.of(law.name, law.mean, law.covariance) for law in section.laws or ()]
    named = None if section.apart is None else [(first, second) for first, second in section.apart]
    pairs = DistributionPairs.given(asked.query, laws, named, records=section.records)
    return FittedLaws(_without_persons(section, pairs), {})


def modelling_records(plan: PlannedData, section: StatisticsSection, asked: Asked) -> Records:
    """CONFIDENTIAL: the records laws are fitted to, for an attack on the same footing."""
    if asked.hide is None:
        raise PlanError(
            f"release '{section.name}' has distributions stated by an expert, so there are no "
            "modelling data for an attack.",
            remedy="Attack a release whose distributions are learnt from modelling data.",
        )
    if isinstance(section.modelling, str):
        with _modelling(plan, section.modelling) as data:
            return asked.query.records(data, asked.hide.conditions)
    with Microdata.open(plan.source, plan.schema, plan.unit) as data:
        return _split(section, asked, data)[0]


def stream(section: StatisticsSection, purpose: str) -> SeededRandomness:
    """A stream that depends on the section alone: for resampling, never for noise.

    Without `confidence` and with "off" it is the same: what is fitted does not depend on it.
    """
    plain = section.model_dump(mode="json", fallback=str)
    if plain["confidence"] == "off":
        plain["confidence"] = None
    text = json.dumps([purpose, plain], sort_keys=True)
    return SeededRandomness(int(hashlib.sha256(text.encode()).hexdigest()[:16], 16))


def _modelling(plan: PlannedData, address: str) -> Microdata:
    source = plan.place("release.modelling", address)
    modelled, released = source.address, plan.source.address
    if isinstance(modelled, Path) and modelled.resolve() == Path(released).resolve():
        raise DataError(
            "the modelling data and the released data are the same file.",
            remedy="Give other people's data, or a share of the data to set aside.",
        )
    return Microdata.open(source, plan.schema, plan.unit)


def _split(section: StatisticsSection, asked: Asked, data: Microdata) -> tuple[Records, Records]:
    """A random share of the records for modelling, and the rest, which is released."""
    assert isinstance(section.modelling, Fraction)
    assert asked.hide is not None
    records = asked.query.records(data, asked.hide.conditions)
    order = numpy_generator(stream(section, "split")).permutation(len(records))
    modelling, rest = records.split([int(section.modelling * len(records))], order)
    return modelling, rest


def _fitted(
    section: StatisticsSection,
    asked: Asked,
    modelling: Microdata | Records,
    released: Microdata | Records | None,
) -> FittedLaws:
    assert asked.hide is not None
    fit = fit_pairs(
        asked.hide,
        asked.query,
        modelling,
        records=section.records,
        replications=section.replications,
        apart_from=released,
        randomness=stream(section, "fit"),
    )
    return replace(fit, pairs=_without_persons(section, fit.pairs))


def _without_persons(section: StatisticsSection, pairs: DistributionPairs) -> DistributionPairs:
    """What one record changes does not matter where persons are not protected."""
    return replace(pairs, change=()) if section.persons == NOT_PROTECTED else pairs


# ---- noise and promises --------------------------------------------------------------------------


def _calibrated(plan: PlannedData, section: StatisticsSection, fit: FittedLaws) -> StatisticsCheck:
    """The best mechanism that applies, and both promises; refused where persons get nothing
    unsaid.
    """
    confidence = CONFIDENCE if section.confidence is None else section.confidence
    choice = _choose(section, fit, "off" if confidence == "off" else float(confidence))
    persons = choice.mechanism.person_guarantee
    if persons is None and section.persons is None:
        raise GuaranteeError(
            f"release '{section.name}' hides a property of the dataset and promises nothing about "
            "individual people.",
            remedy=(
                "If you want that, write persons = 'not protected'. Otherwise ask for a promise: "
                "persons = { epsilon = 1, delta = 1e-6 }."
            ),
        )
    if persons is not None:
        wanted = section.persons
        delta = float(wanted.dlt) if isinstance(wanted, Approximate) else persons.stated_delta
        assumed = (*persons.assumptions, unit_words(plan))
        persons = replace(persons, assumptions=assumed, stated_delta=delta)
    mechanism = choice.mechanism
    return StatisticsCheck(section, mechanism, mechanism.guarantee, fit, choice, persons)


def _choose(
    section: StatisticsSection, fit: FittedLaws, confidence: float | Literal["off"]
) -> Choice:
    """The best mechanism for a section, with this much allowance for the error of the fit."""
    weights = [float(section.weights.get(name, 1)) for name in section.statistics]
    return calibrate_distribution(
        fit.pairs,
        section.epsilon,
        0.0 if section.delta is None else float(section.delta),
        mechanism=section.mechanism,
        weights=weights if section.weights else None,
        persons=section.persons if isinstance(section.persons, Tradeoff) else None,
        confidence=confidence,
    )
