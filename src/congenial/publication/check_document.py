"""The check of a plan as plain data: what `congenial check --json` prints and the desk shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from congenial.data.advance import Advance
from congenial.errors import GuaranteeError
from congenial.kinds.kind import Document, Tell
from congenial.publication import workflow
from congenial.publication.number_of_people import PEOPLE

if TYPE_CHECKING:
    from congenial.pairs.adjacency import Adjacency
    from congenial.publication.plan import Plan
    from congenial.publication.workflow import PlanCheck


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
    from congenial.privacy.semantics import neighbourhood

    plan, figures = result.plan, result.figures
    adjacency = plan.adjacency(figures)
    return {
        "mandates": [
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
        "structure": figures.structure,
        "independent_figures": figures.rank,
        "adjacency": {
            "metric": adjacency.metric,
            "records": _apart(adjacency),
            "words": adjacency.words,
            "neighbourhood": neighbourhood(adjacency),
        },
        "published": result.published,
        "basis": result.basis,
        "want": want,
        "releases": list(_releases(result, progress)),
        "supposed": _supposed(result, suppose) if suppose else None,
        "already_released": list(result.made),
        "budget": _budget(result),
    }


def _releases(result: PlanCheck, progress: Tell) -> Iterator[Document]:
    """Each release, and what each figure costs it."""
    from congenial.kinds.registry import of_section

    for at, one in enumerate(result.releases):
        step = f"working out what figures cost '{one.section.name}'"
        progress(Advance(step, at / len(result.releases)))
        yield of_section(one.section).examine(one)


def _apart(adjacency: Adjacency) -> int:
    """Records in which look-alikes may differ; 0 where the figures leave one database."""
    from congenial.pairs.adjacency import SemiAdjacent

    single = isinstance(adjacency, SemiAdjacent) and adjacency.reach.single
    return 0 if single else adjacency.records


def _supposed(result: PlanCheck, conditions: Sequence[str]) -> Document:
    """What the releases promise against someone who knows these counts too (semi-dp, section 7)."""
    from congenial.figures.statements import count
    from congenial.ledger.reassessment import suppose
    from congenial.privacy.composition import joint_loss

    if result.plan.unit_kind == "add-remove":
        raise GuaranteeError(
            "rows that come and go keep no count exact.",
            remedy="Use --suppose beside [publish], or with one row per person.",
        )
    known = suppose(result.figures, *(count(one) for one in conditions))
    adjacency = result.plan.adjacency(known)
    return {
        "known": list(conditions),
        "records": _apart(adjacency),
        "releases": [
            {
                "name": one.section.name,
                "planned": one.guarantee.tradeoff.words,
                "supposed": joint_loss([one.mechanism.description], adjacency).tradeoff.words,
            }
            for one in result.releases
        ],
    }


def _budget(result: PlanCheck) -> Document:
    """What is spent, what the plan still asks for, and what both leave, priced together."""
    from congenial.privacy.composition import Loss, joint_loss

    plan, ledger = result.plan, result.ledger
    budget = plan.budget.budget()
    before = () if ledger is None else tuple(e for e in ledger.entries() if e.counted)
    done = {entry.name for entry in before}
    open_now = [one for one in result.releases if one.section.name not in done]
    asked = [one.mechanism.description for one in open_now]
    adjacency = plan.adjacency(result.figures)
    together = joint_loss([*(entry.description for entry in before), *asked], adjacency)
    spent = Loss() if result.spent is None else result.spent
    return {
        "ledger": plan.ledger,
        "limit": budget.words,
        "spent": budget.say(spent),
        "asked": budget.say(joint_loss(asked, adjacency)),
        "asked_by": [one.section.name for one in open_now],
        "left": budget.left(together),
        "allowed": budget.allows(together),
    }
