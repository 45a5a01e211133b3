"""How accurate a plan's tables would be and what that costs, before any data are read: followed by
a slider, for an accuracy that is asked for, and beside another way to plan it, on one scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from starlette.responses import Response

from congenial.data.rational import fraction
from congenial.desk.plan_steps import drawn_of
from congenial.desk.visit import NotHereError, Visit, as_json, sentence
from congenial.errors import CongenialError, PlanError
from congenial.kinds import tables_document
from congenial.kinds.plan_sections import NamedSection
from congenial.kinds.registry import of_section
from congenial.kinds.tables_section import TablesCheck
from congenial.privacy.numbers import number
from congenial.publication import workflow
from congenial.publication.check_document import accuracy_rows, budget_of, of_check
from congenial.publication.plan import Plan
from congenial.publication.workflow import PlanCheck
from congenial.report.words import Block, blocks, people, per_cent

PARAMETERS = ("epsilon", "rho", "mu")
MOST_KEPT = 4  # checks of plans


def show_price(visit: Visit) -> Response:
    """Margins of error of every table; beside them those without a figure, or of another plan."""
    query = visit.query
    without, beside = query.get("without", ""), query.get("beside", "")
    suppose = [condition.strip() for condition in query.getlist("suppose") if condition.strip()]
    page: dict[str, Any] = {
        name: []
        for name in ("rows", "titles", "document", "sliders", "needs", "supposed", "details")
    }
    problem = ""
    try:
        checked, drawn = _check(visit, visit.plan), drawn_of(visit.plan, visit.ledger)
        document = of_check(checked, None, suppose, visit.tell)
        columns = {"As planned": document}
        if without in visit.plan.publish:
            columns[f"Without {without}"] = _document(visit, _less(visit.plan, [without]))
        if beside:
            columns[f"Plan {beside}"] = _document(visit, _other(visit, beside))
        page |= {
            "document": document,
            "titles": list(columns),
            "rows": _rows(list(columns.values())),
            "budgets": [column["budget"] for column in columns.values()],
            "sliders": [
                _slider(visit.plan, check.section)
                for check in checked.releases
                if check.section.name not in drawn
            ],
            "needs": list(_needs(visit)),
            "supposed": blocks("supposed.txt", check=document) if suppose else [],
            "explained": _explained(document),
            "details": [
                {
                    "name": release["name"],
                    "promise": blocks("promise.txt", release=release),
                    "in_full": release["promise"],
                    "costs": blocks("figure_costs.txt", release=release),
                }
                for release in document["releases"]
            ],
        }
        visit.look("price")
    except CongenialError as error:
        problem = sentence(str(error))
    return visit.page(
        "price.html",
        step="price",
        problem=problem,
        figures=list(_figures(visit)),
        without=without,
        beside=beside,
        suppose=" ".join(suppose),
        others=[key for key in visit.desk.workspace.plans() if key != visit.key],
        wishes=_wishes(visit),
        asked=query,
        margin_words=margin_words,
        budget_words=budget_words,
        **page,
    )


def _explained(document: dict[str, Any]) -> list[Block]:
    """What the margins on the page are, each sentence once."""
    texts = [
        blocks("margin_of_error.txt", check=document, release=release)
        for release in document["releases"]
    ]
    worst_case = blocks("worst_case.txt", check=document)
    return [
        *{str(block): block for block_list in texts for block in block_list}.values(),
        *worst_case,
    ]


def _figures(visit: Visit) -> Sequence[str]:
    try:
        return list(visit.plan.publish)
    except CongenialError:
        return ()


def _check(visit: Visit, plan: Plan) -> PlanCheck:
    """The check of a plan, worked out once while neither it nor its ledger changes."""
    ledger = visit.ledger if plan is visit.plan else None
    events = len(ledger.events()) if ledger is not None else 0
    key = f"{plan.digest} {events} {plan.folder}"
    cache = visit.desk.checks
    if key not in cache or plan is not visit.plan:
        while len(cache) >= MOST_KEPT:
            cache.pop(next(iter(cache)), None)
        cache[key] = workflow.check(plan, again=True, progress=visit.tell)
    return cache[key]


def _document(visit: Visit, plan: Plan) -> dict[str, Any]:
    """Another way to plan it; releases that were drawn from it are worked out, too."""
    return of_check(workflow.check(plan, again=True, progress=visit.tell), None, (), visit.tell)


def _less(plan: Plan, without: Sequence[str]) -> Plan:
    """The same plan with fewer figures; its ledger is as it was."""
    publish = {label: entry for label, entry in plan.publish.items() if label not in without}
    return _with(plan, publish=publish)


def _with(plan: Plan, **changed: Any) -> Plan:
    fields = {field.alias or name: getattr(plan, name) for name, field in Plan.model_fields.items()}
    return Plan(**fields | changed)


def _other(visit: Visit, key: str) -> Plan:
    path = visit.desk.workspace.plans().get(key)
    if path is None:
        raise NotHereError("there is no such plan at this desk.", remedy="Choose one of the list.")
    return Plan.load(path)


def _rows(documents: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each table of any of the plans, with its margin of error in each: on one scale."""
    margins: dict[tuple[str, str], list[dict[str, Any] | None]] = {}
    for at, document in enumerate(documents):
        for release in document["releases"]:
            for row in release["accuracy"]:
                key = (release["name"], row["what"])
                margins.setdefault(key, [None] * len(documents))[at] = row
    widest = max((_width(row) for rows in margins.values() for row in rows), default=0) or 1
    return [
        {"release": release, "what": what, "margins": rows, "widest": widest}
        for (release, what), rows in margins.items()
    ]


def _width(row: dict[str, Any] | None) -> float:
    """How far off a table may be: its margin of error, or a standard deviation without one."""
    if row is None:
        return 0.0
    return float(row["standard_deviation"] if row["within"] is None else row["within"])


