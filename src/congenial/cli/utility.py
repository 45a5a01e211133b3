"""`congenial utility`: how well released synthetic records serve, for the curator alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from congenial.cli import compared
from congenial.cli.command_options import Json, SyntheticName, with_examples
from congenial.cli.curve import section_of
from congenial.cli.output import (
    Document,
    emit,
    facts,
    heading,
    line,
    paragraph,
    table,
    warn,
    working,
)
from congenial.errors import PlanError

if TYPE_CHECKING:
    from congenial.publication.synthetic_utility import Regression


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
    from congenial.publication.bundle import read
    from congenial.publication.plan import Plan
    from congenial.synthesis.records_from_models_release import SyntheticRelease

    loaded = Plan.load(plan)
    if (from_tables := compared.tables_section(loaded, name)) is not None:
        compared.beside_released(loaded, from_tables, bundle, out, as_json=as_json)
        return
    section = section_of(loaded, name)
    model = None if regression is None else _regression(regression)
    where = loaded.folder / "bundles" / section.name if bundle is None else bundle
    release = read(where)
    if not isinstance(release, SyntheticRelease):
        raise PlanError(f"'{where}' holds no synthetic records.", remedy="Name another bundle.")
    for note in synthetic_utility.NOTES if as_json else ():  # people find them at the end
        warn(note)
    with working("comparing"):
        document = synthetic_utility.examine(loaded, release, model)
        folder = loaded.folder / "utility" / section.name if out is None else out
        files = synthetic_utility.write(document, folder)
    document["files"] = [str(path) for path in files]
    emit(document) if as_json else show(document)


def _regression(told: str) -> Regression:
    response, tilde, rest = told.partition("~")
    predictors = [one.strip() for one in rest.split("+") if one.strip()]
    if not tilde or not response.strip() or not predictors:
        raise PlanError(
            f"--regression {told!r} is no model.",
            remedy="Write, for example, 'income ~ age + kids'.",
        )
    return response.strip(), predictors


def show(document: Document) -> None:
    """The report for the curator."""
    heading(f"Synthetic records of '{document['release']}' beside the data")
    facts(
        {
            "Copies": document["copies"],
            "pMSE, ratio to equal laws": f"{document['pmse_ratio']['synthetic']:.2f}",
            "Unique combinations": document["uniques"],
            "Replicated in a copy": f"{document['replicated']['synthetic']:.4g}",
            "Records of weight 0": document["weightless"],
        }
    )
    paragraph("")
    rows = [
        (one["name"], f"{one['distance']['synthetic']:.4f}", f"{one['distance']['largest']:.4f}")
        for one in document["columns"]
        if not one["copied"]
    ]
    table(("column", "distance", "largest"), rows, numbers=("distance", "largest"))
    _show_quantiles(document)
    _show_relations(document)
    paragraph("")
    risks = [
        (
            one["column"],
            one["records"],
            one["downweighted"],
            f"{one['sum_of_weights']:.1f}",
            f"{min(row['weight'] for row in one['rows']):.3g}",
        )
        for one in document["risk"]
    ]
    for name in document["settled"]:
        paragraph(f"{name}: {document['settled_words']}")
    columns = ("weights of", "records", "below 1", "sum", "least")
    table(columns, risks, numbers=("records", "below 1", "sum", "least"))
    _show_local(document)
    for path in document["files"]:
        line("Written", path)
    for note in document["notes"]:
        paragraph(note, style="bold red")


def _show_local(document: Document) -> None:
    """The paper's weights beside the certified ones."""
    if not document["local"]:
        return
    rows = [
        (
            one["column"],
            one["downweighted"],
            f"{one['sum_of_weights']:.1f}",
            f"{one['least_weight']:.3g}",
            f"{one['delta']:.3g}",
            f"{one['epsilon']:.3g}",
        )
        for one in document["local"]
    ]
    paragraph("")
    columns = ("local weights of", "below 1", "sum", "least", "Delta", "epsilon")
    table(columns, rows, numbers=("below 1", "sum", "least", "Delta", "epsilon"))
    paragraph(document["local_words"])


def _show_quantiles(document: Document) -> None:
    if not document["quantiles"]:
        return
    rows = [
        (
            f"{row['column']} at {row['at']:g}",
            f"{row['original']:.6g}",
            f"{row['low']:.6g} to {row['high']:.6g}",
            f"{row['copies']['synthetic']:.6g}",
        )
        for row in document["quantiles"]
    ]
    paragraph("")
    columns = ("quantile", "data", "95 % interval", "synthetic")
    table(columns, rows, numbers=("data", "95 % interval", "synthetic"))
    for words in document["open_levels"]:
        paragraph(words)


def _show_relations(document: Document) -> None:
    if document["correlations"]:
        pairs = [
            (" and ".join(row["columns"]), f"{row['original']:.3f}", f"{row['synthetic']:.3f}")
            for row in document["correlations"]
        ]
        paragraph("")
        table(("correlation of", "data", "synthetic"), pairs, numbers=("data", "synthetic"))
    if document["coefficients"]:
        rows = [
            (
                row["name"],
                f"{row['original']:.4g} ({row['original_se']:.2g})",
                f"{row['synthetic']:.4g} ({row['synthetic_se']:.2g})",
                f"{row['overlap']:.2f}",
            )
            for row in document["coefficients"]
        ]
        paragraph("")
        columns = ("coefficient (error)", "data", "synthetic", "overlap")
        table(columns, rows, numbers=("data", "synthetic", "overlap"))
        paragraph(document["overlap_words"])
