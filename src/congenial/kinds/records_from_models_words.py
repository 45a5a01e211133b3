"""What `congenial check` says about a release of synthetic records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial.kinds.kind import Document, Screen
from congenial.kinds.shared_words import show_promise

if TYPE_CHECKING:
    from congenial.kinds.records_from_models_offer import ModelRecordsCheck


def examine(one: ModelRecordsCheck) -> Document:
    """The check of one section as plain data; from public parameters alone."""
    made = one.mechanism
    return {
        "name": one.section.name,
        "kind": "synthetic records",
        "columns": [
            {
                "name": column.name,
                "model": column.model.to_dict(),
                "given": list(column.given),
                "weighting": column.weighting,
                "M": kernel.bound,
                "settled": column.name in made.settled,
                "contexts": kernel.contexts,
                "least_weight": float(kernel.weights[kernel.allowed].min()),
                "largest_weight": float(kernel.weights.max()),
            }
            for column, kernel in zip(made.columns, made.kernels, strict=True)
        ],
        "public": list(made.public),
        "M": made.bound,
        "copies": made.copies,
        "records": made.records,
        "mechanism": made.name,
        "per_person": one.guarantee.tradeoff.words,
        "protects": list(getattr(one.guarantee.adjacency, "sensitive", one.mechanism.schema.names)),
        "counted": one.counted,
        "guarantee": one.guarantee.to_dict(),
        "promise": one.guarantee.explain(),
        "errors": [],
        "wanted": None,
    }


def _for(one: Document) -> str:
    """Which values the promise is about, where they are not all of them."""
    return f", for {', '.join(one['protects'])}" if one["public"] else ""


def show(one: Document, screen: Screen) -> None:
    """The check of one section for people."""
    from congenial.privacy.numbers import number

    screen.heading(f"Release '{one['name']}': synthetic records")
    rows = "as many as people in the data" if one["records"] is None else one["records"]
    screen.facts(
        {
            "Copies": f"{one['copies']}, each drawn with parameters of its own",
            "Records of a copy": rows,
            "M": f"{number(one['M'])} (what one record may weigh in one copy, not the promise)",
            "Per person": one["per_person"] + _for(one),
            "In the ledger": f"epsilon = {number(one['counted'])}, for a person's whole record",
            "Copied as they are": ", ".join(one["public"]) or "nothing",
        }
    )
    screen.paragraph("")
    screen.table(
        ("column", "model", "given", "contexts", "M", "weight of a record"),
        [
            (
                column["name"],
                column["model"]["kind"],
                ", ".join(column["given"]) or "-",
                column["contexts"],
                number(column["M"]),
                "-"
                if column["settled"]
                else f"{column['least_weight']:.3g} to {column['largest_weight']:.3g}",
            )
            for column in one["columns"]
        ],
        numbers=("contexts", "M"),
    )
    for column in one["columns"]:
        if column["settled"]:
            screen.paragraph(
                f"{column['name']} has no part of M: the published totals fix its values, so no "
                "parameter is drawn for it and its share goes to the other columns."
            )
    show_promise(one, screen)
    screen.paragraph(
        "Errors depend on the data: `congenial curve` and, once released, `congenial utility` show "
        "them to the curator alone."
    )
