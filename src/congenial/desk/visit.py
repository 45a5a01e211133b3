"""One request to the desk as its pages see it, and what stands between a request and a page.

A page is a plain function of a `Visit`. It runs in a thread, within a time limit. Before every page
the ledger's roles say whether the person whose desk it is may do that.
"""

from __future__ import annotations

import asyncio
import getpass
import json
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from anyio import to_thread
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)

from congenial.desk import plan_edits
from congenial.desk.access import (
    AT_ONCE,
    PATIENCE,
    SLOWEST_ANSWER,
    SLOWEST_WORK,
    DeskSettings,
    Session,
)
from congenial.desk.jobs import Jobs, Tell
from congenial.desk.plan_steps import PlanStep, drawn_of, next_step, plan_steps
from congenial.desk.workspace import PlanConflictError, Workspace, history, text_digest
from congenial.errors import CongenialError, LedgerError, PlanError
from congenial.ledger.ledger import Ledger
from congenial.ledger.roles import Role, allowed, check_role, role_of
from congenial.privacy.numbers import number
from congenial.publication.plan import Plan
from congenial.publication.plan_ledger import open_ledger
from congenial.report.render import environment

if TYPE_CHECKING:
    from jinja2 import Environment

    from congenial.publication.workflow import PlanCheck


@cache
def _environment() -> Environment:
    jinja = environment("congenial.desk", address=address, number=number)
    jinja.filters["sentence"] = sentence
    return jinja


def sentence(words: str) -> str:
    """Words of an error as a sentence of a page; a key of the plan at their start stays as it is.

    >>> sentence("the plan has no release."), sentence("schema.age: has no levels.")
    ('The plan has no release.', 'schema.age: has no levels.')
    """
    return words[:1].upper() + words[1:] if words.partition(" ")[0].isalpha() else words


def address(*parts: str) -> str:
    """The address of a page: its parts, each made safe for an address.

    >>> address("plan", "a/b.toml", "price")
    '/plan/a%2Fb.toml/price'
    """
    return "/" + "/".join(quote(part, safe="") for part in parts)


def render(template: str, **shown: Any) -> str:
    """A page from one of the desk's templates."""
    return _environment().get_template(template).render(shown)


# What a page needs: to read, or to add such an event to the ledger; "nothing" has no plan.
Needs = Literal[
    "nothing", "read", "propose", "approve", "refuse", "withdraw", "mandates", "reserve", "require"
]


class NotHereError(PlanError):
    """There is no such page, plan, bundle or file."""


@dataclass
class Desk:
    """What all visits share."""

    settings: DeskSettings
    jobs: Jobs = field(default_factory=Jobs)
    seats: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(AT_ONCE))
    seen: set[tuple[str, str, str]] = field(default_factory=set)  # plan, its digest, step
    checks: dict[str, PlanCheck] = field(default_factory=dict)  # of plans, by their digests

    @property
    def workspace(self) -> Workspace:
        """The desk's folder."""
        return Workspace(self.settings.folder)


@dataclass
class Visit:
    """A request: what is asked for, and what the form holds."""

    desk: Desk
    session: Session
    route: Mapping[str, Any]
    query: QueryParams
    form: dict[str, str]
    tell: Tell = lambda _: None  # how far a slow page is

    @property
    def name(self) -> str:
        """The login of whoever runs the desk."""
        return getpass.getuser()

    @property
    def key(self) -> str:
        """The plan's key in the address."""
        return str(self.route["plan"])

    @cached_property
    def path(self) -> Path:
        """The plan's file."""
        plan_path = self.desk.workspace.plans().get(self.key)
        if plan_path is None:
            raise NotHereError("there is no such plan at this desk.", remedy="Start at the folder.")
        return plan_path

    @cached_property
    def text(self) -> str:
        """The plan's text."""
        return Plan.read(self.path)

    @cached_property
    def plan(self) -> Plan:
        """The plan."""
        return self.parsed(self.text)

    def parsed(self, text: str) -> Plan:
        """A plan in the place of this one."""
        return Plan.parse(text, self.path.parent)

    def refuse_stale(self) -> None:
        """Refuse if the plan is not the one that was on the page, but one saved in between."""
        if self.form.get("digest") != self.plan.digest:
            raise PlanConflictError(
                "the plan, or a file it names, was changed since this page was opened.",
                remedy="Open the page again and look at what changed; nothing was done.",
            )

    @cached_property
    def ledger(self) -> Ledger | None:
        """The plan's ledger, if it is there."""
        return open_ledger(self.plan, create=False)

    @property
    def role(self) -> Role:
        """The visitor's role in the plan's ledger."""
        if self.ledger is None:
            return "owner"
        return role_of(self.ledger.roles, self.ledger.who)

    def may(self, needs: Needs) -> bool:
        """Whether the visitor's role allows something."""
        if self.ledger is None or needs in ("nothing", "read"):
            return self.ledger is None or self.role != "none"
        return allowed(self.ledger.roles, self.ledger.who, needs)

    def page(self, template: str, status: int = 200, **shown: Any) -> Response:
        """A page for this visitor."""
        about = {"csrf": self.session.csrf, "visitor": self.name, "key": self.route.get("plan")}
        if self.route.get("plan") in self.desk.workspace.plans():
            about |= self._about_plan(str(shown.get("step", "")))
        return HTMLResponse(render(template, **(about | shown)), status)

    def _about_plan(self, here: str) -> dict[str, Any]:
        """What every page of a plan shows around its content."""
        steps, locked = self._steps
        earlier = history(self.path)
        return {
            "steps": steps,
            "after": next_step(steps, here),
            "opened": self.opened,
            "text": self.text,
            "locked": locked,
            "may_save": self.may_save and not locked,
            "undoes": earlier[-1].why if earlier else "",
            "view": f"{here}?{self.query}",
        }

    @cached_property
    def _steps(self) -> tuple[list[PlanStep], list[str]]:
        """The steps of the plan, and the releases that were drawn from it."""
        plan, ledger = None, None
        with suppress(CongenialError):
            plan = self.plan
            _ = plan.figures
            ledger = self.ledger
        values, seen_plans = plan_edits.read(self.text), self.desk.seen
        mine = frozenset(
            step for key, of, step in seen_plans if (key, of) == (self.key, self.opened)
        )
        steps = plan_steps(values, self.path.parent, plan, ledger, mine)
        return steps, [] if plan is None else drawn_of(plan, ledger)

    @property
    def next_step(self) -> str:
        """The name of the first step that is not done; the last one where all are."""
        step = next_step(self._steps[0])
        return "read" if step is None else step.name

    @property
    def opened(self) -> str:
        """The digest of the plan's text on the page."""
        return text_digest(self.text)

    @property
    def may_save(self) -> bool:
        """Whether the visitor may change the plan."""
        try:
            return self.may("propose")
        except CongenialError:
            return True  # a plan whose ledger cannot be read can still be changed

    def look(self, step: str) -> None:
        """Note that the step was looked at with the plan as it is."""
        self.desk.seen.add((self.key, self.opened, step))

    def go(self, *parts: str) -> Response:
        """Send the visitor to another page of the plan."""
        return RedirectResponse(address(*parts), 303)


