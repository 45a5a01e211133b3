"""What one process does with one part of a nation: check, draw, tell, settle, write.

Each step reads and writes files of a private folder and nothing else, so that any runner may call
it, in any order, on any machine that sees the folder, and again after a crash: a step whose file is
there and whole is not done twice, and a draw that is repeated takes the same words
(`keyed_randomness`). Files are synced, with the folder that names them, before a step ends.

    counts/part=K/    CONFIDENTIAL counts of part K: cell, n; only cells with somebody
    drawn/K.npz       its tables as drawn, what they say of its top node (`Below`), and CONFIDENTIAL
                      counts of that node, for the tables above the parts
    parts/T/          table T below the parts as published, one Parquet file per part
    done/K.json       digests and rows of part K's files
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np

from congenial.data.durable_files import write_whole
from congenial.data.engines.checked_parquet import as_parquet
from congenial.data.table import Table
from congenial.data.workload import Ints
from congenial.figures.sum_ranges import SumRanges, table_ranges
from congenial.mechanisms.parted_tables import Names, Share
from congenial.mechanisms.tables_files import TableFile, file_name
from congenial.sampling.keyed_randomness import KeyedRandomness, key_of
from congenial.tables.intervals import COUNTS, ends
from congenial.tables.joint_estimator import NOISELESS
from congenial.tables.part_estimator import Above, Below

LEVEL = 0.9  # of the intervals in the files


@dataclass(frozen=True, eq=False)
class PartTask:
    """One part: what is drawn there (public), and where its files are."""

    number: int
    label: str
    share: Share
    axes: Names  # the attributes of the counts, in order
    top: Names  # the same, with the part in place of its areas
    below: tuple[int, ...]  # the tables that are written for the part
    folder: Path

    def file(self, kind: str, ending: str) -> Path:
        """A file of this part."""
        return self.folder / kind / f"{self.number}.{ending}"


# ---- counts: confidential ----------------------------------------------------------------------


def counts_of(task: PartTask) -> Table:
    """CONFIDENTIAL: the counts of a part."""
    shape = tuple(task.share.schema.attribute(name).size for name in task.axes)
    flat = np.zeros(prod(shape), dtype=np.int64)
    cells, people = _cells(task.folder, task.number)
    flat[cells] = people
    return Table(task.share.schema, task.axes, flat.reshape(shape))


def _cells(folder: Path, number: int) -> tuple[Ints, Ints]:
    """CONFIDENTIAL: the cells of a part with somebody, in order, and how many are in each."""
    import pyarrow.parquet as pq

    read = [np.empty((2, 0), dtype=np.int64)]
    for file in (folder / "counts" / f"part={number}").glob("*.parquet"):
        found = pq.ParquetFile(file).read(columns=["cell", "n"])
        read.append(np.stack([found["cell"].to_numpy(), found["n"].to_numpy()]).astype(np.int64))
    cells, people = np.concatenate(read, axis=1)
    order = np.argsort(cells)
    return cells[order], people[order]


def counted_part(folder: Path, number: int) -> dict[str, Any]:
    """CONFIDENTIAL: what a part's counts are known by.

    The digest is of the counts, not of the files: counted again, they give the same.
    """
    cells, people = _cells(folder, number)
    digest = hashlib.sha256(np.stack([cells, people]).astype("<i8").tobytes()).hexdigest()
    return {"digest": digest, "rows": len(cells), "people": int(people.sum())}


def check_part(task: PartTask) -> None:
    """Refuse counts that do not agree with the figures of the part: before anything is drawn."""
    task.share.check(counts_of(task))


# ---- drawing -----------------------------------------------------------------------------------


def draw_part(task: PartTask, keys: Mapping[int, bytes]) -> None:
    """Draw every table of the part once, and tell what they say of its top node.

    `keys`: one for each table that is drawn in the part, and for nothing else.
    """
    if is_drawn(task.folder, task.number):
        return
    share, counts = task.share, counts_of(task)
    values: list[Any] = [None] * len(share.tables)
    for at in share.drawn:
        words = KeyedRandomness(keys[at])
        values[at] = share.draw(at, counts.marginal(share.tables[at]).counts, words)
    below = share.part.below(share.part.upward(values))
    top = counts.marginal(task.top).counts
    packed = _packed(values, below) | {"top": top}
    write_whole(task.file("drawn", "npz"), lambda file: np.savez(file, **packed))


def is_drawn(folder: Path, number: int) -> bool:
    """Whether a part was drawn, and its file is whole."""
    try:
        with ZipFile(folder / "drawn" / f"{number}.npz") as file:
            return file.testzip() is None
    except (OSError, ValueError, EOFError, NotImplementedError, BadZipFile):
        return False


def key_for(secret: bytes, names: Names, label: str | None) -> bytes:
    """The key of the words of one table in one part; None: above the parts."""
    return key_of(secret, json.dumps([list(names), label]))


def _packed(values: Sequence[Any], below: Below) -> dict[str, Any]:
    """Plain arrays."""
    packed = {f"drawn {at}": one for at, one in enumerate(values) if one is not None}
    for contrasts, one in below.means.items():
        key = json.dumps(list(contrasts))
        packed[f"mean {key}"], packed[f"covariance {key}"] = one, below.covariances[contrasts]
    packed["start"] = below.start
    packed["precision"] = np.array([below.p, below.q])
    packed["bounds"] = np.array([below.low, below.high])
    return packed


def below_of(file: Path) -> Below:
    """What a part that was drawn says of its top node."""
    with np.load(file, allow_pickle=False) as found:
        means, covariances = (
            {
                tuple(json.loads(key.partition(" ")[2])): found[key]
                for key in found.files
                if key.startswith(f"{what} ")
            }
            for what in ("mean", "covariance")
        )
        p, q = found["precision"].tolist()
        low, high = found["bounds"].tolist()
        return Below(means, covariances, found["start"], p, q, low, high)


def top_of(file: Path) -> Any:
    """CONFIDENTIAL: the counts of the top node of a part that was drawn."""
    with np.load(file, allow_pickle=False) as found:
        return found["top"]


def drawn_of(task: PartTask) -> list[Any]:
    """The part's tables as drawn; None for those that are not drawn there."""
    with np.load(task.file("drawn", "npz"), allow_pickle=False) as found:
        tables = range(len(task.share.tables))
        return [found[f"drawn {at}"] if f"drawn {at}" in found.files else None for at in tables]


