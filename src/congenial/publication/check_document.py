"""The check of a plan as plain data, which `congenial check --json` prints and the desk shows, and
as words, for a terminal or a page; two plans compared, and the page for a reviewer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from congenial.data.about import ReliabilityLimits
from congenial.data.advance import Advance
from congenial.errors import GuaranteeError
from congenial.figures.statements import count
from congenial.kinds.kind import Document, Tell
from congenial.kinds.registry import of_section
from congenial.ledger.reassessment import suppose
from congenial.ledger.spent_and_left import right_in_100
from congenial.pairs.adjacency import SemiAdjacent
from congenial.privacy.composition import Loss, joint_loss
from congenial.privacy.semantics import NEIGHBOURHOOD_WORDS, neighbourhood
from congenial.publication import workflow
from congenial.publication.number_of_people import PEOPLE
from congenial.publication.plan import DIGEST_OF, Plan
from congenial.publication.table_audit import audit_results
from congenial.report.page import counted
from congenial.report.render import page
from congenial.report.words import Block, Paragraph, blocks, sections
from congenial.tables.intervals import reliable_from

if TYPE_CHECKING:
    from congenial.pairs.pairs import Adjacency
    from congenial.publication.plan import Plan
    from congenial.publication.workflow import PlanCheck
    from congenial.report.words import Block

STRUCTURES = {
    "none": "no exact sum",
    "laminar": "nested: they give the total of every group of people that they distinguish",
    "two-way": "crossing: for some groups of people they give only sums in two directions",
    "one-way": "crossing: for some groups of people they give only sums in several directions",
    "general": "groups of people tied together by linear equations",
}


def examine(
    plan: Plan,
    want: str | None = None,
    suppose: Sequence[str] = (),
    progress: Tell = lambda _: None,
) -> Document:
    """The check of a plan as plain data."""
    result = workflow.check(plan, want, again=bool(suppose), progress=progress)
    return of_check(result, want, suppose, progress)


def of_check(
    result: PlanCheck,
    want: str | None,
    suppose: Sequence[str],
    progress: Tell = lambda _: None,
) -> Document:
    """The result of a check as plain data."""
    plan, figures = result.plan, result.figures
    adjacency = plan.adjacency(figures)
    near = neighbourhood(adjacency)
    people = figures.known_total
    releases = list(_releases(result, people, progress))
    return {
        "figures": [
            {
                "label": statement.label,
                "because": statement.because,
                "by": list(statement.by),
                "relation": statement.relation,
                "figures": plan.schema.size(statement.by) if statement.relation == "=" else 0,
                "bound": statement.limit or None,
                "redundant": statement.label in figures.redundant,
            }
            | ({"units": True} if statement.units else {})
            for statement in figures.told
        ],
        "only_people": figures.told == (PEOPLE,),
        "given_figures": _given_figures(result),
        "people": people,
        "structure": figures.structure,
        "structure_words": STRUCTURES[figures.structure],
        "independent_figures": figures.rank,
        "adjacency": {
            "metric": adjacency.metric,
            "records": _apart(adjacency),
            "words": adjacency.words,
            "neighbourhood": near,
            "neighbourhood_words": NEIGHBOURHOOD_WORDS[near],
        },
        "published": result.published,
        "also_published": _also_published(result),
        "basis": result.basis,
        "worst_case": result.worst_case,
        "want": want,
        "releases": releases,
        "shown_twice": _shown_twice(releases),
        "quote": result.plan.about.quote,
        "supposed": _supposed(result, suppose) if suppose else None,
        "already_released": list(result.made),
        "budget": budget_of(result),
    }


def words(document: Document, *, full: bool = False) -> list[Block]:
    """The check for people: what matters on one screen, or everything."""
    return blocks("check_full.txt" if full else "check.txt", check=document)


def _releases(result: PlanCheck, people: int | None, progress: Tell) -> Iterator[Document]:
    """Each release, what each figure costs it, and how accurate it is."""
    for at, checked in enumerate(result.releases):
        step = f"working out what the exact figures cost '{checked.section.name}'"
        progress(Advance(step, at / len(result.releases)))
        kind = of_section(checked.section)
        document = kind.examine(checked)
        rows = accuracy_rows(document, people, result.plan.about.limits)
        yield document | {"words": kind.words, "accuracy": list(rows)}


def _given_figures(result: PlanCheck) -> bool:
    """Whether a promise of the plan is given the exact figures."""
    kinds = [of_section(checked.section) for checked in result.releases]
    return not kinds or any(kind.given_figures for kind in kinds)


def accuracy_rows(
    release: Document, people: int | None, limits: ReliabilityLimits
) -> Iterator[Document]:
    """A row for each table or statistic: how far its noisiest cell may be off.

    `share`: the margin of error over the mean count of a cell, where the number of people is known;
    of sums, over the largest number that one person can have. `marked`: the least numbers that are
    marked caution, and good, in the noisiest cell of a table that the files hold. `evenly`: how
    many cells would be caution and poor if people were spread as evenly as exact figures allow.
    """
    sums = {number["label"]: number for number in release.get("sums", [])}
    alone = next(iter(sums)) if len(sums) == 1 else "people"
    rows, tables = release["errors"], release.get("tables", [])
    evenly = {_named(row): row.get("evenly") if people else None for row in tables}
    if len(tables) > 1:  # of one table, `errors` has every kind of sum
        rows = [row | {"what": _named(row)} for row in tables]
    for row in rows:
        if row.get("standard_deviation") is None:
            continue
        cells, within = row.get("cells", row.get("sums")), row.get("within")
        share = within * cells / people if people and cells and within is not None else None
        number = sums.get(row.get("of", alone))
        if number is not None and within is not None:
            share = within / number["largest"]
        yield {
            "what": row["what"],
            "cells": cells,
            "standard_deviation": row["standard_deviation"],
            "within": within,
            "level": row.get("level"),
            "share": share,
            "marked": list(reliable_from(row["standard_deviation"], limits))
            if within and row["what"] in evenly
            else None,
            "evenly": evenly.get(row["what"]),
        }


def _named(row: Document) -> str:
    """A table in words, with what it is of where several things are measured."""
    named = " x ".join(row["table"]) or "total"
    return f"{row['of']}: {named}" if "of" in row else named


def _also_published(result: PlanCheck) -> list[str]:
    """Figures that are public, as the ledger says, and not in the plan (any more)."""
    planned = {figure.label for figure in result.plan.figures.told}
    return [figure.label for figure in result.figures.told if figure.label not in planned]


def _shown_twice(releases: Sequence[Document]) -> list[Document]:
    """Tables that several releases show, each with its own noise, and the one to quote."""
    margins: dict[str, dict[str, float]] = {}
    for release in releases:
        written = {" x ".join(row["table"]) or "total" for row in release.get("tables", ())}
        for row in release["accuracy"]:
            if row["what"] in written and row["standard_deviation"]:
                margins.setdefault(row["what"], {})[release["name"]] = row["standard_deviation"]
    return [
        {"what": what, "releases": list(of), "quote": min(of, key=of.__getitem__)}
        for what, of in margins.items()
        if len(of) > 1
    ]


def _apart(adjacency: Adjacency) -> int:
    """Records in which look-alikes may differ; 0 where the figures leave one database."""
    single = isinstance(adjacency, SemiAdjacent) and adjacency.reach.single
    return 0 if single else adjacency.records


def _supposed(result: PlanCheck, conditions: Sequence[str]) -> Document:
    """What the releases promise against someone who knows these counts too (semi-dp, section 7)."""
    if result.plan.unit_kind == "add-remove":
        raise GuaranteeError(
            "--suppose: without [publish], people with several rows may be added or removed, so "
            "no count is exact.",
            remedy="Use --suppose with [publish], or with one row per person.",
        )
    supposed = suppose(result.figures, *(count(condition) for condition in conditions))
    adjacency = result.plan.adjacency(supposed)
    return {
        "known": list(conditions),
        "records": _apart(adjacency),
        "releases": [
            {
                "name": check.section.name,
                "planned": check.guarantee.tradeoff.words,
                "supposed": joint_loss([check.mechanism.description], adjacency).tradeoff.words,
            }
            for check in result.releases
        ],
    }


def budget_of(result: PlanCheck) -> Document:
    """What is spent, what the plan still asks for, and what both leave, priced together."""
    plan, ledger = result.plan, result.ledger
    budget = plan.budget.budget()
    before = () if ledger is None else tuple(e for e in ledger.entries() if e.counted)
    done = {entry.name for entry in before}
    open_now = [check for check in result.releases if check.section.name not in done]
    asked = [check.mechanism.description for check in open_now]
    adjacency = plan.adjacency(result.figures)
    together = joint_loss([*(entry.description for entry in before), *asked], adjacency)
    spent = Loss() if result.spent is None else result.spent
    pairs = [check.guarantee.adjacency for check in result.releases]
    someone = any(side.guesser and side.same(adjacency) for side in pairs)  # as in `promise_of`
    return {
        "ledger": plan.ledger,
        "limit": budget.words,
        "spent": budget.say(spent),
        "asked": budget.say(joint_loss(asked, adjacency)),
        "asked_by": [check.section.name for check in open_now],
        "left": budget.left(together),
        "guess": right_in_100(budget.words) if someone else None,
        "allowed": budget.allows(together),
    }


# ---- two plans side by side ----------------------------------------------------------------------


@dataclass(frozen=True)
class InBothPlans:
    """One thing of both plans: None where a plan has it not."""

    what: str
    first: str | None
    second: str | None

    @property
    def differs(self) -> bool:
        """Whether the plans differ in it."""
        return self.first != self.second


@dataclass(frozen=True)
class ErrorInBothPlans:
    """Expected standard deviation of one table's counts under both plans."""

    release: str
    what: str
    first: float | None
    second: float | None

    @property
    def ratio(self) -> float | None:
        """Second over first, where both are known and the first is not exact."""
        if self.first is None or self.second is None or not self.first:
            return None
        return self.second / self.first


