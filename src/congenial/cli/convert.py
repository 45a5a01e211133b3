"""`congenial convert`: one kind of privacy parameter as another, with the formula named."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from congenial.cli.command_options import Json, with_examples
from congenial.cli.output import Document, emit, say
from congenial.data.rational import fraction
from congenial.errors import GuaranteeError
from congenial.privacy import conversion_table
from congenial.privacy.numbers import above
from congenial.privacy.tradeoff import Approximate, Gaussian, Pure, ZeroConcentrated

if TYPE_CHECKING:
    from congenial.privacy.tradeoff import Tradeoff

KINDS = ("epsilon", "rho", "mu", "total variation")


@with_examples(
    "congenial convert --epsilon 1",
    "congenial convert --epsilon 1 --delta 1e-6 --to mu",
    "congenial convert --rho 2.56 --delta 1e-10 --to epsilon",
)
def convert(
    epsilon: Annotated[str | None, typer.Option(help="epsilon, alone or with --delta.")] = None,
    rho: Annotated[
        str | None, typer.Option(help="rho of zero-concentrated differential privacy.")
    ] = None,
    mu: Annotated[str | None, typer.Option(help="mu of Gaussian differential privacy.")] = None,
    delta: Annotated[
        str | None,
        typer.Option(
            help=(
                "With --epsilon part of the promise; otherwise the delta at which epsilon is shown."
            )
        ),
    ] = None,
    to: Annotated[
        str | None, typer.Option(help=f"One of: {', '.join(KINDS)} [default: all that exist].")
    ] = None,
    as_json: Json = False,
) -> None:
    """Convert epsilon, rho and mu into each other.

    Shows the tightest known formula, then the classical one.
    """
    source = _source(epsilon, rho, mu, delta)

    at = None if delta is None else above(_number("delta", delta))
    document = _convert(source, to, at)
    emit(document) if as_json else show(document)


def _source(epsilon: str | None, rho: str | None, mu: str | None, delta: str | None) -> Tradeoff:
    if sum(value is not None for value in (epsilon, rho, mu)) != 1:
        raise GuaranteeError(
            "there is nothing to convert: give exactly one of --epsilon, --rho and --mu.",
            remedy="For example: congenial convert --epsilon 1.",
        )
    if rho is not None:
        return ZeroConcentrated(_number("rho", rho))
    if mu is not None:
        return Gaussian(_number("mu", mu))
    assert epsilon is not None
    if delta is not None:
        return Approximate(_number("epsilon", epsilon), _number("delta", delta))
    return Pure(_number("epsilon", epsilon))


def _number(name: str, text: str) -> Fraction:
    """An exact number from the command line: 0.1 is one tenth, and so is 1/10."""
    try:
        return fraction(text)
    except (ValueError, ZeroDivisionError):
        raise GuaranteeError(
            f"--{name} {text} is not a finite number.", remedy="Write 0.5, 1e-6 or 1/3."
        ) from None


def _convert(source: Tradeoff, to: str | None, at: float | None) -> Document:
    rows = []
    refused: list[str] = []
    for kind in KINDS if to is None else (to,):
        try:
            rows.extend(conversion_table.convert(source, kind, at, True))
        except GuaranteeError as error:
            if to is not None:
                raise
            refused.append(str(error))
    return {
        "source": source.words,
        "conversions": [
            {"name": row.name, "value": row.value, "formula": row.formula, "note": row.note}
            for row in rows
        ],
        "not_implied": refused,
    }


def show(document: Document) -> None:
    """The conversions for people."""
    say("convert.txt", **document)
