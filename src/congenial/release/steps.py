"""The three commands as functions: `check` needs no data, `publish` computes the mandated figures,
`release` draws.

Order of a release, so that a crash never under-counts: reserve in the ledger, mark as drawn, draw,
write the bundle under a temporary name, rename it, commit. Whatever was marked as drawn stays
spent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from congenial.data.counting import Progress
from congenial.data.predicate import parse
from congenial.data.source import SPARK_SCHEME
from congenial.data.table import Table
from congenial.data.tabulate import Microdata
from congenial.errors import (
    BundleError,
    LedgerError,
    MandateError,
    PlanError,
    PredicateError,
)
from congenial.mechanisms.congenial import CongenialCounts
from congenial.mechanisms.projection import project
from congenial.mechanisms.protocol import Mechanism
from congenial.mechanisms.release import Release
from congenial.privacy.composition import Loss, largest_gauge
from congenial.privacy.description import HULLS
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.ledger import Ledger
from congenial.privacy.normaliser import Price
from congenial.privacy.pricing import Repricing
from congenial.public.adjacency import Supremum
from congenial.public.invariants import Invariants
from congenial.public.support import Support, support
from congenial.release import bundle
from congenial.release.accuracy import ErrorRow, Want, error_rows, smallest
from congenial.release.building import build
from congenial.release.drawing import (
    WHOLE_DATASET,
    Offer,
    ReleaseResult,
    carry_out,
    refuse_company,
    unit_words,
)
from congenial.release.plan import Plan
from congenial.release.report import render
from congenial.release.sections import ReleaseSection, StatisticsSection, SyntheticSection
from congenial.sampling.randomness import Randomness, SeededRandomness

if TYPE_CHECKING:
    from congenial.release.statistics import StatisticsCheck
    from congenial.release.synthetic import SyntheticCheck

PUBLISHED = "published"  # the folder beside the plan that holds the exact figures


@dataclass(frozen=True)
class ReleaseCheck:
    """What a release of the plan would promise and how accurate it would be."""

    section: ReleaseSection
    mechanism: Mechanism
    guarantee: Guarantee
    sensitivity: Supremum
    support: Support
    errors: list[ErrorRow]
    price: Price | None  # of conditioning on counts >= 0, part of the promise
    wanted: tuple[str, Fraction] | None  # the parameter the plan gives, and what a wish needs


@dataclass(frozen=True)
class PlanCheck:
    """Result of `check`: structure of the mandates, adjacency, and every release."""

    plan: Plan
    mandates: Invariants
    published: bool
    releases: list[ReleaseCheck | StatisticsCheck | SyntheticCheck]
    spent: Loss | None

    @property
    def basis(self) -> str:
        """On what the figures rest."""
        if not self.mandates.equalities:
            return "exact for every dataset"
        if self.published:
            return "exact for the figures as published"
        return "bounds valid for every value the mandated figures may take"


def check(plan: Plan, want: str | None = None) -> PlanCheck:
    """Structure, adjacency, sensitivity, guarantee and expected error, without the data."""
    ledger = open_ledger(plan, create=False)
    mandates = plan.invariants
    published = False
    if ledger is not None and _all_published(plan, ledger):
        mandates, published = ledger.mandates, bool(plan.statements)
    wish = None if want is None else Want.parse(want)
    if wish is not None and wish.condition:
        parse(wish.condition, plan.schema)  # a condition that cannot be read says so itself
    rows = [_check_section(plan, section, mandates, wish) for section in plan.release]
    if wish is not None and not any(isinstance(r, ReleaseCheck) and r.wanted for r in rows):
        raise PlanError(
            f"--want {wish.text!r}: no release of the plan shows that.",
            remedy="Ask about the axes of a released table, or coarser ones.",
        )
    spent = None if ledger is None else ledger.spent()
    return PlanCheck(plan, mandates, published, rows, spent)


def _check_section(
    plan: Plan,
    section: ReleaseSection | StatisticsSection | SyntheticSection,
    mandates: Invariants,
    wish: Want | None,
) -> ReleaseCheck | StatisticsCheck | SyntheticCheck:
    if isinstance(section, StatisticsSection):
        from congenial.release import statistics

        return statistics.check(plan, section)
    if isinstance(section, SyntheticSection):
        from congenial.release import synthetic

        return synthetic.check(plan, section, mandates)
    return _check_release(plan, section, mandates, wish)


def _check_release(
    plan: Plan, section: ReleaseSection, mandates: Invariants, wish: Want | None
) -> ReleaseCheck:
    mechanism = build(plan, section, mandates)
    guarantee = promise(plan, section, mechanism)
    table = mechanism.description.table
    wanted = None
    if wish is not None:
        with suppress(BundleError, PredicateError):  # this table does not show what is asked about
            kind = section.kind
            wanted = (kind, smallest(wish, lambda x: _with(plan, section, mandates, {kind: x})))
    return ReleaseCheck(
        section,
        mechanism,
        guarantee,
        _sensitivity(mechanism),
        support(mechanism.description.support, table),
        error_rows(mechanism),
        mechanism.price if isinstance(mechanism, CongenialCounts) else None,
        wanted,
    )


def _sensitivity(mechanism: Mechanism) -> Supremum:
    """How far look-alikes are apart in the norm the loss is counted in."""
    description, adjacency = mechanism.description, mechanism.adjacency
    if description.norm == "gauge":
        return largest_gauge(adjacency, HULLS[description.family])
    if description.norm == "l1":
        return adjacency.l1(description.table)
    return adjacency.l2_squared(description.table)


def _with(
    plan: Plan, section: ReleaseSection, mandates: Invariants, change: dict[str, Fraction]
) -> Mechanism:
    return build(plan, section.model_copy(update=change), mandates)


def promise(plan: Plan, section: ReleaseSection, mechanism: Mechanism) -> Guarantee:
    """The mechanism's guarantee with what the plan assumes about the data added."""
    guarantee = mechanism.guarantee
    delta = guarantee.stated_delta if section.delta is None else float(section.delta)
    assumed = (*guarantee.assumptions, unit_words(plan))
    return replace(guarantee, assumptions=assumed, stated_delta=delta)


