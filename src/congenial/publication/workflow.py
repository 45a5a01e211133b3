"""The three commands as functions: `check` needs no data, `publish` computes the mandated figures,
`release` draws.

The order of a release, so that a crash never under-counts, is in `drawing`. Whatever was marked as
drawn stays spent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from congenial.data.advance import Advance
from congenial.data.durable_files import write_whole
from congenial.data.predicate import parse
from congenial.data.table import Table
from congenial.data.tabulate import Microdata
from congenial.data.text_files import indented
from congenial.errors import BudgetError, FigureError, PlanError, StructureError, located, some_of
from congenial.figures.figures import Figures
from congenial.figures.statements import Statement
from congenial.kinds.kind import Checked, tabulate, units_for
from congenial.kinds.plan_sections import NamedSection
from congenial.kinds.registry import of_section
from congenial.ledger.ledger import Ledger
from congenial.ledger.refusals import WHOLE_DATASET, uncountable
from congenial.ledger.roles import allowed
from congenial.ledger.spent_and_left import Repricing
from congenial.pairs.pairs import Adjacency
from congenial.privacy.composition import Loss, joint_loss
from congenial.publication import bundle
from congenial.publication.number_of_people import PEOPLE, figures_beside
from congenial.publication.plan import Plan
from congenial.publication.plan_ledger import (
    BUNDLES,
    PUBLISHED,
    exact_figures,
    note,
    open_ledger,
    opened_or_made,
)

if TYPE_CHECKING:
    from congenial.data.table import Table
    from congenial.publication.drawing import ReleaseResult
    from congenial.report.accuracy import Want
    from congenial.sampling.randomness import Randomness


@dataclass(frozen=True)
class PublishWarning:
    """CONFIDENTIAL: figures of one statement that say much about few.

    "few people": the figure counts at least one person and fewer than the threshold. "all alike":
    nobody or everybody of a group that has people meets the condition, so that the figure tells the
    answer of each of them. `where` names the first of these groups.
    """

    label: str
    kind: Literal["few people", "all alike"]
    groups: int
    of: int
    where: tuple[tuple[str, ...], ...]

    @property
    def words(self) -> str:
        """In a sentence."""
        share = f"{self.groups:,} of {self.of:,} figures"
        if self.kind == "few people":
            return f"'{self.label}': {share} are about fewer people than the threshold."
        return (
            f"'{self.label}': {share} show that everybody in a group, or nobody, meets the "
            "condition: they reveal each person's answer."
        )


@dataclass(frozen=True)
class PublishPreview:
    """CONFIDENTIAL: what would be public, what of it is new, what it would do to earlier promises.

    `repricing` is None where there is no ledger yet; figures about fewer people than `fewer_than`
    count as small.
    """

    figures: Figures
    new: tuple[Statement, ...]
    warnings: tuple[PublishWarning, ...]
    repricing: Repricing | None
    fewer_than: int


def warnings(figures: Figures, table: Table, fewer_than: int) -> tuple[PublishWarning, ...]:
    """Figures about fewer than so many people, and those that tell a whole group's answer."""
    raised: list[PublishWarning | None] = []
    for statement, values in zip(figures.told, figures.told_values, strict=True):
        if values is None:
            continue
        shaped = np.asarray(values).reshape(-1)
        levels = [axis.levels for axis in figures.schema.axes(statement.by)]
        groups = list(product(*levels))
        if all(weight == 1 for _, weight in statement.terms):
            few = (shaped > 0) & (shaped < fewer_than)
            raised.append(_warning(statement, "few people", few, groups))
        if statement.units:
            continue
        people = table.marginal(statement.by).counts.reshape(-1)
        alike = _alike(statement, shaped, people)
        raised.append(_warning(statement, "all alike", alike, groups))
    return tuple(warning for warning in raised if warning is not None)


def _alike(statement: Statement, values: Any, people: Any) -> Any:
    """Groups with people in them of which nobody or everybody meets the one condition."""
    if len(statement.terms) != 1 or not statement.terms[0][0]:
        return np.zeros(len(values), dtype=bool)
    weight = statement.terms[0][1]
    return (people > 0) & ((values == 0) | (values == weight * people))


def _warning(
    statement: Statement,
    kind: Literal["few people", "all alike"],
    flags: Any,
    groups: Sequence[tuple[str, ...]],
) -> PublishWarning | None:
    at = np.flatnonzero(flags)
    if not at.size:
        return None
    where = tuple(groups[i] for i in at[:5])
    return PublishWarning(statement.label, kind, int(at.size), len(groups), where)


FEWER_THAN = 3  # people that a figure may be about before it is pointed out


