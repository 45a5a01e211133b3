"""What a ledger refuses: releases of another population or beyond the budget, and promises that
cannot stand beside each other or beside newly published figures.

Promises about pairs of databases add up. Others do not: two releases that each hide a property of
the whole dataset can reveal it together, and so can an exact figure, or a table that protects
persons only. A promise that is calibrated to the law of one statistic given public information
(secret pairs at level "query") stands alone too. Every promise given public information is void
once more is public, be it a figure, a bound or a rule; one about single values of a person is void
once a figure or a bound ties those values to other people's, and one about a person more or less
once any figure is exact: the number of people alone tells the two datasets apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from congenial.data.arguments import expect
from congenial.data.schema import Schema
from congenial.errors import BudgetError, GuaranteeError, LedgerError
from congenial.figures.cells import Cells
from congenial.figures.figures import Figures
from congenial.figures.statements import Statement
from congenial.ledger.budget import Budget
from congenial.ledger.counted_unit import CountedUnit
from congenial.ledger.repair import refuse_unknown
from congenial.ledger.state import VALUES, LedgerState, drawn_given, join_figures
from congenial.pairs.several_rows import SeveralRows
from congenial.pairs.stored_pairs import stored_pairs_compose
from congenial.privacy.composition import Loss
from congenial.privacy.descriptions import AnyDescription
from congenial.privacy.guarantee import Guarantee

WHOLE_DATASET = "pairs of distributions"
SECRETS = "secret pairs"
DESCRIPTION = "Give the description of a mechanism or a release."


# Kinds whose promises take published figures into account, or are void by the rules stated here.
GIVEN_FIGURES = (
    *("replace-one", "symmetric difference", "rows of one unit", "units with rows"),
    *(VALUES, SECRETS),
)


def refuse_promise(state: LedgerState, adjacency: Mapping[str, Any], composes: bool = True) -> None:
    """LedgerError when a promise about these pairs cannot stand beside those that are counted.

    `composes`: what the pairs themselves say; it can only refuse more than what they write does.
    """
    if adjacency.get("reading") not in (None, "robust"):
        raise LedgerError(
            f"this release promises something in the {adjacency['reading']} reading, and a ledger "
            "counts in the robust one.",
            remedy="Calibrate it under SemiAdjacent(figures), without a reading.",
        )
    adds = composes and stored_pairs_compose(adjacency)
    _refuse_company(state, [] if adds else [adjacency])
    if state.figures.told and not _given_figures(adjacency):
        raise LedgerError(
            f"exact figures of these data are published; {_promise(adjacency)} does not take them "
            "into account.",
            remedy="Release a table given those figures, which protects persons.",
        )
    exact = [figure for figure in state.figures.told if figure.relation == "="]
    if exact and _come_and_go(adjacency):
        raise LedgerError(
            f"'{exact[0].label}' is published exactly, and this release promises that one person "
            "more or less does not show: together they would tell the two apart for certain.",
            remedy="Release it under SemiAdjacent(figures), which keeps what is published; other "
            "people's data need another ledger.",
        )
    tied = _tied(state, adjacency, state.figures.statements)
    if tied:
        raise LedgerError(
            f"'{tied[0].label}' is published, so nobody's protected values can change alone.",
            remedy="Use SemiAdjacent, which prices such figures.",
        )


def refuse_figures(state: LedgerState, figures: Figures, accepted: bool) -> None:
    """LedgerError when new figures, bounds or rules would make a counted promise void.

    A promise about the whole dataset cannot be given up; one given public information, or about
    single values, can, if that is accepted: what its release does to single records is still
    counted.
    """
    for entry in state.counted:
        if not _given_figures(entry.pairs):
            raise LedgerError(
                f"this ledger counts the release '{entry.name}' from the same data; "
                f"{_promise(entry.pairs)} does not add up with exact figures.",
                remedy="Keep the figures, or their release, out of this ledger's data. "
                "Other people's data need another ledger.",
            )
    new = [s for s in figures.told if s not in state.figures.told]
    if accepted or not new:
        return
    for entry in state.counted:
        why = _void(state, entry.pairs, new)
        if why:
            raise LedgerError(
                f"'{entry.name}' promises something {why} that promise is void.",
                remedy="Publish with --accept-weaker if it must be published; what the release "
                "does to single records is still counted.",
            )


def ended(state: LedgerState, pairs: Mapping[str, Any], new: Sequence[Statement]) -> bool:
    """Whether statements published since have ended a promise about these pairs."""
    return bool(new) and bool(_void(state, pairs, new))


def _void(state: LedgerState, pairs: Mapping[str, Any], new: Sequence[Statement]) -> str:
    """What a promise about these pairs is of, and the first statement that ends it; or ""."""
    if pairs["metric"] == SECRETS:
        return f"given what was public before it; once '{new[0].label}' is published too,"
    exact = [figure for figure in new if figure.relation == "="]
    if exact and _come_and_go(pairs) and state.unit.kind == "replace-one":
        return (
            f"about one person more or less; once '{exact[0].label}' is published, that shows, and"
        )
    tied = _tied(state, pairs, new)
    if not tied:
        return ""
    values = ", ".join(name for name in state.schema.names if name not in pairs["public"])
    return (
        f"about one person's {values} alone; once '{tied[0].label}' is published, nobody's can "
        "change alone, and"
    )


def _tied(
    state: LedgerState, pairs: Mapping[str, Any], statements: Sequence[Statement]
) -> list[Statement]:
    """The figures and bounds that say something about values promised to be protected alone.

    A rule that is zero by definition leaves fewer pairs, and the promise holds for them.
    """
    if pairs["metric"] != VALUES:
        return []
    public = set(pairs["public"])
    counted = [s for s in statements if s.relation != "zero"]
    return [s for s in counted if not set(Cells(state.schema, (s,)).bases) <= public]


def _come_and_go(pairs: Mapping[str, Any]) -> bool:
    """Whether its pairs have one person more or less, whatever is published (`AddRemove`)."""
    return pairs["metric"] == "symmetric difference" and pairs.get("reading") is None


def _refuse_company(state: LedgerState, alone: Sequence[Mapping[str, Any]]) -> None:
    """LedgerError if something is counted and one of the promises stands alone, new or counted."""
    for entry in state.counted:
        stored = [] if stored_pairs_compose(entry.pairs) else [entry.pairs]
        for pairs in [*alone, *stored]:
            raise LedgerError(
                f"this ledger counts the release '{entry.name}' from the same data; "
                f"{_promise(pairs)} does not add up with any other release.",
                remedy=_instead(pairs),
            )


def _promise(pairs: Mapping[str, Any]) -> str:
    """What a promise that stands alone is about."""
    if pairs["metric"] == WHOLE_DATASET:
        return "a promise about the whole dataset"
    if pairs["metric"] == SECRETS:
        return "a promise whose distance is assumed for one table"
    return f"a promise about '{pairs['metric']}', for which no rule of adding is known,"


def _instead(pairs: Mapping[str, Any]) -> str:
    if pairs["metric"] == WHOLE_DATASET:
        return "Put all statistics into one release. Other people's data need another ledger."
    if pairs["metric"] == SECRETS:
        return (
            "Use scenarios = { believe = 'independent records' } for all of them. Other people's "
            "data need another ledger."
        )
    return (
        "Release what is wanted together as one release, use the version of congenial that wrote "
        "the ledger, or take another ledger for other people's data."
    )


def _given_figures(pairs: Mapping[str, Any]) -> bool:
    return pairs["metric"] in GIVEN_FIGURES


def check_schema(state: LedgerState, schema: Schema) -> None:
    """Refuse what belongs to another population."""
    if schema.digest != state.schema.digest:
        raise LedgerError(
            "the request is over another schema than this ledger.",
            remedy="One ledger is one population: use the ledger of that schema.",
        )


def check_description(state: LedgerState, description: AnyDescription) -> None:
    """Refuse a release of another population, or given other figures than those published."""
    expect(description, get_args(AnyDescription), "the description", DESCRIPTION, LedgerError)
    check_schema(state, description.support.schema)
    join_figures(state.figures, drawn_given(description))


def over_budget(state: LedgerState, description: AnyDescription, name: str) -> BudgetError | None:
    """Why the budget does not allow a release, if it does not."""
    check_description(state, description)
    after, budget = state.with_release(description), state.budget
    if budget is None or budget.allows(after):
        return None
    return uncountable(budget, after, name) or BudgetError(
        f"release '{name}' asks for {budget.say(state.price([description]))}; together with "
        f"{budget.say(state.spent)} spent before, the total would be {budget.say(after)}, and the "
        f"budget is {budget.words} (left: {budget.left(state.spent)}).",
        remedy="Ask for less, abandon what was reserved but not drawn, or set another budget with "
        "`congenial ledger budget`.",
    )


def uncountable(budget: Budget, loss: Loss, name: str) -> BudgetError | None:
    """Why a loss has no amount in the budget's unit, if it has none."""
    try:
        budget.spent(loss)
    except GuaranteeError as error:
        return BudgetError(
            f"release '{name}' cannot be counted against the budget ({budget.words}): {error.what}",
            remedy=error.remedy,
        )
    return None