def open_ledger(plan: Plan, create: bool, timeout: float = 10.0) -> Ledger | None:
    """The plan's ledger; None when it does not exist yet and is not to be created."""
    if not Ledger.exists(plan.ledger, timeout):
        if not create:
            return None
        _refuse_fresh_start(plan)
    return Ledger.open(
        plan.ledger,
        schema=plan.schema,
        adjacency="replace-one" if plan.data.max_rows is None else "add-remove",
        max_rows=plan.data.max_rows,
        budget=plan.budget.budget(),
        timeout=timeout,
    )


def _refuse_fresh_start(plan: Plan) -> None:
    """A ledger that went missing must not become a fresh budget: figures say where they are."""
    file = plan.folder / PUBLISHED / "published.json"
    try:
        recorded = json.loads(file.read_text(encoding="utf-8")).get("recorded_in")
    except (OSError, ValueError, AttributeError):
        return
    if recorded == plan.budget.ledger:
        raise LedgerError(
            f"there is no ledger at '{plan.ledger}', but '{file}' was recorded in it: what was "
            "spent is unknown.",
            remedy="Restore the ledger; for another population, use another folder.",
        )


def _all_published(plan: Plan, ledger: Ledger) -> bool:
    return set(plan.statements) <= set(ledger.mandates.statements)


@dataclass(frozen=True)
class PublishResult:
    """Result of `publish`: the figures, where they were written, and what earlier releases now
    promise.
    """

    mandates: Invariants
    folder: Path
    repricing: Repricing


def publish(
    plan: Plan,
    folder: Path | None = None,
    *,
    accept_weaker: bool = False,
    progress: Callable[[str], Any] = lambda _: None,
) -> PublishResult:
    """Compute the mandated figures, record them in the ledger, and write them to a folder."""
    if not plan.statements:
        raise MandateError(
            "the plan mandates nothing: there is no [publish] section.",
            remedy="Run `congenial release` right away.",
        )
    folder = plan.folder / PUBLISHED if folder is None else folder
    for section in plan.tables:  # a figure cannot be taken back: refuse what cannot work first
        build(plan, section, plan.invariants)
    for synthesised in plan.synthesised:
        from congenial.release import synthetic

        synthetic.build(plan, synthesised, plan.invariants)
    with Microdata.open(plan.source, plan.schema, plan.unit) as data:
        table = _count(plan, data, plan.invariants.bases, progress)
        for name in _released_bases(plan) - set(plan.invariants.bases):
            data.tabulate([name])  # a column that does not fit is found while nothing is public
    figures = plan.invariants.evaluate(table)
    ledger = open_ledger(plan, create=True)
    assert ledger is not None
    refuse_company(ledger)
    repricing = ledger.publish(figures, accept_weaker=accept_weaker, plan_digest=plan.digest)
    _write_published(figures, folder, plan.budget.ledger)
    return PublishResult(figures, folder, repricing)


def _released_bases(plan: Plan) -> set[str]:
    """Attributes that some release of the plan shows."""
    shown = [name for section in plan.tables for name in section.table]
    shown += [name for section in plan.synthesised for name in (*section.public, *section.model)]
    return {plan.schema.axis(name).base for name in shown}