@dataclass(frozen=True)
class PlanCheck:
    """Result of `check`: structure of the figures, adjacency, and every release."""

    plan: Plan
    figures: Figures
    published: bool
    releases: list[Checked]
    ledger: Ledger | None
    made: tuple[str, ...] = ()  # releases of the plan that are drawn already

    @property
    def spent(self) -> Loss | None:
        """What is spent so far; None where there is no ledger yet."""
        return None if self.ledger is None else self.ledger.spent()

    @property
    def basis(self) -> str:
        """On what the figures rest."""
        if set(self.figures.equalities) <= {PEOPLE}:
            return "exact for every dataset"
        if self.published:
            return "exact for the figures as published"
        return "worst case, for any values that the exact figures may have"

    @property
    def worst_case(self) -> bool:
        """Whether numbers depend on figures that are not published yet."""
        return not self.published and not set(self.figures.equalities) <= {PEOPLE}


def check(
    plan: Plan,
    want: str | None = None,
    *,
    again: bool = False,
    progress: Callable[[str], Any] = lambda _: None,
) -> PlanCheck:
    """Structure, adjacency, sensitivity, guarantee and expected error, without the data.

    What was drawn already is named and not worked out, unless `again`.
    """
    ledger = open_ledger(plan, create=False)
    figures = exact_figures(plan, ledger)
    published = bool(figures.told) and figures.values is not None
    wish = None if want is None else _wish(want, plan, progress)
    done = () if again or wish is not None else _made(plan, ledger)
    open_sections = [section for section in plan.release if section.name not in done]
    rows = []
    for at, section in enumerate(open_sections):
        progress(Advance(f"working out '{section.name}'", at / len(open_sections)))
        with located(plan.place_of(section)):
            kind = of_section(section)
            if wish is None:
                rows.append(kind.check(plan, section, figures))
            else:
                rows.append(kind.check_wish(plan, section, figures, wish))
    if wish is not None and not any(of_section(row.section).answers(row) for row in rows):
        raise PlanError(
            f"--want {wish.text!r}: no release of the plan shows this table.",
            remedy="Name attributes of a released table, or coarser ones.",
        )
    return PlanCheck(plan, figures, published, rows, ledger, done)


def _wish(text: str, plan: Plan, progress: Callable[[str], Any]) -> Want:
    """An accuracy that is asked for; a condition in it that cannot be read says so itself."""
    from congenial.report.accuracy import Want

    wish = Want.parse(text, progress)
    if wish.condition:
        parse(wish.condition, plan.schema)
    return wish


def _made(plan: Plan, ledger: Ledger | None) -> tuple[str, ...]:
    """Names of the plan's releases that the ledger counts as drawn."""
    entries = () if ledger is None else ledger.entries()
    drawn = {entry.name for entry in entries if entry.was_drawn}
    return tuple(section.name for section in plan.release if section.name in drawn)


def _refuse_unfit(plan: Plan, sections: Sequence[NamedSection], figures: Figures) -> None:
    """What cannot work under these figures says so, before anything is recorded or drawn."""
    for section in sections:
        with located(plan.place_of(section)):
            of_section(section).build(plan, section, figures)


@dataclass(frozen=True)
class PublishResult:
    """Result of `publish`: the figures, where they were written, what earlier releases now promise,
    and which statements were not public before.
    """

    figures: Figures
    folder: Path
    repricing: Repricing
    new: tuple[Statement, ...]


def publish(
    plan: Plan,
    folder: Path | None = None,
    *,
    accept_weaker: bool = False,
    progress: Callable[[str], Any] = lambda _: None,
    confirm: Callable[[PublishPreview], object] | None = None,
) -> PublishResult:
    """Compute the mandated figures, record them in the ledger, and write them to a folder.

    `confirm` is shown what would be public before it is recorded, and raises to stop there.
    """
    folder = plan.folder / PUBLISHED if folder is None else folder
    before = open_ledger(plan, create=False)
    _refuse_unapproved(plan, before)
    figures, table = _compute(plan, before, progress)
    if confirm is not None:
        confirm(_preview(figures, table, before, FEWER_THAN))
    del table  # confidential, and large
    published = Figures(plan.schema) if before is None else before.figures
    ledger = opened_or_made(plan, before)
    repricing = ledger.publish(figures, accept_weaker=accept_weaker, plan_digest=plan.digest)
    _write_published(figures, folder, note(plan, ledger))
    new = tuple(statement for statement in figures.told if statement not in published.told)
    return PublishResult(figures, folder, repricing, new)