# ---- the slider ----------------------------------------------------------------------------------


def parameter_of(section: NamedSection) -> str:
    """The parameter that states a release's promise; empty where there is none to slide."""
    return next(
        (parameter for parameter in PARAMETERS if getattr(section, parameter, None) is not None), ""
    )


def _slider(plan: Plan, section: NamedSection) -> dict[str, Any]:
    """From a thousandth of the budget to all of it, in equal ratios."""
    name, budget = parameter_of(section), plan.budget.budget()
    value = getattr(section, name) if name else None
    most = float(budget.cap)
    if name and (name == "rho") != (budget.rho is not None):  # a budget in another unit
        most = max(10 * float(value or 0), 1.0)
    most = max(most, float(value or 0))
    return {"name": section.name, "parameter": name, "value": _short(value), "most": most}


def _short(value: Any) -> str:
    return "" if value is None else f"{float(value):.6g}"


def move(visit: Visit) -> Response:
    """Margins of error and the budget with another value of a release's parameter; the plan stays
    as it is.
    """
    try:
        name, written = visit.form.get("release", ""), visit.form.get("value", "")
        return as_json(_moved(visit, name, _amount(written)))
    except CongenialError as error:
        return as_json({"problem": sentence(str(error))})


def _amount(written: str) -> Fraction:
    try:
        value = fraction(written)
    except (ValueError, TypeError, ArithmeticError, CongenialError):
        value = Fraction(0)
    if value <= 0:
        raise PlanError(f"'{written}' is not a positive number.", remedy="Write it as 0.5.")
    return value


def _moved(visit: Visit, name: str, value: Fraction) -> dict[str, Any]:
    """The check of the plan with one release worked out again, and nothing else."""
    checked = _check(visit, visit.plan)
    section = visit.plan.named(name)
    parameter = parameter_of(section)
    if not parameter:
        raise PlanError(f"'{name}' has no parameter.", remedy="Change it in the text.")
    changed = section.model_copy(update={parameter: value})
    kind = of_section(section)
    mine = kind.check(visit.plan, changed, checked.figures)
    releases = [mine if check.section.name == name else check for check in checked.releases]
    budget = budget_of(replace(checked, releases=releases))
    # of tables without the paragraphs of the promise, which take as long as all the rest
    if isinstance(mine, TablesCheck):
        document = tables_document.examine(mine)
    else:
        document = kind.examine(mine)
    rows = accuracy_rows(document, checked.figures.known_total, visit.plan.about.limits)
    return {
        "release": name,
        "parameter": parameter,
        "value": _short(value),
        "promise": mine.guarantee.tradeoff.words,
        "rows": [_moved_row(row) for row in rows],
        "allowed": budget["allowed"],
        "budget": budget_words(budget),
    }


def budget_words(budget: dict[str, Any]) -> str:
    """What a plan asks for and leaves."""
    return " ".join(block.text for block in blocks("asked.txt", budget=budget))  # type: ignore[union-attr]


def _moved_row(row: dict[str, Any]) -> dict[str, Any]:
    return {"what": row["what"], "width": _width(row), "words": margin_words(row)}


def margin_words(row: dict[str, Any]) -> str:
    """A margin of error in people and in per cent of a typical cell.

    >>> margin_words({"within": 16.4, "share": 0.031, "standard_deviation": 9.9})
    '±16 (3.1 %)'
    """
    if row["within"] is None:
        return f"sd {row['standard_deviation']:.4g}"
    if not row["within"]:
        return "exact"
    margin = f"±{people(row['within'])}"
    return margin if row["share"] is None else f"{margin} ({per_cent(row['share'])})"


# ---- an accuracy that is asked for ---------------------------------------------------------------


def _needs(visit: Visit) -> list[dict[str, Any]]:
    """What each release would need for the accuracy in the page's fields, and whether the budget
    allows it.
    """
    want = _want(visit)
    if want is None:
        return []
    checked = of_check(workflow.check(visit.plan, want, progress=visit.tell), want, (), visit.tell)
    needs = []
    for release in checked["releases"]:
        need = {"release": release["name"], "value": "", "allowed": True}
        need["words"] = blocks("wish.txt", check=checked, release=release)
        for parameter, value in (release["wanted"] or {}).items():
            if value:
                moved = _moved(visit, release["name"], fraction(value))
                need |= {"parameter": parameter, "value": number(value)}  # rounded up
                need |= {"allowed": moved["allowed"], "budget": moved["budget"]}
        needs.append(need)
    return needs


def _want(visit: Visit) -> str | None:
    """The wished accuracy of the page's fields, in the words of `congenial check --want`."""
    within = visit.query.get("within", "").strip()
    if not within:
        return None
    of, level = visit.query.get("of", "total"), visit.query.get("level", "90")
    wishes = _wishes(visit)
    names = [axis for axis in of.split(",") if of in wishes and axis]
    what = f"margin({', '.join(repr(axis_name) for axis_name in names)})" if names else "total"
    return f"{what} within {within} at {level}%"


def _wishes(visit: Visit) -> dict[str, str]:
    """Tables that a wish can be about: those the plan releases, and single columns of them."""
    wishes: dict[str, None] = {}
    try:
        plan = visit.plan
        for section in plan.release:
            tables = getattr(section, "tables", None)
            if not isinstance(tables, list):  # "auto" chooses sums of one table
                tables = [getattr(section, "table", None) or []]
            for names in tables:
                wishes.update(dict.fromkeys([",".join(names), *names]) if names else {})
        name_shown = plan.schema.shown
        return {wish: " x ".join(name_shown(name) for name in wish.split(",")) for wish in wishes}
    except CongenialError:
        return {}
