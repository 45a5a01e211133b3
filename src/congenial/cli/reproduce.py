"""`congenial reproduce`: the tables and figures of the five papers, corrected, and our studies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from congenial.cli.command_options import Json, with_examples
from congenial.cli.output import Document, emit, heading, line, paragraph, table, working
from congenial.errors import CongenialError

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
    from congenial.papers import catalogue
    from congenial.papers.item import Study

    if listed:
        rows = catalogue.listing([paper] if paper else catalogue.PAPERS)
        emit({"items": rows}) if as_json else _list(rows)
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
                found = catalogue.run(paper, name, Study(data, seed, quick, tell))
            except CongenialError as error:
                if item is not None:
                    raise
                failed.append({"item": name, "error": str(error)})
                continue
        if out is not None and not page:
            found["files"] = [str(path) for path in catalogue.write(found, out)]
        results.append(found)
        if not as_json and not page:
            _show(found)
    if page:
        _write_page(paper, results, out)
    if as_json:
        emit({"results": results, "failed": failed})
    for one in failed if not as_json else ():
        line(f"left out: {one['item']}", one["error"])


def _write_page(paper: str, results: list[Document], out: Path | None) -> None:
    """The paper's page and its pictures, in the folder asked for or the current one."""
    from congenial.papers.printed_pages import write_page

    line("Wrote", str(write_page(paper, results, out or Path())))


def _list(rows: list[dict[str, str]]) -> None:
    """What there is, paper by paper; names that are typed or looked for are never broken."""
    for paper in dict.fromkeys(row["paper"] for row in rows):
        heading(paper)
        own = [row for row in rows if row["paper"] == paper]
        listed = [(row["item"], row["title"], row["source"]) for row in own]
        table(("item", "title", "source"), listed, whole=("item",))
        for row in own:
            if row["files"]:
                line(f"{row['item']} reads", row["files"])


def _show(result: Document) -> None:
    heading(f"{result['paper']} {result['item']}: {result['title']} ({result['source']})")
    rows = result["rows"]
    table(result["columns"], [[_cell(value) for value in row] for row in rows[:_MOST_ROWS]])
    if len(rows) > _MOST_ROWS:
        paragraph(f"... {len(rows) - _MOST_ROWS} more rows; --out or --json has them all.")
    for note in result.get("notes", ()):
        paragraph(f"- {note}")
    for path in result.get("files", ()):
        line("Wrote", path)


def _cell(value: object) -> object:
    """A number to five digits; a dash where there is none."""
    if value is None:
        return "-"
    return f"{value:.5g}" if isinstance(value, float) else value
