"""`congenial curve`: utility of synthetic records against epsilon, for the curator alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from congenial.cli import compared
from congenial.cli.command_options import Json, PlanFile, SyntheticName, with_examples
from congenial.cli.output import (
    Document,
    console,
    emit,
    heading,
    line,
    paragraph,
    table,
    warn,
    working,
)
from congenial.errors import DataError, PlanError

if TYPE_CHECKING:
    from congenial.kinds.records_from_models import ModelRecordsSection
    from congenial.publication.plan import Plan
    from congenial.synthesis.risk_utility import Measure

BOUNDS = "0.25,0.5,1,2"
TIMES = "0.25,1,4"
COLUMNS = ("mechanism", "setting", "epsilon", "basis", "mean error", "root mean square")
NOTES = (
    "CONFIDENTIAL: these errors are measured against the confidential records. They stay with the "
    "curator: no bundle holds them, and they must not be published.",
    "Choosing M, Theta, a model or epsilon by looking at them is NOT covered by the promise of a "
    "release.",
)


@with_examples(
    "congenial curve plan.toml --name people",
    "congenial curve plan.toml --bounds 0.5,1,2 --measure income@0.9 --measure region",
    "congenial curve plan.toml --local 1,0 --local 0.5,0 --replicates 50",
    "congenial curve plan.toml --name workers --times 0.5,1,2 --replicates 5",
)
def curve(
    plan: PlanFile,
    name: SyntheticName = None,
    bounds: Annotated[
        str, typer.Option(help="Values of M, for the certified and the scalar mechanism.")
    ] = BOUNDS,
    local: Annotated[
        list[str] | None,
        typer.Option(help="c,g of the paper's local mechanism; repeatable [default: 1,0]."),
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            help="What is compared: a column (distance of its levels), or a quantile such as "
            "income@0.9; repeatable [default: every column]."
        ),
    ] = None,
    times: Annotated[
        str,
        typer.Option(help="For records from tables: so many times the plan's promise."),
    ] = TIMES,
    replicates: Annotated[int, typer.Option(min=1, help="Draws for each point.")] = 20,
    out: Annotated[
        Path | None,
        typer.Option(help="Private folder of the results [default: curve/NAME, by the plan]."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show utility against epsilon. Reads CONFIDENTIAL data, for the curator alone; spends nothing.

    Finished points are kept in the folder: the same command goes on after an interruption. Records
    from tables are shown beside other ways to make records, at the same promise.
    """
    from congenial.publication.plan import Plan

    loaded = Plan.load(plan)
    if (from_tables := compared.tables_section(loaded, name)) is not None:
        folder = loaded.folder / "curve" / from_tables.name if out is None else out
        for note in compared.NOTES if as_json else ():
            warn(note)
        with working("comparing"):
            beside = compared.examine(
                loaded, from_tables, compared.positive_numbers("--times", times), replicates, folder
            )
        emit(beside) if as_json else compared.show(beside)
        return
    section = section_of(loaded, name)
    measures = [_measure(section, one) for one in (measure or list(section.model))]
    folder = loaded.folder / "curve" / section.name if out is None else out
    for note in NOTES if as_json else ():  # people find them at the end of what they read
        warn(note)
    document = examine(
        loaded,
        section,
        measures,
        compared.positive_numbers("--bounds", bounds),
        _local(local or ["1,0"]),
        replicates,
        folder,
    )
    emit(document) if as_json else show(document)


def section_of(plan: Plan, name: str | None) -> ModelRecordsSection:
    """The release of synthetic records that is meant."""
    found: list[ModelRecordsSection] = plan.of("model")
    if name is not None:
        meant = plan.named(name)
        for section in found:
            if section is meant:
                return section
        raise PlanError(
            f"release '{name}' has no synthetic records.", remedy="Name one with model."
        )
    if len(found) != 1:
        if not found:
            raise PlanError(
                "the plan releases no synthetic records.",
                remedy="Add a [[release]] with `model`.",
            )
        names = ", ".join(one.name for one in found)
        raise PlanError(
            "the plan has several releases of synthetic records.",
            remedy=f"Name one with --name. It has: {names}.",
        )
    return found[0]


def _measure(section: ModelRecordsSection, text: str) -> Measure:
    from congenial.synthesis.risk_utility import Measure

    column, at, quantile = text.rpartition("@")
    if not at:
        column = text
    try:
        found = Measure(column, float(quantile) if at else None)
    except ValueError:
        found = Measure(column, -1.0)
    if column not in section.model or (at and not 0 < (found.quantile or 0) < 1):
        raise PlanError(
            f"--measure {text!r} is not a synthesised column, or a quantile of one.",
            remedy=f"Columns: {', '.join(section.model)}; a quantile is written as in income@0.9.",
        )
    return found


def _local(texts: list[str]) -> list[tuple[float, float]]:
    try:
        return [(float(c), float(g)) for c, g in (text.split(",") for text in texts)]
    except ValueError:
        raise PlanError(
            "--local is not c,g with two numbers.", remedy="Write, for example, --local 1,0."
        ) from None