def preview(
    plan: Plan,
    *,
    fewer_than: int = FEWER_THAN,
    progress: Callable[[str], Any] = lambda _: None,
) -> PublishPreview:
    """What `publish` would make public; records and writes nothing. CONFIDENTIAL.

    `fewer_than`: figures about fewer people than this are pointed out.
    """
    before = open_ledger(plan, create=False)
    return _preview(*_compute(plan, before, progress), before, fewer_than)


def _preview(
    figures: Figures, table: Table, ledger: Ledger | None, fewer_than: int
) -> PublishPreview:
    stated = () if ledger is None else ledger.figures.told
    new = tuple(statement for statement in figures.told if statement not in stated)
    repricing = None if ledger is None else ledger.repriced_with(figures)
    raised = warnings(figures, table, fewer_than)
    return PublishPreview(figures, new, raised, repricing, fewer_than)


def _compute(
    plan: Plan, before: Ledger | None, progress: Callable[[str], Any]
) -> tuple[Figures, Table]:
    """CONFIDENTIAL: the mandated figures, and the table they come from; refuses what cannot be
    published, or would leave a release of the plan that cannot be drawn.
    """
    published = Figures(plan.schema) if before is None else before.figures
    asked = figures_beside(plan, plan.release, published)
    if not asked.told:
        raise FigureError(
            "the plan has no [publish] section, so there is nothing to publish.",
            remedy="Run `congenial release` instead.",
        )
    done = set() if before is None else {entry.name for entry in before.entries() if entry.counted}
    to_come = [section for section in plan.release if section.name not in done]
    with suppress(StructureError):  # what does not fit yet may fit once values are known
        _refuse_unfit(plan, to_come, exact_figures(plan, before))
    named = {*asked.bases, *published.bases}
    with Microdata.open(plan.source, plan.schema, plan.unit) as data:
        table = tabulate(data, [n for n in plan.schema.names if n in named], progress)
        units = units_for(published.join(asked), data)
        if published.told and not published.holds_for(table, units):
            raise FigureError(
                "the data contradict figures that are already published in this ledger.",
                remedy="If the data are of a new population, use a new ledger.",
            )
        for name in _released_bases(plan) - set(asked.bases):
            data.tabulate([name])  # a column that does not fit is found while nothing is public
    figures = asked.evaluate(table, units)
    # a figure cannot be taken back: refuse what cannot work first
    _refuse_unfit(plan, to_come, published.join(figures))
    return figures, table


def _released_bases(plan: Plan) -> set[str]:
    """Attributes that some release of the plan shows."""
    axes = [name for section in plan.release for name in of_section(section).shown(section)]
    return {plan.schema.axis(name).base for name in axes}