def _write_published(figures: Invariants, folder: Path, ledger: str) -> None:
    """Plain files, replaced one by one through a temporary name; the ledger already has the
    record.
    """
    content = {
        "published.csv": bundle.published_csv(figures),
        "published.json": json.dumps(
            {"recorded_in": ledger, "schema": figures.schema.to_dict()} | figures.to_dict(),
            indent=1,
        ),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in content.items():
            partial = folder / f".{name}.partial"
            partial.write_text(text, encoding="utf-8")
            partial.replace(folder / name)
    except OSError as reason:
        raise MandateError(
            f"the figures are recorded in the ledger but cannot be written to '{folder}': "
            f"{reason.strerror}.",
            remedy="Run `congenial publish` again with --out; it records nothing twice.",
        ) from None


def _count(
    plan: Plan, data: Microdata, names: Sequence[str], progress: Callable[[str], Any]
) -> Table:
    """Tabulate, telling the curator how far it has come."""

    def tell(now: Progress) -> None:
        speed = now.rows_per_second / 1e6
        progress(f"{now.rows:,} of {now.total:,} rows, {speed:.1f} million a second")

    return data.tabulate(names, progress=tell, resume=plan.resume)


def release(
    plan: Plan,
    name: str,
    folder: Path | None = None,
    *,
    randomness: Randomness | None = None,
    progress: Callable[[str], Any] = lambda _: None,
) -> ReleaseResult:
    """Draw one release of the plan and write its bundle; nothing is drawn when a check fails."""
    section = plan.named(name)
    folder = plan.folder / "bundles" / name if folder is None else folder
    bundle.check_absent(folder)
    if isinstance(section, StatisticsSection):
        return _release_statistics(plan, section, folder, randomness, progress)
    if isinstance(section, SyntheticSection):
        return _release_synthetic(plan, section, folder, randomness, progress)
    build(plan, section, plan.invariants)  # refuses what cannot work before a ledger is made
    mechanism = build(plan, section, published_so_far(plan))
    with Microdata.open(plan.source, plan.schema, plan.unit) as data:
        progress("reading the data")
        draw = _ready(plan, section, mechanism, data, randomness, progress)
        error_rows(mechanism)  # what the report will need; it must not fail after the draw
        ledger = open_ledger(plan, create=True)  # only now: a new ledger fixes the schema
        assert ledger is not None

        def finished() -> Release:
            drawn = draw()
            return project(drawn, randomness) if section.nonnegative == "project" else drawn

        offer = Offer(
            name,
            mechanism.description,
            promise(plan, section, mechanism),
            finished,
            render,
            lambda now: build(plan, section, now.mandates) == mechanism,
        )
        return carry_out(plan, offer, folder, ledger, progress)


def published_so_far(plan: Plan) -> Invariants:
    """Everything published exactly of these data; refused while the plan's own figures are not."""
    ledger = open_ledger(plan, create=False)
    if ledger is None:
        _refuse_fresh_start(plan)
    mandates = Invariants(plan.schema) if ledger is None else ledger.mandates
    missing = [s.label for s in plan.statements if s not in mandates.statements]
    if missing:
        raise MandateError(
            f"mandated but not yet published: {'; '.join(missing)}.",
            remedy="Run `congenial publish` first.",
        )
    return mandates


def _release_synthetic(
    plan: Plan,
    section: SyntheticSection,
    folder: Path,
    randomness: Randomness | None,
    progress: Callable[[str], Any],
) -> ReleaseResult:
    """The same for synthetic records."""
    from congenial.release import synthetic

    synthetic.build(plan, section, plan.invariants)
    offer = synthetic.offer(plan, section, published_so_far(plan), randomness, progress)
    ledger = open_ledger(plan, create=True)
    assert ledger is not None
    return carry_out(plan, offer, folder, ledger, progress)


def _release_statistics(
    plan: Plan,
    section: StatisticsSection,
    folder: Path,
    randomness: Randomness | None,
    progress: Callable[[str], Any],
) -> ReleaseResult:
    """The same for statistics: their promise stands alone, without exact figures."""
    from congenial.release import statistics

    ledger = open_ledger(plan, create=False)
    if ledger is None:
        _refuse_fresh_start(plan)
    else:
        refuse_company(ledger, WHOLE_DATASET)
    offer = statistics.offer(plan, section, randomness, progress)
    ledger = open_ledger(plan, create=True)
    assert ledger is not None
    return carry_out(plan, offer, folder, ledger, progress)


def _ready(
    plan: Plan,
    section: ReleaseSection,
    mechanism: Mechanism,
    data: Microdata,
    randomness: Randomness | None,
    progress: Callable[[str], Any],
) -> Callable[[], Release]:
    """Check the data, and return what draws; refuses before anything is spent."""
    if section.by and str(plan.source).startswith(SPARK_SCHEME):
        from congenial.release.by_group import ByGroup  # pyspark only when it is asked for

        groups = ByGroup(mechanism, data, tuple(section.by))
        groups.check()
        seed = randomness.seed if isinstance(randomness, SeededRandomness) else None
        return lambda: groups.release(section.name, seed)
    released = {plan.schema.axis(axis).base for axis in section.table}
    mandated = mechanism.adjacency.mandates.bases
    names = [name for name in plan.schema.names if name in released or name in mandated]
    table = _count(plan, data, names, progress)
    mechanism.check(table)
    return lambda: mechanism.release(table, randomness, section.name)
