"""The desk as an application: its screens, each with what it needs, behind the door."""

from __future__ import annotations

from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from congenial.desk import plan_editor, price_screen, release_screens, screens
from congenial.desk.access import DeskSettings, Door
from congenial.desk.visit import Desk, DeskPage

SCREENS = (
    DeskPage("/", "GET", screens.show_overview),
    DeskPage("/plans", "POST", screens.make_plan),
    DeskPage("/plan-keys", "GET", plan_editor.show_keys),
    DeskPage("/job/{job}", "GET", screens.show_job),
    DeskPage("/plan/{plan}", "GET", plan_editor.show_first, "read"),
    *(
        DeskPage(f"/plan/{{plan}}/{name}", "GET", show, "read")
        for name, show in plan_editor.SCREENS.items()
    ),
    DeskPage("/plan/{plan}/check", "POST", plan_editor.check_plan, "read"),
    DeskPage("/plan/{plan}/edit", "POST", plan_editor.edit_plan, "propose"),
    DeskPage("/plan/{plan}/save", "POST", plan_editor.save_plan, "propose"),
    DeskPage("/plan/{plan}/undo", "POST", plan_editor.undo_plan, "propose"),
    DeskPage("/plan/{plan}/fork", "POST", plan_editor.fork_plan, "propose"),
    DeskPage("/plan/{plan}/values", "POST", plan_editor.look_at_values, "reserve"),
    DeskPage("/plan/{plan}/data/check", "POST", screens.check_records, "reserve"),
    DeskPage("/plan/{plan}/data/fix", "POST", screens.fix_plan, "propose"),
    DeskPage("/plan/{plan}/price", "GET", price_screen.show_price, "read"),
    DeskPage("/plan/{plan}/price/move", "POST", price_screen.move, "read"),
    DeskPage("/plan/{plan}/review", "GET", screens.show_review, "read"),
    DeskPage("/plan/{plan}/audit", "POST", screens.audit_plan, "read"),
    DeskPage("/plan/{plan}/propose", "POST", screens.propose_plan, "propose"),
    DeskPage("/plan/{plan}/approve", "POST", screens.review_plan("approve"), "approve"),
    DeskPage("/plan/{plan}/refuse", "POST", screens.review_plan("refuse"), "refuse"),
    DeskPage("/plan/{plan}/withdraw", "POST", screens.review_plan("withdraw"), "withdraw"),
    DeskPage("/plan/{plan}/require", "POST", screens.require_approval, "require"),
    DeskPage("/plan/{plan}/publish", "GET", release_screens.show_publish, "read"),
    DeskPage("/plan/{plan}/preview", "POST", release_screens.preview_figures, "mandates"),
    DeskPage("/plan/{plan}/make-public", "POST", release_screens.publish_figures, "mandates"),
    DeskPage("/plan/{plan}/release", "GET", release_screens.show_release, "read"),
    DeskPage("/plan/{plan}/rehearsal/{release}", "GET", release_screens.show_rehearsal, "read"),
    DeskPage("/plan/{plan}/draw", "POST", release_screens.draw_release, "reserve"),
    DeskPage("/plan/{plan}/read", "GET", release_screens.show_read, "read"),
    DeskPage("/plan/{plan}/budget", "GET", release_screens.show_budget, "read"),
    DeskPage("/plan/{plan}/bundle/{release}", "GET", release_screens.show_bundle, "read"),
    DeskPage("/plan/{plan}/zip/{release}", "GET", release_screens.send_zip, "read"),
    DeskPage("/plan/{plan}/bundle/{release}/{file}", "GET", release_screens.send_file, "read"),
)


def build(settings: DeskSettings) -> ASGIApp:
    """The application of one desk."""
    routes = [Route(screen.path, screen.__call__, methods=[screen.method]) for screen in SCREENS]
    static = Mount("/static", StaticFiles(directory=Path(__file__).parent / "static"))
    app = Starlette(
        routes=[*routes, static], exception_handlers={HTTPException: _told, Exception: _told}
    )
    app.state.desk = Desk(settings)
    return Door(app, settings)


def _told(request: Request, error: Exception) -> Response:  # noqa: ARG001
    """No page of this address, or not in this way."""
    if not isinstance(error, HTTPException):  # its text stays out: it may quote a record
        return PlainTextResponse(f"Unexpected error: {type(error).__name__}.\n", 500)
    words = {404: "There is no such page.", 405: "This is not done here."}
    said = words.get(error.status_code, "That did not work.")
    return PlainTextResponse(f"{said}\n", error.status_code)