def _write_published(figures: Figures, folder: Path, recorded: dict[str, str]) -> None:
    """Plain files, replaced one by one; the ledger already has the record."""
    from congenial.publication.bundle_texts import published_csv

    document = recorded | {"schema": figures.schema.to_dict()} | figures.to_dict()
    content = {
        "published.csv": published_csv(figures),
        "published.json": "".join(indented(document)),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in content.items():
            write_whole(folder / name, text.encode())
    except OSError as reason:
        raise FigureError(
            f"the figures are recorded in the ledger but cannot be written to '{folder}': "
            f"{reason.strerror}.",
            remedy="Run `congenial publish` again with --out; it records nothing twice.",
        ) from None


def published_so_far(plan: Plan) -> Figures:
    """Everything published exactly of these data, with the number of people where a release would
    publish it (CONFIDENTIAL until it does); refused while the plan's own figures are not public.
    """
    ledger = open_ledger(plan, create=False)
    _refuse_unpublished(plan, ledger)
    return _with_people(plan, ledger)[0]


def _refuse_unpublished(plan: Plan, ledger: Ledger | None) -> None:
    """FigureError while figures of the plan are not public; a release publishes the number of
    people by itself, where whoever runs it may publish.
    """
    published = Figures(plan.schema) if ledger is None else ledger.figures
    may = ledger is None or allowed(ledger.roles, ledger.who, "mandates")
    public = (*published.told, PEOPLE) if may else published.told
    missing = [
        s.label for s in figures_beside(plan, plan.release, published).told if s not in public
    ]
    if missing:
        raise FigureError(
            f"not published yet: {some_of(missing, '; ')}.",
            remedy="Run `congenial publish` first.",
        )


def _with_people(plan: Plan, ledger: Ledger | None) -> tuple[Figures, Figures | None]:
    """CONFIDENTIAL: all figures with their values, and the number of people if it is not public
    yet: it is counted here, and recorded by whoever releases something.
    """
    figures = exact_figures(plan, ledger)
    if figures.values is not None or PEOPLE not in figures.statements:
        return figures, None
    published = Figures(plan.schema) if ledger is None else ledger.figures
    with Microdata.open(plan.source, plan.schema, plan.unit) as data:
        people = Figures(plan.schema, (PEOPLE,)).evaluate(data.tabulate([]))
    return published.join(people), people


def release(
    plan: Plan,
    name: str,
    folder: Path | None = None,
    *,
    randomness: Randomness | None = None,
    progress: Callable[[str], Any] = lambda _: None,
) -> ReleaseResult:
    """Draw one release of the plan and write its bundle; nothing is drawn when a check fails."""
    from congenial.publication.claim import begun
    from congenial.publication.drawing import carry_out, rehearse
    from congenial.publication.drawing_by_parts import carry_out_by_parts

    section = plan.named(name)
    folder = plan.folder / BUNDLES / name if folder is None else folder
    if not begun(plan, folder):
        bundle.check_absent(folder)
    before = open_ledger(plan, create=False)
    _refuse_unapproved(plan, before)
    kind = of_section(section)
    figures = exact_figures(plan, before)
    built = None
    with suppress(StructureError) if PEOPLE in figures.statements else nullcontext():
        built = kind.build(plan, section, figures)  # before data are read or a ledger is made
    _refuse_unpublished(plan, before)
    if section.alone and before is not None:  # laws take long to fit: ask first
        before.refuse_promise({"metric": WHOLE_DATASET})
    if before is None or figures.told == before.figures.told:  # else once all have values
        _refuse_price(plan, built, name, before)
    figures, people = _with_people(plan, before)
    if people is not None or built is None:  # values may make possible what was not
        built = kind.build(plan, section, figures)
        _refuse_price(plan, built, name, before, people)
    with kind.offer(plan, section, built, figures, randomness, progress) as offer:
        offer = rehearse(offer)
        ledger = opened_or_made(plan, before)  # only now: a new ledger fixes the schema
        if people is not None:
            ledger.publish(people, plan_digest=plan.digest)
        if offer.run is None:
            result = carry_out(plan, offer, folder, ledger, progress)
        else:
            result = carry_out_by_parts(plan, offer, offer.run, folder, ledger, progress)
        return result if people is None else replace(result, states_people=True)


def _refuse_price(
    plan: Plan,
    mechanism: Any,
    name: str,
    ledger: Ledger | None,
    people: Figures | None = None,
) -> None:
    """BudgetError when the budget does not allow a mechanism, whose price is known before data are
    read, or with the number of people; the ledger asks again when it draws.
    """
    from congenial.mechanisms.measured_tables import MeasuredTables

    if not isinstance(mechanism, MeasuredTables):
        return
    if ledger is not None:
        ledger.refuse_release(mechanism.description, mechanism.guarantee, name, beside=people)
        return
    if not isinstance(mechanism.adjacency, Adjacency):
        return
    budget, loss = plan.budget.budget(), joint_loss([mechanism.description], mechanism.adjacency)
    if not budget.allows(loss):
        raise uncountable(budget, loss, name) or BudgetError(
            f"release '{name}' asks for {budget.say(loss)}, and the budget is {budget.words}. "
            "Nothing was drawn.",
            remedy="Ask for less, or raise the budget in the plan.",
        )


def _refuse_unapproved(plan: Plan, ledger: Ledger | None) -> None:
    """LedgerError where the ledger requires an approval that the plan does not have."""
    if ledger is not None and ledger.approvals.required:
        ledger.refuse_unapproved(plan.digest)


def refuse_excess(plan: Plan, names: Sequence[str]) -> None:
    """BudgetError when the budget does not allow all these releases together; draws nothing."""
    from congenial.publication.claim import begun

    names = [name for name in names if not begun(plan, plan.folder / BUNDLES / name)]
    if len(names) < 2:
        return  # drawing it asks the ledger itself
    sections = [plan.named(name) for name in names]
    ledger = open_ledger(plan, create=False)
    _refuse_unfit(plan, sections, exact_figures(plan, ledger))
    _refuse_unpublished(plan, ledger)
    figures = _with_people(plan, ledger)[0]
    checks = [of_section(section).check(plan, section, figures) for section in sections]
    asked = [release_check.mechanism.description for release_check in checks]
    before = [] if ledger is None else [e.description for e in ledger.entries() if e.counted]
    adjacency, budget = plan.adjacency(figures), plan.budget.budget()
    together = joint_loss([*before, *asked], adjacency)
    if not budget.allows(together):
        raise BudgetError(
            f"{', '.join(repr(name) for name in names)} together ask for "
            f"{budget.say(joint_loss(asked, adjacency))}; with what was spent before the total "
            f"would be {budget.say(together)}, and the budget is {budget.words}. "
            "Nothing was drawn.",
            remedy="Ask for less, or draw some of them with --name.",
        )
