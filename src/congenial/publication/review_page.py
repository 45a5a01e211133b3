"""A plan as one self-contained page, to send to a reviewer before anything is published.

It is written from the plan, the ledger and the check alone. Where modelling data are a part of the
records the check itself rests on them, and the page says that it is confidential.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from congenial.kinds.kind import Document
from congenial.publication.check_words import expected_errors, half_width, show
from congenial.publication.plan import DIGEST_OF, Plan
from congenial.publication.table_audit import audit_results
from congenial.report.page import PageColumn, PageTable, table
from congenial.report.page_screen import PageScreen, PageSection
from congenial.report.render import page

Facts = tuple[tuple[str, str], ...]
_ERRORS = (
    PageColumn("error of"),
    PageColumn("standard deviation", number=True),
    PageColumn("within", number=True),
)


@dataclass(frozen=True)
class ReleaseInShort:
    """One release: what it shows, what it promises, how far its counts are off."""

    name: str
    what: str
    promise: str
    errors: PageTable | None


@dataclass(frozen=True)
class ReviewContent:
    """What the page shows."""

    title: str
    lead: str
    from_records: bool
    releases: tuple[ReleaseInShort, ...]
    budget: Facts
    questions: tuple[str, ...]
    attacks: Facts
    sections: tuple[PageSection, ...]
    identity: Facts
    text: str


def review(plan: Plan, document: Document, text: str, name: str) -> ReviewContent:
    """The page's content: a checked plan, its check as plain data, its text and the file's name."""
    screen = PageScreen()
    show(document, screen)
    budget = document["budget"]
    lead = (
        "Everything on this page follows from the plan and the ledger; numbers are "
        f"{document['basis']}."
    )
    left = budget["left"] if budget["allowed"] else "not enough: a release will be refused"
    asked = f"{budget['asked']} of {budget['limit']}"
    return ReviewContent(
        plan.schema.about.title or name,
        lead,
        any(isinstance(getattr(one, "modelling", None), Fraction) for one in plan.release),
        tuple(_in_short(plan, one) for one in document["releases"]),
        (("Asks for", asked), ("Spent so far", budget["spent"]), ("Left then", left)),
        tuple(questions(plan, document)),
        tuple((one.name, one.told) for one in audit_results(plan)),
        tuple(screen.sections),
        (
            ("File", name),
            (DIGEST_OF, plan.digest),
            *((f"SHA-256 of {one}", digest) for one, digest in plan.file_digests.items()),
        ),
        text,
    )


def review_html(plan: Plan, document: Document, text: str, name: str) -> str:
    """The review as one HTML document."""
    return page("review.html", review=review(plan, document, text, name))


def write_review(plan: Plan, document: Document, plan_file: Path, out: Path) -> None:
    """Write the page of the plan in a file."""
    out.parent.mkdir(parents=True, exist_ok=True)
    made = review_html(plan, document, Plan.read(plan_file), plan_file.name)
    out.write_text(made, encoding="utf-8")


def _in_short(plan: Plan, one: Document) -> ReleaseInShort:
    rows = [(e.what, f"{e.deviation:.2f}", half_width(e)) for e in expected_errors(one)]
    errors = table(_ERRORS, rows) if rows else None
    what, tables = one["kind"].capitalize(), one.get("tables", [])
    shown = one.get("table") or getattr(plan.named(one["name"]), "synthesise", None)
    if one["kind"] == "tables" and len(tables) == 1:
        what = f"Table over {', '.join(tables[0]['table'])}"
    elif one["kind"] == "tables":
        what = f"{len(tables)} tables under one promise"
    elif shown:
        what += f" over {', '.join(shown)}"
    return ReleaseInShort(one["name"], f"{what}.", one["promise"], errors)


def questions(plan: Plan, document: Document) -> Iterator[str]:
    """What a reviewer should ask of this plan."""
    grounds = [one["label"] for one in document["mandates"] if not one["because"]]
    if grounds:
        yield f"No ground is given for publishing exactly: {', '.join(grounds)}. Must they be?"
    fine = [one["label"] for one in document["mandates"] if one["figures"] > 1]
    if fine and not document["published"]:
        yield (
            f"{', '.join(fine)}: are groups so small that a figure is about one or two people, or "
            "says that all of them are alike? `congenial publish --dry-run` tells the curator."
        )
    if document["mandates"] and not document["only_people"]:
        yield "Published figures and what follows from them are not protected. Is that understood?"
    if not plan.unit.checked:
        yield "No column names the person: each row is taken for one, and nobody checks it."
    if document["adjacency"]["neighbourhood"] != "intact":
        yield (
            "The figures tie people together: the promise is about changing up to "
            f"{document['adjacency']['records']} records at once, not one alone."
        )
    weak = [one["name"] for one in document["releases"] if not _by_theorem(one)]
    if weak:
        yield f"The promise of {', '.join(weak)} rests on less than a theorem: read its basis."
    if not document["budget"]["allowed"]:
        yield "The budget does not allow all of this."
    yield "Are the expected errors small enough for what readers will do with the tables?"


def _by_theorem(one: Document) -> bool:
    basis = str(one.get("guarantee", {}).get("basis", "theorem"))
    return basis.startswith("theorem")
