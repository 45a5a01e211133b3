"""What `congenial check` says about records from tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial.kinds.kind import Document, Screen

if TYPE_CHECKING:
    from congenial.kinds.records_from_tables_offer import RecordsCheck

SHOWN_PAIRS = 5  # of the pairs, those with the largest error


def examine(one: RecordsCheck) -> Document:
    """The check of one section as plain data; from public parameters alone."""
    from congenial.privacy.semantics import belief_words
    from congenial.synthesis.from_tables.predicted_error import (
        known_people,
        needed_people,
        predicted_errors,
    )

    made, budget = one.mechanism, one.mechanism.budget
    errors = predicted_errors(made)
    return {
        "name": one.section.name,
        "kind": "records from tables",
        "columns": [{"name": name, "levels": size} for name, size in made.sizes.items()],
        "rounds": budget.rounds,
        "pairs": budget.pairs,
        "chosen": budget.chooses,
        "copies": made.copies,
        "records": made.records,
        "tables": [table.to_dict() for table in errors],
        "people": known_people(made),
        "needed_people": needed_people(errors),
        "pure_is_better": one.pure_is_better,
        "kept": [statement.label for statement in made.kept.statements],
        "not_kept": made.not_kept,
        "public": one.section.public,
        "quantiles": {cut.name: cut.to_dict() for cut in made.rules.quantiles},
        "made_up": [column.name for column in made.rules.made_up],
        "counted": one.counted,
        "mechanism": made.name,
        "per_person": one.guarantee.tradeoff.words,
        "guarantee": one.guarantee.to_dict(),
        "promise": one.guarantee.explain(),
        "belief": belief_words(one.guarantee),
        "errors": [],
        "wanted": None,
    }


def show(one: Document, screen: Screen) -> None:
    """The check of one section for people."""
    screen.heading(f"Release '{one['name']}': records from tables")
    columns = ", ".join(f"{each['name']} ({each['levels']})" for each in one["columns"])
    told = {"Columns (levels)": columns, "Measured": _measured(one), "Written": _written(one)}
    told["Kept exactly"] = (
        "; ".join(one["kept"]) or "nothing: no published figure is about these columns"
    )
    if one["not_kept"]:
        told["Not in the records"] = "; ".join(one["not_kept"]) + " (they cost, and keep nothing)"
    if one["quantiles"]:
        told["Bins drawn first"] = _quantiles(one)
    if one["made_up"]:
        told["Made up"] = ", ".join(one["made_up"]) + " (they say nothing about anybody)"
    if one["public"]:
        told["Public"] = ", ".join(one["public"]) + " (their table is kept, and not protected)"
        told["In the ledger"] = f"{one['counted']}, for a person's whole record"
    screen.facts(told)
    _show_errors(one, screen)
    for text in (one["promise"], one["belief"], *_advice(one)):
        screen.paragraph("")
        screen.paragraph(text)


def _quantiles(one: Document) -> str:
    """Which columns are cut at private quantiles."""
    each = [
        f"{name} at private quantiles, {told['bins']} bins"
        + (f" ({told['in_pairs']} in pairs)" if told["in_pairs"] != told["bins"] else "")
        for name, told in one["quantiles"].items()
    ]
    return "; ".join(each) + "; the noise below is for so many"


def _show_errors(one: Document, screen: Screen) -> None:
    """The error of every column and of the widest pairs."""
    from congenial.privacy.numbers import number

    singles = [each for each in one["tables"] if len(each["table"]) == 1]
    pairs = [each for each in one["tables"] if len(each["table"]) == 2]
    widest = sorted(pairs, key=lambda each: -each["misplaced"])[:SHOWN_PAIRS]
    shown = [*singles, *widest]
    if not shown:
        return
    rows = [
        [
            " x ".join(each["table"]),
            each["cells"],
            number(each["deviation"]),
            _misplaced(each["misplaced"], one["people"]),
        ]
        for each in shown
    ]
    screen.paragraph("")
    screen.table(
        ["table", "cells", "noise of a count (sd)", "records misplaced by noise"],
        rows,
        numbers="cells,noise of a count (sd),records misplaced by noise",
    )
    if len(pairs) > len(widest):
        screen.paragraph(
            f"The widest of {len(pairs)} pairs are shown; --json has all. Kept figures and the fit "
            "leave less than this; a pair that is not measured has an error of its own."
        )


def _misplaced(misplaced: float, people: int | None) -> str:
    count = f"{misplaced:,.0f}" if misplaced >= 10 else f"{misplaced:.1f}"
    return count if not people else f"{count} ({100 * misplaced / people:.1f} %)"


def _advice(one: Document) -> list[str]:
    """Where records would be of little use, and what would be better."""
    found, needed, people = [], one["needed_people"], one["people"]
    if needed is not None and people is not None and people < needed:
        found.append(
            f"Warning: with {people:,} people the noise of a typical pair misplaces more than a "
            f"tenth of them (about {needed:,} people would be enough), so relations between "
            "columns will be lost in the records. Synthesise fewer columns, use fewer levels or "
            "rounds, or a larger promise."
        )
    elif needed is not None:
        found.append(
            "Pairs of columns say something where there are many people: with fewer than about "
            f"{needed:,} the noise of a typical pair misplaces more than a tenth of all of them, "
            "and relations between columns will be weak in the records."
        )
    if one["pure_is_better"]:
        found.append(
            "Without delta, the same epsilon would need less noise for so few tables: leave delta "
            "out for a stronger promise and better records."
        )
    return found


def _written(one: Document) -> str:
    number = (
        "as many records as people" if one["records"] is None else f"{one['records']:,} records"
    )
    return number if one["copies"] == 1 else f"{one['copies']} copies of {number}"


def _measured(one: Document) -> str:
    if not one["rounds"]:
        return "one-way tables only: columns are independent in the records"
    if not one["chosen"]:
        return f"all one-way tables and all {one['pairs']} pairs of columns that can be fitted"
    return (
        f"all one-way tables and {one['rounds']} of {one['pairs']} pairs of columns, chosen one "
        "after another under the same promise"
    )
