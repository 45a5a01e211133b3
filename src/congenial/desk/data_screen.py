"""The check of the records: which columns have which problem, and where the private list is.

How many rows, which values and which rows are confidential: they stand in a private folder on the
desk's machine, and no page shows them.
"""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from congenial.desk.jobs import Tell
from congenial.desk.publication_screen import start_job
from congenial.desk.rendering import address
from congenial.desk.visit import Visit
from congenial.publication import data_report


def show_data(visit: Visit) -> Response:
    """What the last check found, in kinds of problems."""
    return visit.page(
        "data.html",
        found=_found(visit),
        source=visit.plan.data.source,
        place=f"{data_report.FOLDER}/problems.csv",
        may_check=visit.may("reserve"),
        note=data_report.SCHEMA_IS_PUBLIC,
    )


def _found(visit: Visit) -> dict[str, Any] | None:
    """The last check without its numbers and values."""
    try:
        path = visit.path.parent / data_report.FOLDER / "problems.json"
        told = json.loads(path.read_text(encoding="utf-8"))
        problems = [{"column": one["column"], "kind": one["kind"]} for one in told["problems"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return {"fits": not problems, "problems": problems}


def check_records(visit: Visit) -> Response:
    """Look at the records, and write what is wrong with them to the private folder."""
    plan, folder = visit.plan, visit.path.parent / data_report.FOLDER

    def work(tell: Tell) -> None:
        tell("looking at the files")
        data_report.write(data_report.check_records(plan, progress=tell), folder)

    return start_job(visit, "Checking the records", work, address("plan", visit.key, "data"))