# ---- settling and writing ----------------------------------------------------------------------


def finish_part(task: PartTask, above: Above) -> None:
    """Estimates and whole counts of the part, written as they are published."""
    if is_done(task.folder, task.number):
        return
    values = drawn_of(task)
    share = task.share
    settled = share.part.settled(share.part.upward(values), above)
    done = {}
    for at in task.below:
        names = share.tables[at]
        given = (settled.fitted.table(names), settled.deviations(names), settled.counts(names))
        columns = numbers(*given, values[at], table_ranges(share.figures, names))
        content = as_parquet(table_file(task, at).table(columns))
        name = f"{part_folder(share.tables, at)}/{part_name(task.number)}"
        write_whole(task.folder / "parts" / name, content)
        worst = float(columns["sd"].max(initial=0.0))
        done[name] = {"digest": hashlib.sha256(content).hexdigest(), "table": at, "sd": worst}
    text = json.dumps(done).encode()
    write_whole(task.file("done", "json"), text)


def is_done(folder: Path, number: int) -> bool:
    """Whether a part's files are written, each with its digest."""
    try:
        files = done_of(folder / "done" / f"{number}.json")
        return bool(files) and all(
            hashlib.sha256((folder / "parts" / name).read_bytes()).hexdigest() == one["digest"]
            for name, one in files.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # absent, or damaged
        return False


def done_of(file: Path) -> dict[str, Any]:
    """Digests of a part's files, by name."""
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def part_folder(tables: Sequence[Names], at: int) -> str:
    """The folder of a table's files."""
    return file_name(list(tables), at)


def part_name(number: int) -> str:
    """The file of a part in the folder of a table."""
    return f"part-{number:05d}.parquet"


def table_file(task: PartTask, at: int) -> TableFile:
    """The form of a table's file in this part."""
    return TableFile(task.share.schema, task.share.tables, at, True, at in task.share.drawn)


def numbers(
    estimates: Any, deviations: Any, counts: Any, drawn: Any, ranges: SumRanges = COUNTS
) -> dict[str, Any]:
    """The columns of a table; estimates are whole where figures tell a cell."""
    deviations = np.where(deviations < NOISELESS, 0.0, deviations)
    estimates = np.where(deviations == 0, np.rint(estimates), estimates)
    low, high = ends(estimates, deviations, LEVEL, counts, ranges)
    found = {"count": counts, "estimate": estimates, "sd": deviations}
    found |= {"low": low.astype(np.int64), "high": high.astype(np.int64)}
    return found if drawn is None else found | {"count_as_drawn": drawn}


def make_folders(folder: Path, tables: Sequence[Names], below: Sequence[int]) -> None:
    """Where the steps write. They make no folder: one that ends after its run was removed fails."""
    for name in ("drawn", "done", *(f"parts/{part_folder(tables, at)}" for at in below)):
        (folder / name).mkdir(parents=True, exist_ok=True)
