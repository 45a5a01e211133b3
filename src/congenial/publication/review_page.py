"""A plan as one self-contained page, to send to a reviewer before anything is published.

It is written from the plan, the ledger and the check alone. Where modelling data are a part of the
records the check itself rests on them, and the page says that it is confidential.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from congenial.kinds.kind import Document
from congenial.publication.check_document import words
from congenial.publication.plan import DIGEST_OF, Plan
from congenial.publication.table_audit import audit_results
from congenial.report.render import page
from congenial.report.words import Block, Paragraph, blocks, sections

Facts = tuple[tuple[str, str], ...]
Sections = list[tuple[str, list[Block]]]


@dataclass(frozen=True)
class ReviewContent:
    """What the page shows: the check in short and in full, questions, attacks, and the plan."""

    title: str
    basis: str
    from_records: bool
    in_short: Sections
    questions: tuple[str, ...]
    attacks: Facts
    sections: Sections
    identity: Facts
    text: str


def review(plan: Plan, document: Document, text: str, name: str) -> ReviewContent:
    """The page's content: a checked plan, its check as plain data, its text and the file's name."""
    return ReviewContent(
        plan.schema.about.title or name,
        document["basis"],
        any(isinstance(getattr(one, "modelling", None), Fraction) for one in plan.release),
        sections(words(document)),
        questions(plan, document),
        tuple((one.name, one.told) for one in audit_results(plan)),
        sections(words(document, full=True)),
        (
            ("File", name),
            (DIGEST_OF, plan.digest),
            *((f"SHA-256 of {one}", digest) for one, digest in plan.file_digests.items()),
        ),
        text,
    )


def questions(plan: Plan, document: Document) -> tuple[str, ...]:
    """What a reviewer should ask of this plan."""
    figures = document["figures"]
    asked = blocks(
        "review_questions.txt",
        check=document,
        checked_unit=plan.unit.checked,
        no_ground=[one["label"] for one in figures if not one["because"]],
        many=[one["label"] for one in figures if one["figures"] > 1],
        weak=[one["name"] for one in document["releases"] if not _by_theorem(one)],
    )
    return tuple(block.text for block in asked if isinstance(block, Paragraph))


def review_html(plan: Plan, document: Document, text: str, name: str) -> str:
    """The review as one HTML document."""
    return page("review.html", review=review(plan, document, text, name))


def write_review(plan: Plan, document: Document, plan_file: Path, out: Path) -> None:
    """Write the page of the plan in a file."""
    out.parent.mkdir(parents=True, exist_ok=True)
    made = review_html(plan, document, Plan.read(plan_file), plan_file.name)
    out.write_text(made, encoding="utf-8")


def _by_theorem(release: Document) -> bool:
    return str(release["guarantee"]["basis"]).startswith("theorem")