@dataclass(frozen=True)
class PlanComparison:
    """Both plans, checked: what is published, promised, spent and to be expected."""

    figures: tuple[InBothPlans, ...]
    promises: tuple[InBothPlans, ...]
    budget: tuple[InBothPlans, ...]
    errors: tuple[ErrorInBothPlans, ...]

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        plain = asdict(self)
        for row, error in zip(plain["errors"], self.errors, strict=True):
            row["ratio"] = error.ratio
        return plain


def compare_plans(first: Plan, second: Plan, progress: Tell = lambda _: None) -> PlanComparison:
    """Check both plans and set them side by side. Reads no data; spends nothing."""
    checked = (workflow.check(plan, again=True, progress=progress) for plan in (first, second))
    return compare_documents(
        *(of_check(checked_plan, None, (), progress) for checked_plan in checked)
    )


def compare_documents(first: Document, second: Document) -> PlanComparison:
    """The same from two checks as plain data."""
    return PlanComparison(
        _beside(_figures(first), _figures(second)),
        _beside(_promises(first), _promises(second)),
        _beside(_budget_rows(first), _budget_rows(second)),
        _errors(first, second),
    )


def _beside(first: dict[str, str], second: dict[str, str]) -> tuple[InBothPlans, ...]:
    return tuple(
        InBothPlans(what, first.get(what), second.get(what))
        for what in dict.fromkeys((*first, *second))
    )


