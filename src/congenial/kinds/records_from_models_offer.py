"""Synthetic records from a plan: read the models, price them, and get ready to draw.

Only certified synthesis can be released: its promise is a theorem. The pairs are those of the
plan's figures, so that with figures a copy costs 2 M a*; with public columns they are
datasets in which one person's other values differ, and a copy costs 2 M. The ledger counts whole
records in either case, because that is what its other releases promise. Nothing here depends on
the confidential data until `offer` reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from congenial.data.tabulate import Microdata
from congenial.errors import GuaranteeError, PlanError
from congenial.figures.cells import Cells
from congenial.figures.invariants import Invariants
from congenial.kinds.kind import Offer, Setting, Tell, planned
from congenial.kinds.records_from_models import ModelRecordsSection
from congenial.ledger.ledger import Ledger
from congenial.pairs.sensitive_values import SensitiveValues
from congenial.privacy.composition import joint_loss
from congenial.privacy.guarantee import Guarantee
from congenial.report.records_from_models_report import render
from congenial.sampling.randomness import Randomness, SeededRandomness
from congenial.synthesis.certified import Records, Synthesizer
from congenial.synthesis.columns import Column
from congenial.synthesis.record_model import generator_of
from congenial.synthesis.records_from_models_release import SyntheticRelease, records_table

OF_COLUMN = ("given", "share", "weighting", "correct")  # the other keys of a column are its model's
LOCAL_ONLY = ("mixture", "numpyro", "gibbs")

_NUMBER = 24  # bytes of a number as text
_SEPARATORS = 4  # quotes, an apostrophe and a comma


@dataclass(frozen=True)
class ModelRecordsCheck:
    """What a release of synthetic records would promise, and what the ledger would count for it."""

    section: ModelRecordsSection
    mechanism: Synthesizer
    guarantee: Guarantee
    counted: Fraction


def columns(section: ModelRecordsSection) -> tuple[Column, ...]:
    """The columns of a section with their models; `theta` is part of the model it belongs to."""
    found = []
    for name, given in section.model.items():
        told: dict[str, Any] = _plain({"kind": given} if isinstance(given, str) else given)
        own = {key: told.pop(key) for key in OF_COLUMN if key in told}
        kind = told.setdefault("kind", "multinomial")
        if kind in LOCAL_ONLY:
            raise GuaranteeError(
                f"column {name!r}: a model drawn by a chain ({kind!r}) has no certificate and is "
                "never released.",
                remedy="Use a model of docs/reference/plan.md, or study it in Python.",
            )
        model = _merged(told, _plain(section.theta.get(name, {})), name)
        found.append(Column.from_dict({"name": name, "model": model, **own}))
    return tuple(found)


def _plain(value: Any) -> Any:
    """Decimals of the plan as floats, at any depth: grids are public and need not be exact."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return float(value) if isinstance(value, Decimal) else value


def _merged(model: dict[str, Any], theta: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Theta's ranges put into the model, also into one inside another (a spike's)."""
    made = dict(model)
    for key, value in theta.items():
        inner = made.get(key)
        if key == "model" and isinstance(value, Mapping):
            inner = {"kind": inner} if isinstance(inner, str) else dict(inner or {})
            made[key] = _merged(inner, value, name)
        elif key in made:
            raise PlanError(
                f"column {name!r} has {key!r} under model and under theta.", remedy="Give it once."
            )
        else:
            made[key] = value
    return made


def pairs_of(plan: Setting, section: ModelRecordsSection, figures: Invariants) -> Records:
    """What must look alike: the plan's pairs, or with public columns one person's other values.

    The latter needs figures that a single value cannot break, those about no synthesised column;
    the columns they are about are then taken as known too. Other figures have their usual price.
    """
    told = (*figures.equalities, *figures.bounds)
    about = Cells(plan.schema, told).bases
    if not section.public or plan.unit.max_rows is not None or set(about) & set(section.model):
        return plan.adjacency(figures)
    known = {*section.public, *about}
    return SensitiveValues(figures, tuple(name for name in plan.schema.names if name in known))


def build(plan: Setting, section: ModelRecordsSection, figures: Invariants) -> Synthesizer:
    """The synthesizer of one section over the databases that agree with `figures`."""
    pairs = pairs_of(plan, section, figures)
    try:
        made = columns(section)
        if section.epsilon is None:
            assert section.M is not None
            return Synthesizer(
                pairs, made, section.M, section.copies, section.records, tuple(section.public)
            )
        return Synthesizer.calibrate(
            Guarantee.pure(section.epsilon, under=pairs),
            made,
            copies=section.copies,
            records=section.records,
            public=section.public,
            bound=section.M,
        )
    except (TypeError, ValueError, AttributeError):
        raise PlanError(
            f"release '{section.name}': model or theta has a value of the wrong kind.",
            remedy="Ranges are [low, high, points] with numbers; see docs/reference/plan.md.",
        ) from None


def check(plan: Setting, section: ModelRecordsSection, figures: Invariants) -> ModelRecordsCheck:
    """What it promises, from public parameters alone."""
    made = build(plan, section, figures)
    counted = joint_loss([made.description], plan.adjacency(figures)).epsilon
    return ModelRecordsCheck(section, made, planned(made.guarantee, plan), counted)


@contextmanager
def offer(
    plan: Setting,
    section: ModelRecordsSection,
    made: Synthesizer,
    figures: Invariants,
    randomness: Randomness | None,
    progress: Tell,
) -> Iterator[Offer]:
    """Read and check the data and work out the laws; what is left is to draw."""
    progress("reading the data")
    with Microdata.open(plan.source, plan.schema, plan.unit) as data:
        fitted = made.fit(data)

    def draw() -> SyntheticRelease:
        return made.release(fitted, randomness, section.name)

    def holds(now: Ledger) -> bool:
        current = now.figures
        return current == figures or build(plan, section, current) == made

    yield Offer(
        section.name,
        made.description,
        planned(made.guarantee, plan),
        draw,
        lambda: made_up(made, section.name),
        render,
        holds,
        made.copies * (made.records or fitted.n) * _row(made),
    )


def _row(made: Synthesizer) -> int:
    """Bytes that one synthetic record takes at most, as CSV and as Parquet."""
    axes = made.schema.axes(made.names)
    longest = (max(len(level.encode()) for level in axis.levels) for axis in axes)
    return 2 * sum(max(size, _NUMBER) + _SEPARATORS for size in longest)


def made_up(made: Synthesizer, name: str) -> SyntheticRelease:
    """A release of the same form, in which all records have the first level of every column."""
    records = made.records or 1
    codes = {column: np.zeros(records, dtype=np.int64) for column in made.names}
    source = SeededRandomness(0)
    copy = records_table(made.schema, made.names, codes, generator_of(source))
    return SyntheticRelease(
        name, made.description, made.guarantee, source.label, False, (copy,) * made.copies
    )
