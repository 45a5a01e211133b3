"""`verify` for tables by parts: promise, design, estimates, whole counts, part by part."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from congenial.data.advance import Advance
from congenial.errors import BundleError
from congenial.figures.sum_ranges import table_ranges
from congenial.figures.support import support
from congenial.kinds.kind import Check, Files
from congenial.kinds.part_pool import run_each, workers_for
from congenial.kinds.parted_run import SMALL, upper_columns
from congenial.kinds.stated_aims import aim_holds
from congenial.kinds.tables import AIM, FITTED, design_checks
from congenial.mechanisms.measured_tables import described
from congenial.mechanisms.parted_checks import (
    RESIDUAL,
    PartHolds,
    PublishedPart,
    close,
    holds,
    says,
)
from congenial.mechanisms.parted_steps import part_folder, part_name
from congenial.mechanisms.parted_tables import PartedTables
from congenial.mechanisms.record_release import FOLLOWS
from congenial.mechanisms.tables_by_parts_release import SUMMARY, PartedRelease
from congenial.pairs.adjacency import Adjacency
from congenial.tables.upper_estimator import UpperEstimates

WRITTEN = "every part's files read back as written"
DRAWN = "tables as drawn keep the figures they were drawn given"
LARGEST = "the largest standard deviation told of a table is that of its cells"
COUNTS = "printed counts are the whole counts fitted to the estimates"


def part_file(files: Files, part: str) -> str:
    """The name of a part's file, from parts.json."""
    told = json.loads(files[SUMMARY])["parts"]
    for one in told:
        if part in (value for key, value in one.items() if key != "file"):
            return str(one["file"])
    raise BundleError(
        f"the bundle has no part {part!r}.", remedy=f"{SUMMARY} lists the parts by name."
    )


def verify(files: Files, release: PartedRelease) -> list[Check]:
    """What tables by parts must satisfy; every part is read twice, and never two at once here."""
    made = _made(release)
    workers = _workers(made)
    told = partial(_told, files, len(made.parts.labels))
    reading, again = told("reading the parts"), told("working out the parts again")
    found = run_each(says, ((one,) for one in _parts(made, release)), workers, reading)
    below = [one.below for one in sorted(found, key=lambda one: one.number)]
    above, upper = _above(made, release, below)
    tasks = ((one, above.above(one.number)) for one in _parts(made, release))
    parts: list[PartHolds] = run_each(holds, tasks, workers, again)
    keeps = all(one.keeps for one in found) and _upper_keeps(made, release)
    return [
        *_public(files, release, made),
        Check(DRAWN, keeps),
        Check(WRITTEN, all(one.written for one in parts), _which(made, parts, "written")),
        Check(
            FITTED,
            upper["estimates"] and all(one.estimates for one in parts),
            _which(made, parts, "estimates") or f"within {RESIDUAL:g} standard deviations",
        ),
        Check(
            "standard deviations follow from the noise",
            upper["deviations"] and all(one.deviations for one in parts),
            _which(made, parts, "deviations"),
        ),
        Check(LARGEST, all(_largest(parts, at) == sd for at, sd in release.worst.items())),
        Check(
            COUNTS,
            upper["counts"] and all(one.counts for one in parts),
            _which(made, parts, "counts"),
        ),
    ]


def verify_part(files: Files, release: PartedRelease, part: str) -> list[Check]:
    """What one part must satisfy, given what is printed of its top node."""
    made = _made(release)
    one = _part(made, release, release.number(part))
    found = holds(one, None)
    given = f"given what is printed of {part}"
    return [
        *_public(files, release, made),
        Check(DRAWN, says(one).keeps),
        Check(WRITTEN, found.written),
        Check(FITTED, found.estimates, given),
        Check(
            LARGEST,
            all(_largest([found], at) <= sd for at, sd in release.worst.items()),
            f"or of cells outside {part}",
        ),
        Check(COUNTS, found.counts, given),
    ]


def _largest(parts: list[PartHolds], at: int) -> float:
    """The largest standard deviation that these parts print of a table."""
    return max(one.worst[at] for one in parts)


