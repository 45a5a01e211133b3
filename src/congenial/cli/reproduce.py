"""`congenial reproduce`: the tables and figures of the five papers, corrected, and our studies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from congenial.cli.command_options import Json, with_examples
from congenial.cli.output import Document, emit, say, working
from congenial.errors import CongenialError
from congenial.papers import catalogue
from congenial.papers.item import Study
from congenial.papers.printed_pages import write_page

_MOST_ROWS = 40  # rows of a result shown on the screen


@with_examples(
    "congenial reproduce --list",
    "congenial reproduce congenial-dp table-2",
    "congenial reproduce congenial-dp --out figures --data DIR",
    "congenial reproduce semi-dp --page --out pages",
)
def reproduce(
    paper: Annotated[str | None, typer.Argument(help="The paper; --list names them.")] = None,
    item: Annotated[
        str | None, typer.Argument(help="A table, figure or study of the paper [default: all].")
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="List every item, its source and the files it reads.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write JSON, CSV and pictures to this folder.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of the public data files.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of every draw.")] = 0,
    quick: Annotated[
        bool | None,
        typer.Option(
            help="A smaller version; the notes say what is smaller.",
            show_default="only with --page",
        ),
    ] = None,
    page: Annotated[
        bool,
        typer.Option(
            help="Write one page for the paper: printed numbers beside ours, with pictures."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Repeat a table, figure or study of the papers.

    For study only: nothing here protects your data.
    """
    if listed:
        rows = catalogue.listing([paper] if paper else catalogue.PAPERS)
        emit({"items": rows}) if as_json else _say(listed=_by_paper(rows))
        return
    if paper is None:
        raise CongenialError(
            "which paper?", remedy="Name one; `congenial reproduce --list` shows them."
        )
    if page and item is not None:
        raise CongenialError("--page is for a whole paper.", remedy=f"Leave out '{item}'.")
    quick = page if quick is None else quick
    names = [item] if item is not None else list(catalogue.items(paper))
    results, failed = [], []
    for name in names:
        with working(f"{paper} {name}") as tell:
            try:
                result = catalogue.run(paper, name, Study(data, seed, quick, tell))
            except CongenialError as error:
                if item is not None:
                    raise
                failed.append({"item": name, "error": str(error)})
                continue
        if out is not None and not page:
            result["files"] = [str(path) for path in catalogue.write(result, out)]
        results.append(result)
        if not as_json and not page:
            _say(result=result, rows=[[_cell(value) for value in row] for row in result["rows"]])
    written = ""
    if page:
        written = str(write_page(paper, results, out or Path()))
    document = {"results": results, "failed": failed}
    emit(document) if as_json else _say(failed=failed, page=written)


def _say(**shown: Any) -> None:
    """Some of what there is to say."""
    nothing: Document = {"listed": (), "result": None, "rows": (), "failed": (), "page": ""}
    say("reproduce.txt", **nothing | shown, most=_MOST_ROWS)


def _by_paper(rows: list[dict[str, str]]) -> list[tuple[str, list[dict[str, str]]]]:
    papers = dict.fromkeys(row["paper"] for row in rows)
    return [(paper, [row for row in rows if row["paper"] == paper]) for paper in papers]


def _cell(value: object) -> object:
    """A number to five digits; a dash where there is none."""
    if value is None:
        return "-"
    return f"{value:.5g}" if isinstance(value, float) else value