def examine(
    plan: Plan,
    section: ModelRecordsSection,
    measures: list[Measure],
    bounds: list[Fraction],
    local: list[tuple[float, float]],
    replicates: int,
    folder: Path,
) -> Document:
    """CONFIDENTIAL: the curve as plain data."""
    from congenial.data.tabulate import Microdata
    from congenial.kinds.records_from_models import KIND
    from congenial.publication import workflow
    from congenial.publication.private import private_folder
    from congenial.synthesis.risk_utility import risk_utility_curve

    made = KIND.build(plan, section, workflow.published_so_far(plan))
    rows: list[Document] = []
    left_out: list[str] = []
    each = 2 * len(bounds) + len(local)
    private_folder(folder)
    with (
        _progress(each * len(measures)) as tell,
        Microdata.open(plan.source, plan.schema, plan.unit) as data,
    ):
        for at, one in enumerate(measures):
            common: dict[str, Any] = {
                "replicates": replicates,
                "results": folder / f"{_file(one)}.jsonl",
            }
            sweeps: list[dict[str, Any]] = [{"bounds": bounds}, *({"local": [cg]} for cg in local)]
            done = at * each
            for sweep in sweeps:
                try:
                    found = risk_utility_curve(
                        made, data, one, **common, **sweep, progress=_from(tell, done)
                    )
                    rows += [{"measure": one.words} | row for row in found]
                except DataError as error:
                    if "bounds" in sweep:
                        raise
                    left_out.append(f"local {sweep['local'][0]}, {one.words}: {error}")
                done += 2 * len(bounds) if "bounds" in sweep else 1
    document: Document = {
        "release": section.name,
        "notes": list(NOTES),
        "replicates": replicates,
        "folder": str(folder),
        "rows": rows,
        "left_out": left_out,
    }
    picture = _picture(document, folder)
    document["picture"] = None if picture is None else str(picture)
    return document


def _from(tell: Callable[[int], None], done: int) -> Callable[[int, int], None]:
    return lambda now, _: tell(done + now)


def _file(measure: Measure) -> str:
    plain = "".join(c if c.isalnum() or c in "-_" else "_" for c in measure.column)
    return plain if measure.quantile is None else f"{plain}-{measure.quantile:g}"


@contextmanager
def _progress(points: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    shown = (TextColumn("points"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*shown, console=console(stderr=True)) as bar:
        task = bar.add_task("points", total=points)
        yield lambda done: bar.update(task, completed=done)


def _picture(document: Document, folder: Path) -> Path | None:
    """Error against epsilon, a line per mechanism; None without the extra `report`."""
    from congenial.publication.private import private_file
    from congenial.report import pictures
    from congenial.report.charts import chart

    if not pictures.available():
        return None
    drawn = {
        "title": f"{document['release']}: error against epsilon",
        "source": "CONFIDENTIAL: for the curator alone. Bands: two standard errors.",
        "columns": ["measure", "mechanism", "epsilon", "root mean square error", "low", "high"],
        "rows": [
            [
                row["measure"],
                "local (estimate, no guarantee)"
                if row["mechanism"] == "local"
                else row["mechanism"],
                row["epsilon"],
                row["rms_error"],
                max(0.0, row["rms_error"] - 2 * (row["rms_se"] or 0.0)),
                row["rms_error"] + 2 * (row["rms_se"] or 0.0),
            ]
            for row in document["rows"]
        ],
        "chart": {
            "kind": "line",
            "x": "epsilon",
            "y": "root mean square error",
            "low": "low",
            "high": "high",
            "by": "mechanism",
            "facet": "measure",
            "y_free": True,
            "x_log": True,
        },
    }
    path = private_file(folder / "curve.png")
    chart(drawn).save(str(path), format="png", scale_factor=2)
    return path


def show(document: Document) -> None:
    """The curve for the curator."""
    heading(f"Utility of '{document['release']}' against epsilon, one copy")
    for measure in dict.fromkeys(row["measure"] for row in document["rows"]):
        paragraph("")
        paragraph(measure)
        rows = [
            (
                row["mechanism"],
                ", ".join(f"{key} = {value}" for key, value in row["setting"].items()),
                f"{row['epsilon']:.4g}",
                row["basis"],
                _error(row["mean_error"], row["mean_se"]),
                _error(row["rms_error"], row["rms_se"]),
            )
            for row in document["rows"]
            if row["measure"] == measure
        ]
        table(COLUMNS, rows, numbers=("epsilon", "mean error", "root mean square"))
    if document["replicates"] > 1:
        paragraph(f"In parentheses: standard errors over {document['replicates']} draws.")
    for one in document["left_out"]:
        line("left out", one)
    line("Kept in", document["folder"])
    if document["picture"]:
        line("Picture", document["picture"])
    for note in document["notes"]:
        paragraph(note, style="bold red")


def _error(value: float, chance: float | None) -> str:
    """Four digits, in groups of three, never as a power of ten where people have to read it; what
    chance does to it (a standard error) in parentheses.

    >>> _error(23671.2, 812.4), _error(0.01234, 0.0007), _error(7.0, None)
    ('23,671 (812)', '0.01234 (0.0007)', '7')
    """
    large = abs(value) >= 1e4
    shown = f"{value:,.0f}" if large else f"{value:.4g}"
    if chance is None:
        return shown
    small = f"{chance:.2g}" if chance < 100 else f"{chance:.0f}"
    return f"{shown} ({f'{chance:,.0f}' if large else small})"
