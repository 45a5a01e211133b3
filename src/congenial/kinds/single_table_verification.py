"""`verify` for a protected table: labels, sums, bounds, the grid, the promise, and its report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from congenial.figures.limits import limits
from congenial.figures.support import support
from congenial.kinds.kind import Check, Files, looked_into
from congenial.mechanisms.record_release import FOLLOWS
from congenial.mechanisms.single_table_release import Release, expected_table
from congenial.report.pictures import Blank
from congenial.report.render import has_pictures, more_pictures
from congenial.report.single_table_report import render


def verify(files: Files, release: Release) -> list[Check]:
    """What a protected table must satisfy."""
    signed = release.raw is None and not release.description.nonnegative
    looks = {
        "table.parquet has the schema's labels": lambda: _same_table(files, release),
        "table.csv says the same": lambda: files.same("table.csv", release.as_csv()),
        "the table agrees with every figure it was drawn given": lambda: (
            _agrees(release, release.values) and _agrees(release, release.drawn)
        ),
        "values lie on the grid of the law": lambda: _on_grid(release),
        "counts said to be nonnegative are": lambda: signed or release.values.min() >= 0,
        "the table keeps every published bound": lambda: signed or _bounded(release),
        **_fitted(release),
    }
    return [*looked_into(looks, files), *_errors(release), _follows(release)]


def _follows(release: Release) -> Check:
    """The promise follows from the law."""
    made = release.mechanism
    follows = release.guarantee.follows_from(made.guarantee)
    return Check(FOLLOWS, made.priced == release.description and follows)


def _fitted(release: Release) -> dict[str, Callable[[], bool]]:
    """Printed counts, where they are not those drawn, are worked out again."""
    if release.raw is None:
        return {}
    from congenial.mechanisms.projection.projection import follows_from_draw

    return {"printed counts follow from those drawn": lambda: follows_from_draw(release)}


def _errors(release: Release) -> list[Check]:
    """How far cells may be off, worked out again."""
    if not release.mechanism.additive:
        return []
    holds = release.errors.follow_from(
        release.mechanism, release.published, release.drawn, release.fitted
    )
    return [Check("standard deviations and intervals follow from the law", holds)]


def _on_grid(release: Release) -> bool:
    """Whole numbers, or multiples of the step that real values are rounded to."""
    step = release.description.grid or 1
    return all(not np.mod(values, step).any() for values in (release.values, release.drawn))


def _agrees(release: Release, values: Any) -> bool:
    """Known sums are as published, and cells known to be empty are.

    A table that does not keep the figures (ordinary noise) does not claim to; one that does says
    what they are.
    """
    known = support(release.description.support, release.table)
    return (known.totals is not None or not known.groups) and known.agrees(values)


def _bounded(release: Release) -> bool:
    """Bounds that the table can show hold, for counts drawn or projected to keep them."""
    known = limits(release.published, release.table)
    return bool(known.hold(release.values.reshape(-1)))


def _same_table(files: Files, release: Release) -> bool:
    found = expected_table(release.schema, release.description)
    return bool(found.read(files["table.parquet"]).equals(release.to_arrow()))


def expected_report(release: Release, promise: str, page: str) -> str:
    """The report with the pictures of a page left empty, but for maps, which are drawn anew."""
    if release.schema.about.map is None:
        return render(release, promise, Blank(has_pictures(page)))
    plain = render(release, promise, Blank(False))
    return render(release, promise, Blank(True)) if more_pictures(page, plain) else plain
