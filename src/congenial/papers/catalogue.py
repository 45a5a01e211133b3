"""Which tables, figures and studies there are, how to run them, and how results are written.

Papers are modules that are only imported when asked for. A result is plain data; here it becomes
JSON, CSV and, where it has a chart and the extra `report` is installed, PNG and SVG.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from congenial.data.text_files import rows_csv
from congenial.errors import CongenialError
from congenial.papers.item import Item, Study
from congenial.report import pictures
from congenial.report.charts import FIELDS, chart, off_scale

PAPERS: dict[str, str] = {
    "congenial-dp": "congenial.papers.congenial_dp",
    "semi-dp": "congenial.papers.semi_dp",
    "partially-private-data": "congenial.papers.partially_private_data",
    "distribution-privacy": "congenial.papers.distribution_privacy",
    "pseudo-posterior": "congenial.papers.pseudo_posterior",
}


def items(paper: str) -> dict[str, Item]:
    """The tables, figures and studies of one paper, by name."""
    if paper not in PAPERS:
        raise CongenialError(
            f"no paper is called '{paper}'.", remedy=f"Use one of {', '.join(PAPERS)}."
        )
    paper_items: dict[str, Item] = importlib.import_module(PAPERS[paper]).ITEMS
    return paper_items


def listing(papers: Iterable[str] = PAPERS) -> list[dict[str, str]]:
    """One row per item: paper, item, title, source, and the data files it reads."""
    return [
        {
            "paper": paper,
            "item": name,
            "title": item.title,
            "source": item.source,
            "files": ", ".join(item.files),
        }
        for paper in papers
        for name, item in items(paper).items()
    ]


def run(paper: str, item: str, study: Study) -> dict[str, Any]:
    """The result of one item: columns, rows, notes and perhaps a chart, with what made it."""
    listed = items(paper)
    if item not in listed:
        raise CongenialError(
            f"'{paper}' has no item '{item}'.", remedy=f"Use one of {', '.join(listed)}."
        )
    entry = listed[item]
    result = entry.run(study)
    _check(paper, item, result)
    return {
        "paper": paper,
        "item": item,
        "title": entry.title,
        "source": entry.source,
        "seed": study.seed,
        "quick": study.quick,
        **result,
        "notes": [*result["notes"], *_told(entry, study, result)],
    }


def _told(one: Item, study: Study, found: dict[str, Any]) -> list[str]:
    """What a reader of any item must know: what was reduced, what the picture cannot show."""
    notes = []
    if study.quick:
        notes.append(f"Reduced: {one.reduced or 'nothing, this item is as quick without it'}.")
    if hidden := off_scale(found):
        notes.append(
            f"Values of 0 ({hidden} here) are not in the picture: its axis is logarithmic."
        )
    return notes


def _check(paper: str, item: str, found: dict[str, Any]) -> None:
    """A result is a table; a chart names its columns."""
    width = len(found["columns"])
    assert all(len(row) == width for row in found["rows"]), f"{paper} {item}: ragged rows"
    chart = found.get("chart") or {}
    named = [chart[key] for key in FIELDS if chart.get(key)]
    table = chart.get("data", found)
    assert set(named) <= set(table["columns"]), f"{paper} {item}: the chart names no column"


def write(result: dict[str, Any], folder: str | Path) -> list[Path]:
    """Save a result of `run` as PAPER-ITEM.json and .csv, and .png and .svg if it has a chart.

    The folder is made if need be; files of an earlier run are replaced.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    stem = f"{result['paper']}-{result['item']}"
    written = [place / f"{stem}.json", place / f"{stem}.csv"]
    written[0].write_text(json.dumps(result, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    with written[1].open("w", newline="", encoding="utf-8") as file:
        file.write(rows_csv([result["columns"], *result["rows"]], line_end="\r\n"))
    if result.get("chart") and pictures.available():
        drawn = chart(result)
        for ending in ("png", "svg"):
            written.append(place / f"{stem}.{ending}")
            options = {"scale_factor": 2} if ending == "png" else {}
            drawn.save(str(written[-1]), format=ending, **options)
    return written
