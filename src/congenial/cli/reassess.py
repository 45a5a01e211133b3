"""`congenial reassess`: what old releases promise now, given figures that are published exactly."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from congenial.cli.command_options import Json, with_examples
from congenial.cli.output import Document, emit, say, working
from congenial.data.rational import fraction
from congenial.errors import GuaranteeError
from congenial.ledger.reassessment import EarlierRelease
from congenial.ledger.reassessment import reassess as work_out
from congenial.privacy.tradeoff import Gaussian, Pure, ZeroConcentrated
from congenial.publication.bundle import read
from congenial.publication.plan import Plan
from congenial.publication.plan_ledger import exact_figures, open_ledger

if TYPE_CHECKING:
    from congenial.ledger.reassessment import Earlier


@with_examples(
    "congenial reassess plan.toml",
    "congenial reassess plan.toml --bundle bundles/old-table",
    "congenial reassess census.toml --rho 2.56 --delta 1e-10",
)
def reassess(
    plan: Annotated[
        Path, typer.Argument(help="The plan with the schema and the figures to publish.")
    ],
    bundle: Annotated[list[Path] | None, typer.Option(help="An old release; repeatable.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="An old promise: epsilon.")] = None,
    rho: Annotated[str | None, typer.Option(help="An old promise: rho (zCDP).")] = None,
    mu: Annotated[str | None, typer.Option(help="An old promise: mu (Gaussian).")] = None,
    delta: Annotated[float | None, typer.Option(help="Also show epsilon at this delta.")] = None,
    as_json: Json = False,
) -> None:
    """Show what earlier releases promise once figures are published.

    Reads no data, spends nothing. Earlier releases are bundles, bare promises, or by default those
    of the plan's own ledger.
    """
    with working("reassessing"):
        document = examine(plan, bundle or [], {"epsilon": epsilon, "rho": rho, "mu": mu}, delta)
    emit(document) if as_json else say("reassess.txt", **document)


def examine(
    path: Path, bundles: list[Path], promises: dict[str, str | None], delta: float | None
) -> Document:
    """The result as plain data."""
    plan = Plan.load(path)
    old: dict[str, Earlier] = {}
    for folder in bundles:
        release = read(folder)
        _add(old, release.name, EarlierRelease.of(release), release.guarantee.basis)
    for kind, value in promises.items():
        if value is not None:
            old[f"{kind} = {value}"] = _promise(kind, value)
    ledger = open_ledger(plan, create=False)
    figures = exact_figures(plan, ledger)
    if not old and ledger is not None:
        for entry in ledger.entries():
            if entry.counted:
                _add(old, entry.name, EarlierRelease.recorded(entry), entry.guarantee["basis"])
    if not old:
        raise GuaranteeError(
            "there is no earlier release to reassess.",
            remedy="Give --bundle, or --epsilon, --rho or --mu.",
        )
    results = work_out(old, figures)
    return {
        "mandates": [statement.label for statement in figures.equalities],
        "values_published": figures.values is not None,
        "delta": delta,
        "rows": [row for result in results for row in result.rows(delta)],
    }


def _add(old: dict[str, Earlier], name: str, release: Earlier, basis: str) -> None:
    """Add a release under its name, with what it rests on unless that is a theorem, and a number if
    the name is taken. What is not proved stays so however its promise is counted now.
    """
    label = name if basis == "theorem" else f"{name} ({basis})"
    taken = sum(other == label or other.startswith(f"{label} #") for other in old)
    old[f"{label} #{taken + 1}" if taken else label] = release


def _promise(kind: str, value: str) -> Earlier:
    try:
        amount = fraction(Decimal(value))
    except (InvalidOperation, ValueError):
        raise GuaranteeError(f"{kind} = {value!r} is not a number.") from None
    if kind == "epsilon":
        return Pure(amount)
    return ZeroConcentrated(amount) if kind == "rho" else Gaussian(amount)