def refuse_release(
    state: LedgerState, description: AnyDescription, guarantee: Guarantee, name: str
) -> None:
    """BudgetError or LedgerError for a release that cannot be counted beside the others."""
    refuse_guarantee(state, guarantee)
    why = over_budget(state, description, name)
    if why is not None:
        raise why


def refuse_guarantee(state: LedgerState, guarantee: Guarantee) -> None:
    """LedgerError while spending is unknown, or when a promise cannot stand beside the others."""
    refuse_unknown(state.malformed, limited=state.budget is not None)
    pairs = guarantee.adjacency
    refuse_promise(state, pairs.to_dict(), pairs.composes)


# ---- another unit --------------------------------------------------------------------------------

_OF_ROWS = ("replace-one", "symmetric difference", "rows of one unit", "units with rows")


def refuse_other_unit(state: LedgerState, new: CountedUnit) -> None:
    """LedgerError where what is counted cannot be promised for another unit."""
    if not state.unit.may_become(new):
        raise LedgerError(
            f"this ledger counts under {state.unit.words}; {new.words} does not promise as much to "
            "everybody, and what was promised stays.",
            remedy=f"Give max_rows = {state.unit.max_rows or 1} or more and the kind 'several "
            "rows', or the ledger's own; a new population needs a new ledger.",
        )
    for entry in state.counted:
        if entry.pairs["metric"] not in _OF_ROWS:
            raise LedgerError(
                f"release '{entry.name}' does not protect a row whatever it contains: no price "
                "for units with several rows is proved for it.",
                remedy="Keep the unit; other people's data need another ledger.",
            )
    replaced = [entry.name for entry in state.counted if entry.pairs["metric"] == "replace-one"]
    if replaced and not _tells_rows(new, state.figures):
        raise LedgerError(
            f"release '{replaced[0]}' replaces records, which keeps the number of rows, and no "
            "exact figure states that number: one row more or fewer would show for certain.",
            remedy="Publish the number of rows first (total), then change the unit.",
        )


def _tells_rows(unit: CountedUnit, figures: Figures) -> bool:
    """Whether look-alikes have the same number of rows."""
    pairs = unit.adjacency(figures)
    return isinstance(pairs, SeveralRows) and pairs.people_kept