def _told(files: Files, total: int, step: str) -> Callable[[int], None]:
    """Tell which share of the parts is done."""
    return lambda done: files.progress(Advance(step, done / total))


def _made(release: PartedRelease) -> PartedTables:
    adjacency = release.guarantee.adjacency
    assert isinstance(adjacency, Adjacency)
    return PartedTables(adjacency, release.description)


def _public(files: Files, release: PartedRelease, made: PartedTables) -> list[Check]:
    """What does not depend on any draw."""
    same = all(files.same(name, content) for name, content in release.payload().items())
    found = design_checks(release, made.adjacency)
    names = {
        f"{folder}/{file}" for folder, inside in release_folders(release).items() for file in inside
    }
    return [
        Check("every table above the parts reads back as written", same),
        Check("there is one file for every part of every table", names == set(release.part_files)),
        Check(FOLLOWS, _as_drawn(made) and release.guarantee.follows_from(made.guarantee)),
        Check("the noise keeps the promise of the design", found.feasible),
        Check("the design's types of differences are those of the figures", found.types),
        Check("the design is as near the best as it says", found.gap),
        Check(
            AIM,
            aim_holds(
                str(release.description.design.get("aim")), release.tables, release.largest_sds
            ),
        ),
    ]


def _as_drawn(made: PartedTables) -> bool:
    """Whether every law is told as that of the noise that is drawn, under its mechanism's name."""
    return all(
        one == described(made.figures, one.table, one.family, one.scale)
        for one in made.description.measured
    )


def release_folders(release: PartedRelease) -> dict[str, list[str]]:
    """The files that a bundle must have, by folder."""
    files = [part_name(number) for number in range(len(release.parts.labels))]
    return {part_folder(release.tables, at): files for at in release.worst}


def _workers(made: PartedTables) -> int:
    cells = sum(made.schema.size(names) for names in made.tables)
    return 1 if cells < SMALL else workers_for(len(made.parts.labels), None)


def _part(made: PartedTables, release: PartedRelease, number: int) -> PublishedPart:
    folder = next(iter(release.part_files.values())).path.parents[1]
    return PublishedPart(number, made.part(number), made.below, folder)


def _parts(made: PartedTables, release: PartedRelease) -> Iterator[PublishedPart]:
    for number in range(len(made.parts.labels)):
        yield _part(made, release, number)


def _above(
    made: PartedTables, release: PartedRelease, below: list[Any]
) -> tuple[UpperEstimates, dict[str, bool]]:
    """What lies above the parts, worked out anew and compared with what is printed."""
    share = made.upper
    values = [_drawn(made, release, names) for names in share.tables]
    found = share.above(below).settled(values)
    again = upper_columns(made, found, values)
    told = {at: dict(columns) for at, columns in release.upper.items()}
    return found, {
        "estimates": all(
            close(told[at], again[at], table_ranges(share.figures, made.tables[at])) for at in again
        ),
        "deviations": all(
            np.allclose(told[at]["sd"], again[at]["sd"], rtol=RESIDUAL, atol=1e-9) for at in again
        ),
        "counts": all(np.array_equal(told[at]["count"], again[at]["count"]) for at in again),
    }


def _drawn(made: PartedTables, release: PartedRelease, names: tuple[str, ...]) -> Any:
    """A table above the parts as drawn; None if it was not."""
    if names not in made.tables:
        return None
    columns = release.upper.get(made.tables.index(names), {})
    return columns.get("count_as_drawn")


def _upper_keeps(made: PartedTables, release: PartedRelease) -> bool:
    share = made.upper
    return all(
        support(share.figures, share.tables[at]).agrees(_drawn(made, release, share.tables[at]))
        for at in share.drawn
    )


def _which(made: PartedTables, parts: list[PartHolds], what: str) -> str:
    """The parts that fail, the first few by name."""
    failed = sorted(one.number for one in parts if not getattr(one, what))
    return ", ".join(made.parts.labels[number] for number in failed[:5])
