"""What `congenial check` says about records from tables."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from congenial.kinds.kind import Document, Screen

if TYPE_CHECKING:
    from congenial.kinds.records_from_tables_offer import RecordsCheck


def examine(one: RecordsCheck) -> Document:
    """The check of one section as plain data; from public parameters alone."""
    from congenial.privacy.semantics import belief_words

    made = one.mechanism
    pairs = sqrt(made.variance) if made.rounds else None
    return {
        "name": one.section.name,
        "kind": "records from tables",
        "columns": [{"name": name, "levels": size} for name, size in made.sizes.items()],
        "rounds": made.rounds,
        "pairs": len(made.pairs),
        "chosen": made.chooses,
        "one_way_deviation": sqrt(made.first_variance),
        "pair_deviation": pairs,
        "needed_people": None if pairs is None else made.people_for_pairs,
        "kept": [statement.label for statement in made.kept.statements],
        "not_kept": made.not_kept,
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
    from congenial.privacy.numbers import number

    screen.heading(f"Release '{one['name']}': records from tables")
    columns = ", ".join(f"{each['name']} ({each['levels']})" for each in one["columns"])
    told = {"Columns (levels)": columns, "Measured": _measured(one)}
    told["Deviation of a count"] = f"{number(one['one_way_deviation'])} in one-way tables" + (
        "" if one["pair_deviation"] is None else f", {number(one['pair_deviation'])} in pairs"
    )
    told["Kept exactly"] = (
        "; ".join(one["kept"]) or "nothing: no published figure is about these columns"
    )
    if one["not_kept"]:
        told["Not in the records"] = "; ".join(one["not_kept"]) + " (they cost, and keep nothing)"
    screen.facts(told)
    screen.paragraph("")
    screen.paragraph(one["promise"])
    screen.paragraph("")
    screen.paragraph(one["belief"])
    if one["needed_people"] is not None:
        screen.paragraph("")
        screen.paragraph(
            "Pairs of columns say something where there are many people: with fewer than about "
            f"{one['needed_people']:,} the noise of a typical pair is more than a tenth of all of "
            "them, and relations between columns will be weak in the records."
        )


def _measured(one: Document) -> str:
    if not one["rounds"]:
        return "one-way tables only: columns are independent in the records"
    if not one["chosen"]:
        return f"all one-way tables and all {one['pairs']} pairs of columns that can be fitted"
    return (
        f"all one-way tables and {one['rounds']} of {one['pairs']} pairs of columns, chosen one "
        "after another under the same promise"
    )