@dataclass(frozen=True)
class DeskPage:
    """A page or a deed of the desk: its address, how it is asked for, and what it needs."""

    path: str
    method: Literal["GET", "POST"]
    handler: Callable[[Visit], Response]
    needs: Needs = "nothing"

    async def __call__(self, request: Request) -> Response:
        """Answer a request."""
        desk: Desk = request.app.state.desk
        visit = Visit(
            desk,
            request.state.session,
            request.path_params,
            request.query_params,
            await _form(request),
        )
        if self.method == "GET" and self.needs != "nothing":
            place = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return await self._in_time(visit, place)
        if self.method == "POST":
            desk.jobs.changed()
        try:
            async with asyncio.timeout(SLOWEST_ANSWER):
                return await to_thread.run_sync(self._answer, visit, abandon_on_cancel=True)
        except TimeoutError:
            return _too_slow(visit)

    async def _in_time(self, visit: Visit, place: str) -> Response:
        """The page; if that takes longer, a page that shows how far it is and then goes there."""

        def work(tell: Tell) -> Response:
            visit.tell = tell
            return self._answer(visit)

        try:
            job = visit.desk.jobs.page(visit.key, place, work)
        except PlanError as error:
            return visit.page("error.html", 503, what=error.what, remedy=error.remedy)
        await to_thread.run_sync(job.over.wait, PATIENCE, abandon_on_cancel=True)
        if job.over.is_set():
            visit.desk.jobs.forget(job)
            if job.result is None:
                return PlainTextResponse(f"{sentence(job.error)}\n", 500)
            answer: Response = job.result
            return answer
        if job.seconds > SLOWEST_WORK:
            return _too_slow(visit)
        return visit.page("job.html", job=job, now=job.document())

    def _answer(self, visit: Visit) -> Response:
        """In a thread, and with a seat until it really ends, also when nobody waits any more."""
        visit.tell("waiting for other pages")
        if not visit.desk.seats.acquire(timeout=SLOWEST_ANSWER):
            return _too_slow(visit)
        try:
            self._refuse(visit)
            return self.handler(visit)
        except CongenialError as error:
            return _told(visit, error)
        finally:
            visit.desk.seats.release()

    def _refuse(self, visit: Visit) -> None:
        """Refuse what the role in the ledger does not allow; a plan whose ledger cannot be read can
        still be read and changed.
        """
        if self.needs == "nothing":
            return
        try:
            ledger = visit.ledger
        except CongenialError:
            _ = visit.path  # one that is not there says so itself
            if self.needs in ("read", "propose"):
                return
            raise
        if ledger is None:
            return
        if self.needs != "read":
            check_role(ledger.roles, ledger.who, self.needs)
        elif visit.role == "none":
            raise LedgerError(
                f"'{ledger.who}' has no role in the ledger of this plan.",
                remedy="Ask an owner of the ledger for one.",
            )


def _too_slow(visit: Visit) -> Response:
    return visit.page(
        "error.html",
        503,
        what="This takes longer than a page may. It may still be done: look again later.",
        remedy="Use the command in a terminal, or make the plan smaller.",
    )


def _told(visit: Visit, error: CongenialError) -> Response:
    """An error that was foreseen, as a page."""
    status = 422
    if isinstance(error, NotHereError):
        status = 404
    elif isinstance(error, PlanConflictError):
        status = 409
    elif isinstance(error, LedgerError):
        status = 403
    return visit.page("error.html", status, what=error.what, remedy=error.remedy)


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form or of a JSON object, as texts."""
    if request.method != "POST":
        return {}
    if request.headers.get("content-type", "").startswith("application/json"):
        try:
            values = json.loads(await request.body())
        except (ValueError, RecursionError):
            return {}
        fields = values.items() if isinstance(values, dict) else ()
        return {key: value for key, value in fields if isinstance(value, str)}
    texts: dict[str, str] = {}  # several ticks of one name are listed
    for key, value in (await request.form()).multi_items():
        if isinstance(value, str):
            texts[key] = f"{texts[key]}, {value}" if key in texts and value else value
    return texts


def as_json(document: Mapping[str, Any]) -> Response:
    """Plain data for the desk's own script."""
    return JSONResponse(dict(document))
