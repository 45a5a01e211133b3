"""The check of a plan for people, in two depths, wherever they read: a screen or a page."""

from __future__ import annotations

from dataclasses import dataclass

from congenial.kinds.kind import Document, Screen
from congenial.kinds.registry import by_name
from congenial.privacy.semantics import NEIGHBOURHOOD_WORDS

STRUCTURES = {
    "none": "no published sum",
    "laminar": "nested: the figures fix the total of every group of people they tell apart",
    "two-way": "crossing: of some groups of people only sums in two directions are known",
    "one-way": "crossing: of some groups of people only sums in several directions are known",
    "general": "groups of people tied by linear equations",
}
RELEASED_ALREADY = "Released already, and not worked out again: "
MOST_ERRORS = 12  # rows of expected errors that a short answer shows; it says how many more


@dataclass(frozen=True)
class ExpectedError:
    """How far a kind of count is off: standard deviation, and a half-width where it is known."""

    what: str
    deviation: float
    within: float | None
    level: float | None


def expected_errors(release: Document) -> tuple[ExpectedError, ...]:
    """The expected errors of a release of any kind, from its document; () where data decide."""
    rows, tables = release["errors"], release.get("tables", [])
    if len(tables) > 1:  # of one table, `errors` has every kind of sum
        rows = [row | {"what": " x ".join(row["table"]) or "total"} for row in tables]
    return tuple(
        ExpectedError(row["what"], row["standard_deviation"], row.get("within"), row.get("level"))
        for row in rows
        if row.get("standard_deviation") is not None
    )


def half_width(error: ExpectedError) -> str:
    """ "50 at 95%", or "-" where it is not known."""
    if error.within is None or error.level is None:
        return "-"
    return f"{error.within:.2f} at {error.level:.0%}"


def show_brief(document: Document, screen: Screen) -> None:
    """The promise, the errors, what is spent."""
    figures = [one["label"] for one in document["mandates"]]
    if figures:
        screen.heading(f"Published exactly, unprotected: {', '.join(figures)}")
    _say_done(document, screen)
    for one in document["releases"]:
        screen.heading(f"Release '{one['name']}'")
        screen.paragraph(one["promise"])
        errors = expected_errors(one)
        if errors:
            screen.paragraph("")
            rows = [(e.what, f"{e.deviation:.2f}", half_width(e)) for e in errors[:MOST_ERRORS]]
            columns = ("error of", "standard deviation", "within")
            screen.table(columns, rows, numbers=("standard deviation", "within"))
        if len(errors) > MOST_ERRORS:
            more = len(errors) - MOST_ERRORS
            screen.paragraph(f"... and {more} more: `congenial check --all` lists them.")
        if one.get("unanswered"):
            screen.paragraph(one["unanswered"])
    if document["supposed"] is not None:
        _show_supposed(document["supposed"], screen)
    _show_budget(document["budget"], screen)


def show(document: Document, screen: Screen) -> None:
    """Everything."""
    kinds = [by_name(one["kind"]) for one in document["releases"]]
    if not kinds or any(kind.given_figures for kind in kinds):
        _show_figures(document, screen)
    _say_done(document, screen)
    for kind, one in zip(kinds, document["releases"], strict=True):
        kind.show(one, screen, document["want"])
    if document["supposed"] is not None:
        _show_supposed(document["supposed"], screen)
    _show_budget(document["budget"], screen)


def _say_done(document: Document, screen: Screen) -> None:
    if document["already_released"]:
        screen.paragraph("")
        names = ", ".join(f"'{name}'" for name in document["already_released"])
        screen.paragraph(f"{RELEASED_ALREADY}{names}.")
    elif not document["releases"]:
        screen.paragraph("")
        screen.paragraph("Nothing else is released: everything but these figures is suppressed.")


def _show_supposed(supposed: Document, screen: Screen) -> None:
    screen.heading(f"Supposing that these counts are known: {'; '.join(supposed['known'])}")
    screen.paragraph(f"Records that differ between look-alikes: at most {supposed['records']}")
    rows = [tuple(one.values()) for one in supposed["releases"]]
    screen.table(("release", "promise as planned", "promise then"), rows)


def _show_budget(budget: Document, screen: Screen) -> None:
    screen.heading("Budget")
    shown = {name.capitalize(): budget[name] for name in ("limit", "spent", "asked")}
    screen.facts(shown | {"Left then": budget["left"] if budget["allowed"] else "not enough"})
    if not budget["allowed"]:
        refused = "The budget does not allow all of this: a release will be refused."
        screen.paragraph(refused, style="red")


def _show_figures(document: Document, screen: Screen) -> None:
    screen.heading("Published exactly")
    adjacency = document["adjacency"]
    if not document["mandates"]:
        public = " but the number of people" if adjacency["metric"] == "replace-one" else ""
        screen.paragraph(f"Nothing{public}: this is ordinary differential privacy.")
    elif document["only_people"]:
        first = "" if document["published"] else " The first release records that number."
        screen.paragraph(
            "Nothing but the number of people, to which every table adds up: this is ordinary "
            f"differential privacy.{first}"
        )
    else:
        rows = [
            (
                one["label"],
                ", ".join(one["by"]) or "-",
                one["figures"] or "-",
                one["because"] or "-",
                _note(one),
            )
            for one in document["mandates"]
        ]
        screen.table(("figure", "by", "numbers", "because", "note"), rows, numbers=("numbers",))
    screen.paragraph("")
    apart = f"at most {adjacency['records']} between look-alikes (a* in the papers)"
    screen.facts(
        {
            "Structure": STRUCTURES[document["structure"]],
            "Independent figures": document["independent_figures"],
            "The protection compares": adjacency["words"],
            "Records that differ": apart,
            "Neighbourhoods": NEIGHBOURHOOD_WORDS[adjacency["neighbourhood"]],
            "Numbers below are": document["basis"],
        }
    )


def _note(mandate: Document) -> str:
    """What a published statement is, where it is no figure that says something new."""
    if mandate["bound"]:
        return f"public bound: {mandate['bound']}"
    if mandate["relation"] == "zero":
        return "impossible by definition"
    return "follows from the others" if mandate["redundant"] else ""
