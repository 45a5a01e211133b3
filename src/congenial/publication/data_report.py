"""The check of a plan's records, written for the curator alone: a private folder, mode 0600.

Every number here is confidential. It is refused inside a bundle, and no bundle is made from it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from congenial.data.data_check import check_data
from congenial.data.data_problems import DataCheck
from congenial.data.text_files import rows_csv
from congenial.publication.bundle import private_file, private_folder
from congenial.publication.plan import Plan

FOLDER = "data-check"
CONFIDENTIAL = (
    "CONFIDENTIAL: these numbers and values are computed from the records. They are for the "
    "curator only: put none of them into a bundle, a plan or a message."
)
SCHEMA_IS_PUBLIC = (
    "A plan and its schema are public: adding a category because it occurs in the data shows "
    "that somebody has it. Take categories from a code list, not from the data."
)
LINES = "lines.toml"
COLUMNS = ("column", "problem", "rows", "value", "rows with it", "at rows", "meant", "what to do")


def check_records(
    plan: Plan, examples: int = 0, progress: Callable[[str], Any] = lambda _: None
) -> DataCheck:
    """Every problem with the records of a plan. Reads CONFIDENTIAL data; spends nothing."""
    return check_data(plan.source, plan.schema, plan.unit, examples, progress)


def write(found: DataCheck, folder: Path) -> list[Path]:
    """Write the check as JSON and CSV that only their owner may read, never in a bundle."""
    private_folder(folder)
    document = {"note": CONFIDENTIAL} | found.to_dict()
    texts = {
        "problems.json": json.dumps(document, indent=1, ensure_ascii=False),
        "problems.csv": rows_csv([COLUMNS, *_rows(found)]),
        LINES: _plan_lines(found),
    }
    return [_write(folder / name, text) for name, text in texts.items()]


def _plan_lines(found: DataCheck) -> str:
    """Suggested fixes, by section, to copy into the plan."""
    head = [f"# {CONFIDENTIAL}", f"# {SCHEMA_IS_PUBLIC}"]
    for section in dict.fromkeys(line.section for line in found.lines):
        mine = [str(line) for line in found.lines if line.section == section]
        head += ["", f"[{section}]", *mine]
    return "\n".join(head) + "\n"


def _write(path: Path, text: str) -> Path:
    private_file(path).write_text(text, encoding="utf-8")
    return path


def _rows(found: DataCheck) -> Iterator[tuple[object, ...]]:
    """One row per example, or one per problem where there are none."""
    for problem in found.problems:
        head = (problem.column, problem.kind, "" if problem.rows is None else problem.rows)
        if not problem.examples:
            yield (*head, "", "", "", problem.pattern, problem.remedy)
        for example in problem.examples:
            at = " ".join(map(str, example.at))
            yield (
                *head,
                example.value or "",
                example.rows,
                at,
                example.meant or "",
                problem.remedy,
            )
