"""`congenial utility`: how well released synthetic records serve, for the curator alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from congenial.cli.command_options import Json, SyntheticName, with_examples
from congenial.cli.curve import show as show_errors
from congenial.cli.curve import show_or_emit
from congenial.cli.output import Document, facts, heading, line, paragraph, table, working
from congenial.errors import PlanError

if TYPE_CHECKING:
    from congenial.report.page import PageTable
    from congenial.synthesis.utility_documents import Regression


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
    """Compare synthetic records with the data. Reads CONFIDENTIAL data, for the curator alone;
    spends nothing.

    Writes a page and its numbers to a private folder, never into the bundle.
    """
    from congenial.publication import synthetic_utility
    from congenial.publication.plan import Plan

    loaded = Plan.load(plan)
    section = synthetic_utility.synthetic_section(loaded, name)
    model = None if regression is None else _regression(regression)
    where = loaded.folder / "bundles" / section.name if bundle is None else bundle
    folder = loaded.folder / "utility" / section.name if out is None else out
    with working("comparing"):
        document = synthetic_utility.utility(loaded, section, where, folder, model)
    of_models = synthetic_utility.from_models(section)
    show_or_emit(document, show if of_models else show_errors, as_json=as_json)


def _regression(text: str) -> Regression:
    response, tilde, rest = text.partition("~")
    predictors = [name.strip() for name in rest.split("+") if name.strip()]
    if not tilde or not response.strip() or not predictors:
        raise PlanError(
            f"--regression {text!r} is not a model.",
            remedy="Write, for example, 'income ~ age + kids'.",
        )
    return response.strip(), predictors


def show(document: Document) -> None:
    """The report for the curator; its tables are those of the page."""
    from congenial.report import utility_page

    heading(f"Synthetic records of '{document['release']}' beside the data")
    facts(dict(utility_page.overall(document)))
    for column in document["columns"]:
        if column["copied"]:
            continue
        paragraph("")
        distance = column["distance"]
        paragraph(
            f"{column['name']}: total variation from the data {distance['synthetic']:.4f}, at most "
            f"{distance['largest']:.4f} in a copy"
        )
        rows = [row for row in document["quantiles"] if row["column"] == column["name"]]
        if rows:
            _show_table(utility_page.quantiles(rows))
    for words in document["open_levels"]:
        paragraph(words)
    _show_table(utility_page.correlations(document))
    _show_table(utility_page.coefficients(document))
    if document["coefficients"]:
        paragraph(document["overlap_words"])
    _show_weights(document)
    for path in document["files"]:
        line("Written", path)
    for note in document["notes"]:
        paragraph(note, style="bold red")


def _show_table(shown: PageTable | None) -> None:
    """A table of the page, if it has it."""
    if shown is None:
        return
    paragraph("")
    if shown.caption:
        paragraph(shown.caption)
    numbers = [column.title for column in shown.columns if column.number]
    table([column.title for column in shown.columns], shown.rows, numbers=numbers)


def _show_weights(document: Document) -> None:
    """What the records of each column weigh, and the paper's weights beside it."""
    paragraph("")
    for name in document["settled"]:
        paragraph(f"{name}: {document['settled_words']}")
    rows = [
        (
            risk["column"],
            risk["records"],
            risk["downweighted"],
            f"{risk['sum_of_weights']:.1f}",
            f"{min(row['weight'] for row in risk['rows']):.3g}",
        )
        for risk in document["risk"]
    ]
    _show_numbers(("weights of", "records", "below 1", "sum", "least"), rows)
    if not document["local"]:
        return
    local = [
        (
            weights["column"],
            weights["downweighted"],
            f"{weights['sum_of_weights']:.1f}",
            *(f"{weights[key]:.3g}" for key in ("least_weight", "delta", "epsilon")),
        )
        for weights in document["local"]
    ]
    paragraph("")
    _show_numbers(("local weights of", "below 1", "sum", "least", "Delta", "epsilon"), local)
    paragraph(document["local_words"])


def _show_numbers(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table of numbers after a first column of names."""
    table(columns, rows, numbers=columns[1:])
