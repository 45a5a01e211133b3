"""`congenial utility` and `curve`: how well synthetic records serve, for the curator alone."""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from congenial.cli.command_options import Json, PlanFile, SyntheticName, with_examples
from congenial.cli.output import Document, emit, say, warn, working
from congenial.data.rational import fraction
from congenial.errors import PlanError
from congenial.publication import synthetic_utility
from congenial.publication.plan import Plan
from congenial.report import utility_page
from congenial.report.utility_page import MEASURES
from congenial.synthesis.risk_utility import Measure

if TYPE_CHECKING:
    from congenial.synthesis.utility_documents import Regression

BOUNDS = "0.25,0.5,1,2"
TIMES = "0.25,1,4"


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
    """Show how good synthetic records are at each epsilon.

    Reads CONFIDENTIAL data, for the curator alone; spends nothing. Finished points are kept in the
    folder: the same command goes on after an interruption. Records from tables are shown beside
    other ways to make records, at the same promise.
    """
    loaded = Plan.load(plan)
    section = synthetic_utility.synthetic_section(loaded, name)
    folder = loaded.folder / "curve" / section.name if out is None else out
    if synthetic_utility.from_models(section):
        measures = [_measure(section.model, text) for text in (measure or section.model)]
        settings = positive_numbers("--bounds", bounds), _local(local or ["1,0"])
        with working("drawing records at every setting"):
            document = synthetic_utility.curve_of_models(
                loaded, section, measures, *settings, replicates, folder
            )
    else:
        promises = positive_numbers("--times", times)
        with working("drawing records in every way"):
            document = synthetic_utility.curve_of_tables(
                loaded, section, promises, replicates, folder
            )
    _answer(document, as_json)


@with_examples(
    "congenial utility plan.toml",
    "congenial utility plan.toml --name people --regression 'income ~ age + kids'",
    "congenial utility plan.toml --bundle bundles/people --out private",
)
def utility(
    plan: Annotated[Path, typer.Argument(help="The plan file, which says where the data are.")],
    name: SyntheticName = None,
    bundle: Annotated[
        Path | None, typer.Option(help="Its bundle [default: bundles/NAME, by the plan].")
    ] = None,
    regression: Annotated[
        str | None, typer.Option(help="A linear model fitted to both: 'income ~ age + kids'.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Private folder of the results [default: utility/NAME, by the plan]."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare synthetic records with the data.

    Reads CONFIDENTIAL data, for the curator alone; spends nothing. Writes a page and its numbers
    to a private folder, never into the bundle.
    """
    loaded = Plan.load(plan)
    section = synthetic_utility.synthetic_section(loaded, name)
    model = None if regression is None else _regression(regression)
    where = loaded.folder / "bundles" / section.name if bundle is None else bundle
    folder = loaded.folder / "utility" / section.name if out is None else out
    with working("comparing"):
        document = synthetic_utility.utility(loaded, section, where, folder, model)
    _answer(document, as_json)


def _regression(text: str) -> Regression:
    response, tilde, rest = text.partition("~")
    predictors = [name.strip() for name in rest.split("+") if name.strip()]
    if not tilde or not response.strip() or not predictors:
        raise PlanError(
            f"--regression {text!r} is not a model.",
            remedy="Write, for example, 'income ~ age + kids'.",
        )
    return response.strip(), predictors


def positive_numbers(option: str, text: str) -> list[Fraction]:
    """The list of positive numbers that an option gives."""
    try:
        numbers = [fraction(part.strip()) for part in text.split(",") if part.strip()]
    except (ValueError, ZeroDivisionError):
        numbers = []
    if not numbers or min(numbers) <= 0:
        raise PlanError(
            f"{option} {text!r} is not a list of positive numbers.",
            remedy=f"Write, for example, {option} 0.5,1.",
        )
    return numbers


def _measure(columns: Collection[str], text: str) -> Measure:
    column, at, quantile = text.rpartition("@")
    try:
        measure = Measure(column, float(quantile)) if at else Measure(text)
    except ValueError:
        measure = Measure(column, -1.0)
    inside = measure.quantile is None or 0 < measure.quantile < 1
    if measure.column not in columns or not inside:
        raise PlanError(
            f"--measure {text!r} is not a synthesised column, or a quantile of one.",
            remedy=f"Columns: {', '.join(columns)}; a quantile is written as in income@0.9.",
        )
    return measure


def _local(texts: list[str]) -> list[tuple[float, float]]:
    try:
        return [(float(c), float(g)) for c, g in (text.split(",") for text in texts)]
    except ValueError:
        raise PlanError(
            "--local is not c,g with two numbers.", remedy="Write, for example, --local 1,0."
        ) from None


def _answer(document: Document, as_json: bool) -> None:
    """A confidential document for people, or as JSON with its notes on standard error."""
    if as_json:
        for note in document["notes"]:
            warn(note)
        emit(document)
    elif "rows" in document:
        say("curve.txt", study=document, measures=_measures(document), errors=_error)
    else:
        say("utility.txt", study=document, **_page_tables(document))


def _measures(document: Document) -> list[tuple[str, list[Document]]]:
    """The rows of each measure, by its name for people."""
    by_measure: dict[str, list[Document]] = {}
    for row in document["rows"]:
        by_measure.setdefault(MEASURES.get(row["measure"], row["measure"]), []).append(row)
    return list(by_measure.items())


def _page_tables(document: Document) -> Document:
    """The tables of the curator's page, by what they are about."""
    quantiles: dict[str, list[Document]] = {column["name"]: [] for column in document["columns"]}
    for row in document["quantiles"]:
        quantiles[row["column"]].append(row)
    tables: Document = {
        name: utility_page.quantiles(rows) if rows else None for name, rows in quantiles.items()
    }
    tables |= {
        "correlations": utility_page.correlations(document),
        "coefficients": utility_page.coefficients(document),
    }
    return {"overall": utility_page.overall(document), "tables": tables}


def _error(value: float, chance: float | None) -> str:
    """Four digits, in groups of three, never as a power of ten where people have to read it; what
    chance does to it (a standard error) in parentheses.

    >>> _error(23671.2, 812.4), _error(0.01234, 0.0007), _error(7.0, None)
    ('23,671 (812)', '0.01234 (0.0007)', '7')
    """
    large = abs(value) >= 1e4
    digits = f"{value:,.0f}" if large else f"{value:.4g}"
    if chance is None:
        return digits
    small = f"{chance:.2g}" if chance < 100 else f"{chance:.0f}"
    return f"{digits} ({f'{chance:,.0f}' if large else small})"
