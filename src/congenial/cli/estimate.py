"""`congenial estimate`: any estimate from bundles alone, with its interval and its method."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from congenial.cli.command_options import Json, NationPart, asked_part, with_examples
from congenial.cli.output import Document, emit, say, working
from congenial.data.advance import one_by_one
from congenial.data.text_files import table_csv
from congenial.errors import InferenceError
from congenial.inference.estimates.answers import answer_tables
from congenial.inference.estimates.cell_groups import has_parts
from congenial.inference.estimates.combined_estimates import combined
from congenial.inference.estimates.estimating import estimate as answer
from congenial.inference.estimates.estimating import tables_of
from congenial.inference.estimates.table_tests import carry_out_test
from congenial.publication.bundle import read

_MOST_ROWS = 60


@with_examples(
    'congenial estimate bundles/sex-by-age --of "count(age >= 65) by county"',
    "congenial estimate bundles/sex-by-age --of \"share(sex = 'female' | age >= 65)\"",
    'congenial estimate bundles/2025 bundles/2026 --of "growth(count()) by county"',
    'congenial estimate bundles/sex-by-age --test "independent(sex, age)" --json',
    "congenial estimate bundles/nation --part 01 --of \"share(sex = 'female') by county\"",
)
def estimate(
    bundles: Annotated[
        list[Path],
        typer.Argument(
            metavar="BUNDLE...",
            help="Folders of bundles. Several of the same population give one combined estimate; "
            "change(...) and growth(...) compare two, the earlier first.",
        ),
    ],
    of: Annotated[
        list[str] | None,
        typer.Option(help="What to estimate; repeatable."),
    ] = None,
    test: Annotated[
        list[str] | None,
        typer.Option(
            help="What to test: independent(NAME, NAME | WHERE), equal(NAME | WHERE, WHERE), "
            "trend(WHERE by NAME | WHERE)."
        ),
    ] = None,
    level: Annotated[float, typer.Option(help="Level of the intervals, such as 0.95.")] = 0.9,
    jointly: Annotated[
        bool, typer.Option("--jointly", help="Make all intervals hold together at the level.")
    ] = False,
    outside: Annotated[
        Path | None, typer.Option(help="A CSV file with the denominators of rate(...).")
    ] = None,
    same_population: Annotated[
        bool,
        typer.Option(
            "--same-population",
            help="Combine bundles even if no exact figure shows that they are of the same "
            "population.",
        ),
    ] = False,
    part: NationPart = None,
    out: Annotated[Path | None, typer.Option(help="Write the estimates to this CSV file.")] = None,
    as_json: Json = False,
) -> None:
    """Estimate counts, shares and tests from bundles, with intervals.

    Reads bundles only, and takes their noise into account; spends nothing.
    """
    if not of and not test:
        raise InferenceError(
            "there is no question.", remedy="Ask one with --of or --test; see --help for examples."
        )
    with working("estimating"), _without_collecting():
        releases: list[Any] = [
            asked_part(read(each_bundle), part) for each_bundle in one_by_one(bundles, "reading")
        ]
        answers = None
        if of:
            answers = answer(
                releases,
                of,
                level,
                jointly=jointly,
                outside=outside,
                same_population=same_population,
            )
        tests = []
        if test:
            together = releases[0]
            if len(releases) > 1 or not has_parts(releases):
                together = combined(tables_of(releases), same_population)
            asked = one_by_one(test, "testing")
            tests = [carry_out_test(together, each_test).to_dict() for each_test in asked]
    document: Document = {
        "bundles": [str(bundle) for bundle in bundles],
        **({} if part is None else {"part": part}),
        "level": level,
        "jointly": jointly,
        "estimates": answers.to_dicts() if answers else [],
        "tests": tests,
    }
    if out is not None and answers is not None:
        _write(answers, out)
        document["file"] = str(out)
    emit(document) if as_json else _show(document)


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Without searches for cycles: all that libraries load lives as long as the command."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _write(found: Any, out: Path) -> None:
    try:
        out.write_bytes(table_csv(found.to_arrow()))
    except OSError as reason:
        raise InferenceError(
            f"cannot write to '{out}': {reason.strerror}.", remedy="Choose another --out."
        ) from None


def _show(document: Document) -> None:
    answers = answer_tables(document["estimates"])
    say("estimate.txt", **{"file": None} | document, answers=answers, most=_MOST_ROWS)
