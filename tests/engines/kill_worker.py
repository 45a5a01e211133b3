"""A release by group on two executors, one of which is killed after its first draw.

Run by test_killed_worker.py in a process of its own, because a Spark session is one per process.
Prints one line of JSON: what was published, and every draw that was made.
"""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from congenial.data.schema import Schema
from congenial.data.tabulate import Microdata, tabulate
from congenial.figures.invariants import publish
from congenial.figures.statements import total
from congenial.kinds import by_group
from congenial.mechanisms.congenial import Congenial
from congenial.pairs.adjacency import SemiAdjacent
from congenial.privacy.guarantee import Guarantee
from tests.engines import two_executors

GROUPS = 12


def murderous(make: Any, folder: str) -> Any:
    """A worker that notes each draw; the first attempt at group 3 then kills its executor."""

    def factory(law: Any, seed: int | None) -> Any:
        work = make(law, seed)

        def attempt(rows: Any) -> Any:
            import os
            import signal
            import uuid
            from pathlib import Path

            drawn = work(rows)
            group = drawn["group"][0].as_py()
            note = Path(folder) / f"{group}-{uuid.uuid4().hex}"
            note.write_text(str(drawn["y"][0].as_py()))
            if group == 3 and len(list(Path(folder).glob("3-*"))) == 1:
                # This process is forked by a daemon that the executor started.
                status = Path(f"/proc/{os.getppid()}/status").read_text()
                executor = next(x for x in status.splitlines() if x.startswith("PPid"))
                os.kill(int(executor.split()[1]), signal.SIGKILL)
                os._exit(1)
            return drawn

        return attempt

    return factory


def main(folder: Path) -> None:
    notes = folder / "notes"
    notes.mkdir()
    spark = two_executors.start(1024)
    schema = Schema.from_dict(
        {
            "county": {"integers": [0, GROUPS - 1]},
            "sex": {"levels": ["f", "m"]},
            "age": {"edges": [0, 18, 65], "top": "65+"},
        }
    )
    n = 2_000
    people = pa.table(
        {
            "county": [i % (GROUPS - 1) for i in range(n)],  # the last county is empty
            "sex": ["fm"[i % 2] for i in range(n)],
            "age": [i % 90 for i in range(n)],
        }
    )
    (folder / "people").mkdir()
    for part in range(4):
        pq.write_table(people.slice(part * 500, 500), folder / "people" / f"{part}.parquet")
    table = tabulate(people, schema)
    adjacency = SemiAdjacent(publish(table, total(by=["county"])))
    mechanism = Congenial.calibrate(Guarantee.pure(Fraction(1), adjacency), schema.names)
    by_group.slice_worker = murderous(by_group.slice_worker, str(notes))
    with Microdata.open(f"spark:{folder / 'people'}", schema) as data:
        groups = by_group.ByGroup(mechanism, data, ("county",))
        groups.check()
        release = groups.release()
    drawn: dict[str, list[list[int]]] = {}
    for note in notes.iterdir():
        drawn.setdefault(note.name.split("-")[0], []).append(json.loads(note.read_text()))
    kept = bool((release.margin("county") == table.marginal(["county"]).counts).all())
    published = release.values.reshape(GROUPS, -1).tolist()
    print(json.dumps({"published": published, "drawn": drawn, "kept": kept}))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
