"""Releases of statistics from a plan: fit the laws, calibrate, and get ready to draw.

The laws are fitted to modelling data, a file of other people or a share of the data kept apart.
Resampling is keyed by the section itself, so that `check` and `release` show the same noise; the
noise itself is drawn from the system's randomness like that of any release.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from congenial.data.predicate import parse
from congenial.data.records import Records
from congenial.data.tabulate import Microdata
from congenial.data.vector_statistics import Statistic, Statistics, Vector
from congenial.errors import DataError, GuaranteeError, PlanError, StructureError
from congenial.figures.invariants import Invariants
from congenial.kinds.kind import Offer, Setting, Tell, unit_words
from congenial.kinds.statistics import NOT_PROTECTED, StatisticsSection
from congenial.mechanisms.distribution.assumptions import Diagnosis, diagnose
from congenial.mechanisms.distribution.choose import Choice, calibrate_distribution
from congenial.mechanisms.distribution.distribution_mechanism import DistributionMechanism
from congenial.mechanisms.distribution.fit import FittedLaws, fit_pairs, numpy_generator
from congenial.mechanisms.distribution.model_checks import cost_rows, relaxed
from congenial.mechanisms.distribution.sampling_error import CONFIDENCE, cost_words
from congenial.mechanisms.distribution.statistics_release import StatisticsRelease
from congenial.pairs.distributions import DistributionPairs
from congenial.pairs.properties import Property, read_property
from congenial.pairs.vector_laws import GaussianLaw
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.tradeoff import Approximate, Tradeoff
from congenial.report.statistics_report import StatisticsReport
from congenial.sampling.randomness import Randomness, SeededRandomness


@dataclass(frozen=True)
class Asked:
    """A section in the library's terms: what is computed and what is hidden."""

    query: Statistics
    hide: Property | None  # None where an expert states the laws


@dataclass(frozen=True)
class StatisticsCheck:
    """What a release of statistics would promise, and every mechanism that was tried."""

    section: StatisticsSection
    fit: FittedLaws
    choice: Choice
    guarantee: Guarantee
    persons: Guarantee | None

    @property
    def mechanism(self) -> DistributionMechanism:
        """The one that was chosen."""
        return self.choice.mechanism

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
            plain = choose(self.section, self.fit, "off")
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


def read(plan: Setting, section: StatisticsSection) -> Asked:
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
            f"release '{section.name}': statistics or protect has a value of the wrong kind.",
            remedy="Columns and conditions are text, shares are numbers; see "
            "docs/reference/plan.md.",
        ) from None
    return Asked(query, hide)


def build(plan: Setting, section: StatisticsSection, figures: Invariants) -> Asked:
    """What is asked; refused beside exact figures, which the promise does not take into account."""
    if figures.statements:
        raise PlanError(
            f"release '{section.name}' promises something about the whole dataset, which does not "
            "take exact figures into account.",
            remedy="Leave [publish] out, or release a table given the figures.",
        )
    asked = read(plan, section)
    if section.laws is not None:
        stated(section, asked)  # refuses laws that make no sense
    return asked


def stated(section: StatisticsSection, asked: Asked) -> FittedLaws:
    """The laws that an expert states, in the place of fitted ones; nothing was sampled."""
    laws = [GaussianLaw.of(one.name, one.mean, one.covariance) for one in section.laws or ()]
    named = None if section.apart is None else [(one, other) for one, other in section.apart]
    pairs = DistributionPairs.given(asked.query, laws, named, records=section.records)
    return FittedLaws(_without_persons(section, pairs), {})


def check(plan: Setting, section: StatisticsSection, figures: Invariants) -> StatisticsCheck:
    """Fit and calibrate without the data to be released, unless a share of them is for modelling.

    Where a unit column is given, the promise says that the two files were found to have nobody in
    common, as it will once the release has checked it.
    """
    asked = build(plan, section, figures)
    if section.laws is not None:
        return _calibrated(plan, section, stated(section, asked))
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


