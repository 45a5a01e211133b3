"""What `congenial check` says about records from tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial.kinds.kind import Document, Screen

if TYPE_CHECKING:
    from congenial.kinds.records_from_tables_offer import RecordsCheck
    from congenial.synthesis.from_tables.table_records import TableRecords

SHOWN_PAIRS = 5  # of the pairs, those with the largest error


def examine(one: RecordsCheck) -> Document:
    """The check of one section as plain data; from public parameters alone."""
    from congenial.synthesis.from_tables.pair_axes import LARGEST_CLIQUE
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
        "coarsened": [
            {"pair": list(pair), "by": list(axes)}
            for pair, axes in made.pair_axes.coarsened.items()
        ],
        "most_cells": LARGEST_CLIQUE,
        "too_large": [
            {"pair": list(pair), "cells": made.schema.size(pair)}
            for pair in made.pair_axes.too_large
        ],
        "copies": made.copies,
        "records": made.records,
        "tables": [table.to_dict() for table in errors],
        "noun": "rows" if made.several_rows else "people",
        "people": known_people(made),
        "needed_people": needed_people(errors),
        "needed_alone": {t.axes[0]: t.needed for t in errors if len(t.axes) == 1},
        "pure_is_better": one.pure_is_better,
        "kept": [statement.label for statement in made.kept.statements],
        "not_kept": made.not_kept,
        "public": one.section.public,
        "quantiles": {cut.name: cut.to_dict() for cut in made.rules.quantiles},
        "made_up": [column.name for column in made.rules.made_up],
        "counted": one.counted,
        "ends_only": _ends_only(made),
        "mechanism": made.name,
        "per_person": one.guarantee.tradeoff.words,
        "guarantee": one.guarantee.to_dict(),
        "promise": one.guarantee.explain(),
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
    if one["coarsened"]:
        each = [f"{' x '.join(o['pair'])} by {' x '.join(o['by'])}" for o in one["coarsened"]]
        told["Coarsened"] = "; ".join(each) + " (a fit holds no more)"
    if one["made_up"]:
        told["Made up"] = ", ".join(one["made_up"]) + " (they say nothing about anybody)"
    if one["public"]:
        told["Public"] = ", ".join(one["public"]) + " (their table is kept, and not protected)"
        told["In the ledger"] = f"{one['counted']}, for all rows and columns of anyone"
    screen.facts(told)
    _show_errors(one, screen)
    for text in (one["promise"], *_advice(one)):
        screen.paragraph("")
        screen.paragraph(text)


def _ends_only(made: TableRecords) -> list[str]:
    """Columns with an open level whose mean no tail states."""
    stated = {(tail.name, side) for tail in made.rules.tails for side in tail.to_dict()}
    columns = [made.schema.attribute(name) for name in made.names]
    open_ends = [
        (one.name, side)
        for one in columns
        for side, level in (("top", one.top), ("bottom", one.bottom))
        if level is not None
    ]
    return list(dict.fromkeys(name for name, side in open_ends if (name, side) not in stated))


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
        numbers=("cells", "noise of a count (sd)", "records misplaced by noise"),
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
    found, noun = [], one["noun"]
    needed, people = one["needed_people"], one["people"]
    if needed is not None and people is not None and people < needed:
        found.append(
            f"Warning: with {people:,} {noun} the noise of a typical pair misplaces more than a "
            f"tenth of them (about {needed:,} {noun} would be enough), so relations between "
            "columns will be lost in the records. Synthesise fewer columns, use fewer levels or "
            "rounds, or a larger promise."
        )
    elif needed is not None:
        found.append(
            f"Pairs of columns say something where there are many {noun}: with fewer than about "
            f"{needed:,} the noise of a typical pair misplaces more than a tenth of all of them, "
            "and relations between columns will be weak in the records."
        )
    found += _weak_columns(one)
    if one["ends_only"]:
        found.append(
            f"Open levels of {', '.join(one['ends_only'])} are written as their ends: numbers "
            "beyond them are lost. State their mean (`tails`), or give edges that hold them."
        )
    if one["too_large"]:
        widest = max(one["too_large"], key=lambda each: each["cells"])
        pairs = "; ".join(" x ".join(each["pair"]) for each in one["too_large"])
        found.append(
            f"Not measured, because a fit holds tables of at most {one['most_cells']:,} cells: "
            f"{pairs} ({widest['cells']:,} cells). How these columns relate is lost in the "
            "records. Give one of each two a coarser name (`within` in the schema) or fewer levels."
        )
    if constant := [each["name"] for each in one["columns"] if each["levels"] == 1]:
        found.append(
            f"{', '.join(constant)}: one level only, the same in every record. Give it edges or "
            "levels, or leave it out."
        )
    if one["pure_is_better"]:
        found.append(
            "Without delta, the same epsilon would need less noise for so few tables: leave delta "
            "out for a stronger promise and better records."
        )
    return found


def _weak_columns(one: Document) -> list[str]:
    """Columns with so many levels that even alone they take more people than there may be."""
    people, alone = one["people"], one["needed_alone"]
    enough = (one["needed_people"] or 0) if people is None else people
    weak = [f"{name} (about {needed:,})" for name, needed in alone.items() if needed > enough]
    if not weak:
        return []
    noun = one["noun"]
    known = "Some columns" if people is None else f"Warning: with {people:,} {noun} some columns"
    return [
        f"{known} are mostly noise even alone, unless there are more {noun} than this: "
        f"{', '.join(weak)}. Give them fewer levels (edges), or quantiles, or a larger promise."
    ]


def _written(one: Document) -> str:
    number = f"as many records as {one['noun']}"
    if one["records"] is not None:
        number = f"{one['records']:,} records"
    if one["noun"] == "rows":
        number += ", which do not say which of them belong to one unit"
    return number if one["copies"] == 1 else f"{one['copies']} copies of {number}"


def _measured(one: Document) -> str:
    if not one["rounds"]:
        return "one-way tables only: columns are independent in the records"
    if not one["chosen"]:
        pairs = "the" if one["pairs"] == 1 else f"all {one['pairs']}"
        noun = "pair" if one["pairs"] == 1 else "pairs"
        return f"all one-way tables and {pairs} {noun} of columns that can be fitted"
    return (
        f"all one-way tables and {one['rounds']} of {one['pairs']} pairs of columns, chosen one "
        "after another under the same promise"
    )
