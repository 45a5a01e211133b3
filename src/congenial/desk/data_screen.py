"""The check of the records: which columns have which problem, and where the private list is.

How many rows, which values and which rows are confidential: they stand in a private folder on the
desk's machine, and no page shows them.
"""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from congenial.desk import plan_edits
from congenial.desk.jobs import Tell
from congenial.desk.publication_screen import start_job
from congenial.desk.rendering import address
from congenial.desk.visit import Visit
from congenial.desk.workspace import save, text_digest
from congenial.publication import data_report

EXAMPLES = 20  # values of each problem, in the private folder only
WORDS = {
    "not in the schema": "values that the plan does not name",
    "unit missing": "rows that do not say whose they are",
    "unit repeated": "more rows of one person than the plan allows",
    "blank rows": "some rows are empty throughout",
}


def show_data(visit: Visit) -> Response:
    """What the last check found, in kinds of problems, and what can be done about it."""
    return visit.page(
        "data.html",
        found=_found(visit),
        source=visit.plan.data.source,
        place=data_report.FOLDER,
        may_check=visit.may("reserve"),
        may_fix=visit.may("propose"),
        note=data_report.SCHEMA_IS_PUBLIC,
        opened=text_digest(visit.text),
        added=visit.query.get("added") == "yes",
    )


def _found(visit: Visit) -> dict[str, Any] | None:
    """The last check without its numbers and values; lines that quote a value are counted only."""
    try:
        path = visit.path.parent / data_report.FOLDER / "problems.json"
        told = json.loads(path.read_text(encoding="utf-8"))
        names = ("column", "kind", "remedy")
        problems = [{name: str(one[name]) for name in names} for one in told["problems"]]
        for one in problems:
            one["kind"] = WORDS.get(one["kind"], one["kind"])
        lines = [one for one in told["lines"] if not one["shows_values"]]
        missing = [one for one in lines if not _is_there(visit.text, one)]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return {
        "fits": not problems,
        "problems": problems,
        "lines": missing,
        "quoting": len(lines) < len(told["lines"]),
    }


def _is_there(text: str, line: dict[str, Any]) -> bool:
    """Whether the plan has a line already."""
    said = plan_edits.read(text).get(line["section"])
    wanted = plan_edits.read(line["line"])
    return isinstance(said, dict) and all(said.get(key) == value for key, value in wanted.items())


def fix_plan(visit: Visit) -> Response:
    """Add the lines that were suggested and quote no value to the plan."""
    text = visit.text
    found = _found(visit) or {"lines": []}
    for one in found["lines"]:
        text = plan_edits.add_line(text, one["section"], one["line"])
    visit.parsed(text)
    save(visit.path, text, visit.form.get("opened", ""))
    answer = visit.go("plan", visit.key, "data")
    answer.headers["location"] += "?added=yes"
    return answer


def check_records(visit: Visit) -> Response:
    """Look at the records, and write what is wrong with them to the private folder."""
    plan, folder = visit.plan, visit.path.parent / data_report.FOLDER

    def work(tell: Tell) -> None:
        tell("looking at the files")
        data_report.write(data_report.check_records(plan, EXAMPLES, progress=tell), folder)

    return start_job(visit, "Checking the records", work, address("plan", visit.key, "data"))