@contextmanager
def offer(
    plan: Setting,
    section: StatisticsSection,
    asked: Asked,
    figures: Invariants,  # noqa: ARG001 - there are none beside it
    randomness: Randomness | None,
    progress: Tell,
) -> Iterator[Offer]:
    """Read the data, fit, calibrate and compute; what is left is to draw."""
    progress("fitting the laws")
    with Microdata.open(plan.source, plan.schema, plan.unit) as data:
        if section.laws is not None:
            fit, vector = stated(section, asked), asked.query.compute(data)
        elif isinstance(section.modelling, str):
            with _modelling(plan, section.modelling) as modelling:
                fit = _fitted(section, asked, modelling, data)
            vector = asked.query.compute(data)
        else:
            apart, rest = _split(section, asked, data)
            fit = _fitted(section, asked, apart, rest)
            every = np.arange(len(rest))[None]
            vector = Vector(asked.query.names, rest.vectors(every)[0], len(rest))
    found = _calibrated(plan, section, fit)
    found.mechanism.check(vector)
    report = StatisticsReport.of(found.choice, found.diagnosis, found.persons, found.fit_words)

    def drawn(values: Vector, source: Randomness | None) -> StatisticsRelease:
        made = found.mechanism.release(values, source, section.name)
        return replace(made, person_guarantee=found.persons)

    zeros = Vector(asked.query.names, np.zeros(len(asked.query.names)), vector.records)
    yield Offer(
        section.name,
        found.mechanism.description,
        found.guarantee,
        lambda: drawn(vector, randomness),
        lambda: drawn(zeros, SeededRandomness(0)),
        report.render,
    )


def modelling_records(plan: Setting, section: StatisticsSection, asked: Asked) -> Records:
    """CONFIDENTIAL: the records laws are fitted to, for an attack on the same footing."""
    if asked.hide is None:
        raise PlanError(
            f"release '{section.name}' states its laws, so there are no modelling data to attack "
            "with.",
            remedy="Attack a release whose laws are learnt from modelling data.",
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


def _modelling(plan: Setting, address: str) -> Microdata:
    where = plan.place("release.modelling", address)
    found, own = where.address, plan.source.address
    if isinstance(found, Path) and found.resolve() == Path(own).resolve():
        raise DataError(
            "modelling data and released data are the same file.",
            remedy="Give other people's data, or a share of the data to keep apart.",
        )
    return Microdata.open(where, plan.schema, plan.unit)


def _split(section: StatisticsSection, asked: Asked, data: Microdata) -> tuple[Records, Records]:
    """A random share of the records for modelling, and the rest, which is released."""
    assert isinstance(section.modelling, Fraction)
    assert asked.hide is not None
    records = asked.query.records(data, asked.hide.conditions)
    order = numpy_generator(stream(section, "split")).permutation(len(records))
    kept, rest = records.split([int(section.modelling * len(records))], order)
    return kept, rest


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


def choose(
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


def _confidence(section: StatisticsSection) -> float | Literal["off"]:
    """How sure the noise is to cover the error of the fit; 0.95 unless the plan says otherwise."""
    told = section.confidence
    if told is None:
        return CONFIDENCE
    return "off" if told == "off" else float(told)


def _calibrated(plan: Setting, section: StatisticsSection, fit: FittedLaws) -> StatisticsCheck:
    """The best mechanism that applies, and both promises; refused where persons get nothing
    unsaid.
    """
    choice = choose(section, fit, _confidence(section))
    persons = choice.mechanism.person_guarantee
    if persons is None and section.persons is None:
        raise GuaranteeError(
            f"release '{section.name}' hides what the dataset is like and promises nothing about "
            "persons.",
            remedy="If that is meant, write persons = 'not protected'; or ask for a promise, as in "
            "persons = { epsilon = 1, delta = 1e-6 }.",
        )
    if persons is not None:
        asked = section.persons
        delta = float(asked.dlt) if isinstance(asked, Approximate) else persons.stated_delta
        assumed = (*persons.assumptions, unit_words(plan))
        persons = replace(persons, assumptions=assumed, stated_delta=delta)
    return StatisticsCheck(section, fit, choice, choice.mechanism.guarantee, persons)