def _figures(document: Document) -> dict[str, str]:
    figures = {}
    for figure in document["figures"]:
        by = f"by {', '.join(figure['by'])}" if figure["by"] else "in all"
        bound = figure["bound"] or ""
        figures[figure["label"]] = bound or f"{by}: {counted(figure['figures'] or 1, 'figure')}"
        if figure["label"] in document["also_published"]:
            figures[figure["label"]] += ", published before and not in this plan"
    return figures


def _promises(document: Document) -> dict[str, str]:
    named = {
        f"release '{release['name']}'": release["per_person"] or "nothing about individual people"
        for release in document["releases"]
    }
    apart = f"{document['adjacency']['records']}"
    return named | {"records that may differ": apart}


def _budget_rows(document: Document) -> dict[str, str]:
    budget = document["budget"]
    return {name: str(budget[name]) for name in ("limit", "spent", "asked", "left")}


def _errors(first: Document, second: Document) -> tuple[ErrorInBothPlans, ...]:
    mine, theirs = (_deviations(plan_document) for plan_document in (first, second))
    return tuple(
        ErrorInBothPlans(*key, mine.get(key), theirs.get(key))
        for key in dict.fromkeys((*mine, *theirs))
    )


def _deviations(document: Document) -> dict[tuple[str, str], float]:
    return {
        (release["name"], row["what"]): row["standard_deviation"]
        for release in document["releases"]
        for row in release["accuracy"]
    }


# ---- the page for a reviewer ---------------------------------------------------------------------


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
        any(isinstance(getattr(section, "modelling", None), Fraction) for section in plan.release),
        sections(words(document)),
        questions(plan, document),
        tuple((result.name, result.told) for result in audit_results(plan)),
        sections(words(document, full=True)),
        (
            ("File", name),
            (DIGEST_OF, plan.digest),
            *((f"SHA-256 of {file}", digest) for file, digest in plan.file_digests.items()),
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
        no_ground=[figure["label"] for figure in figures if not figure["because"]],
        many=[figure["label"] for figure in figures if figure["figures"] > 1],
        weak=[release["name"] for release in document["releases"] if not _by_theorem(release)],
    )
    return tuple(block.text for block in asked if isinstance(block, Paragraph))


def review_html(plan: Plan, document: Document, text: str, name: str) -> str:
    """The review as one HTML document."""
    return page("review.html", review=review(plan, document, text, name))


def write_review(plan: Plan, document: Document, plan_file: Path, out: Path) -> None:
    """Write the page of the plan in a file."""
    out.parent.mkdir(parents=True, exist_ok=True)
    page = review_html(plan, document, Plan.read(plan_file), plan_file.name)
    out.write_text(page, encoding="utf-8")


def _by_theorem(release: Document) -> bool:
    return str(release["guarantee"]["basis"]).startswith("theorem")
