"""`verify` for several tables: promise, design, estimates, whole counts, all worked out anew."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from congenial.data.workload import Workload
from congenial.kinds.kind import Check, Files, looked_into
from congenial.kinds.stated_aims import aim_holds
from congenial.mechanisms.joint_tables import JointTables
from congenial.mechanisms.record_release import FOLLOWS
from congenial.mechanisms.released import Released
from congenial.mechanisms.several_tables_release import TablesRelease, by_table
from congenial.pairs.adjacency import Adjacency
from congenial.privacy.descriptions import TablesDescription
from congenial.tables.design_document import DesignChecks, recheck
from congenial.tables.joint_estimator import Answer

RESIDUAL = 1e-6  # of a standard deviation, by which recomputed estimates may differ

AIM = "the aim of the design is one, and what it says of accuracy holds"
FITTED = "estimates are the least squares fit to the tables as drawn"


def verify(files: Files, release: TablesRelease) -> list[Check]:
    """What several tables must satisfy."""
    adjacency = release.guarantee.adjacency
    assert isinstance(adjacency, Adjacency)
    made = JointTables(adjacency, release.description)
    again = cache(lambda: made.estimator.answer(by_table(release.description, release.drawn)))
    design = cache(lambda: design_checks(release, adjacency))
    looks = {
        "every table reads back as written": lambda: _same(files, release),
        FOLLOWS: lambda: _follows(made, release),
        "the noise keeps the promise of the design": lambda: design().feasible,
        "the design's types of differences are those of the figures": lambda: design().types,
        "the design is as near the best as it says": lambda: design().gap,
        AIM: lambda: aim_holds(
            str(release.description.design.get("aim")),
            release.tables,
            [float(one.max(initial=0.0)) for one in release.deviations],
        ),
        "tables as drawn keep the figures they were drawn given": lambda: _drawn_given(
            made, release
        ),
        FITTED: lambda: _close(release, release.estimates, again().estimates),
        "standard deviations follow from the noise": lambda: _deviations(made, release),
        "printed counts are the whole counts fitted to the estimates": lambda: (
            _counts(release, again()) or made.estimator.as_near(again().fitted, release.counts)
        ),
    }
    detail = f"within {RESIDUAL:g} standard deviations, by "
    return [
        replace(one, detail=detail + again().fitted.method) if one.what == FITTED else one
        for one in looked_into(looks, files)
    ]


def _same(files: Files, release: TablesRelease) -> bool:
    """Whether the files are those that would be written now."""
    return all(files.same(name, content) for name, content in release.payload().items())


def _follows(made: JointTables, release: TablesRelease) -> bool:
    """The promise is that of the laws, which state what their samplers cost."""
    stated = all(one.priced == one.description for one in made.mechanisms)
    return stated and release.guarantee.follows_from(made.guarantee)


def design_checks(release: Released, adjacency: Adjacency) -> DesignChecks:
    """The design of a release of tables, worked out anew."""
    told = release.description
    assert isinstance(told, TablesDescription)
    workload = Workload.of(release.schema, told.tables)
    scales = {one.table: one.scale for one in told.measured}
    gaussian = told.family == "discrete_gaussian"
    parameters = [
        Fraction(0) if names not in scales else 1 / scales[names] if gaussian else scales[names]
        for names in told.tables
    ]
    return recheck(told.design, workload, adjacency, parameters)


def _drawn_given(made: JointTables, release: TablesRelease) -> bool:
    from congenial.figures.support import support

    return all(
        support(one.description.support, one.description.table).agrees(values)
        for one, values in zip(made.mechanisms, release.drawn, strict=True)
    )


def _close(release: TablesRelease, told: Any, again: Any) -> bool:
    return all(
        bool(np.all(np.abs(a - b) <= RESIDUAL * sd + 1e-9 * (1 + np.abs(b))))
        for a, b, sd in zip(told, again, release.deviations, strict=True)
    )


def _deviations(made: JointTables, release: TablesRelease) -> bool:
    return all(
        bool(np.allclose(made.estimator.deviations(names).values, told, rtol=RESIDUAL, atol=1e-9))
        for names, told in zip(release.tables, release.deviations, strict=True)
    )


def _counts(release: TablesRelease, again: Answer) -> bool:
    return all(
        a is None if b is None else a is not None and bool(np.array_equal(a, b))
        for a, b in zip(release.counts, again.counts, strict=True)
    )
