"""The desk in a real browser: from a folder to a published bundle, by keyboard only, for people
who use a screen reader, a telephone, a dark screen or paper.

Uses a Chromium that is on the machine; `CONGENIAL_BROWSER` names another. Without one it skips.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from congenial.data.advance import Advance
from congenial.desk.access import DeskSettings
from congenial.desk.server import link
from congenial.errors import PlanError
from congenial.publication.plan import Plan
from congenial.publication.table_audit import AUDITS, AuditEffort, attack_plan, write_audit
from congenial.publication.workflow import publish, release
from tests.desk.desks import MARKER, PLAN, serving, write_folder
from tests.desk.test_desk import a_ledger

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
STEPS = ("", "/data", "/price?of=sex&within=5&without=Population", "/review", "/release", "/budget")
WAIT = 120_000  # milliseconds; machines of automatic runs are slow


def _found() -> str | None:
    named = os.environ.get("CONGENIAL_BROWSER")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = _found()
    if path is None:
        pytest.skip(f"no browser on this machine: none of {', '.join(NAMES)} is installed")
    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield opened
        opened.close()


@dataclass
class Served:
    """A running desk, and a page of a browser that came in by its link."""

    folder: Path
    origin: str
    page: Page
    complaints: list[str]

    def go(self, path: str) -> None:
        self.page.goto(self.origin + path)


@pytest.fixture
def desk(browser: Browser, tmp_path: Path) -> Iterator[Served]:
    settings = DeskSettings(write_folder(tmp_path / "desk"))
    with serving(settings) as port:
        yield from _visited(browser, settings, port)


def _visited(browser: Browser, settings: DeskSettings, port: int) -> Iterator[Served]:
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    page.set_default_timeout(WAIT)
    expect.set_options(timeout=WAIT)
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(link(settings, port))
    yield Served(settings.folder, f"http://127.0.0.1:{port}", page, complaints)
    context.close()
    assert not complaints  # of the content security policy, too


def test_from_a_folder_to_a_published_bundle(desk: Served) -> None:
    page = desk.page
    page.get_by_role("link", name="plan.toml").click()
    check = page.locator("#check")
    text = page.get_by_label("Text of the plan")
    wrong = PLAN.replace("unit =", "units =")
    text.fill(wrong)
    expect(check).to_contain_text("unknown key")
    at = wrong.index("units")
    text.evaluate(f"one => one.setSelectionRange({at}, {at})")
    text.press("ArrowRight")
    expect(page.locator("#keys")).to_contain_text("[data] has no key units. Keys of [data]: source")
    text.fill(PLAN)
    expect(check).to_contain_text("The plan is valid")
    page.get_by_label("epsilon of people").fill("2")
    page.get_by_label("epsilon of people").press("Tab")
    expect(text).to_have_value(PLAN.replace("epsilon = 1.0 ", "epsilon = 2 "))
    expect(page.get_by_text("You have unsaved changes.")).to_be_visible()
    page.get_by_text("Add a figure").click()
    page.get_by_label("Count only people with").fill("sex = 'female'")
    page.get_by_role("button", name="Add figure").click()
    refused = page.locator(".group .beside")  # beside the fields that it is about
    expect(refused).to_contain_text("The name '' is empty")
    page.get_by_label("Name of the figure").fill("Women")
    page.get_by_role("button", name="Add figure").click()
    expect(page.get_by_role("button", name="Remove figure Women")).to_be_visible()
    page.get_by_role("button", name="Save the plan").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert "epsilon = 2   # per person" in (desk.folder / "plan.toml").read_text()

    page.get_by_role("link", name="Next: check the data").click()
    page.get_by_role("button", name="Check the records").click()
    expect(page.get_by_text("every record fitted the plan")).to_be_visible()
    page.get_by_role("link", name="Next: what the plan costs").click()
    page.get_by_label("within (people)").fill("6")
    page.locator("select[name=of]").select_option("sex")
    page.get_by_label("Women").check()
    page.get_by_role("button", name="Work it out").click()
    expect(page.get_by_text("Least budget for that accuracy")).to_be_visible()
    expect(page.get_by_role("heading", name="Without Women")).to_be_visible()

    page.get_by_role("link", name="Next: review").click()
    page.get_by_role("button", name="Propose this plan for review").click()
    expect(page.get_by_text("You proposed this plan")).to_be_visible()

    page.get_by_role("link", name="Next: publish and release").click()
    page.get_by_label("I know that exact figures cannot be taken back").check()
    page.get_by_role("button", name="Publish the figures").click()
    expect(page.get_by_text("Public already: Population; Women")).to_be_visible()
    page.get_by_label("I know that drawing people").check()
    page.get_by_role("button", name="Draw people").click()
    expect(page.get_by_text("Verified: all")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="table.csv").click()
    assert MARKER not in Path(download.value.path()).read_text()
    with page.expect_popup() as popup:
        page.get_by_role("link", name="Read the report").click()
    expect(popup.value.get_by_role("heading").first).to_be_visible()
    assert MARKER not in popup.value.content() + page.content()


@contextmanager
def at_own_desk(browser: Browser, folder: Path) -> Iterator[Page]:
    """Somebody's page at a desk of their own."""
    settings = DeskSettings(folder)
    with serving(settings) as port:
        context = browser.new_context(base_url=f"http://127.0.0.1:{port}")
        page = context.new_page()
        page.set_default_timeout(WAIT)
        page.goto(link(settings, port))
        yield page
        context.close()


def test_a_plan_goes_from_one_person_to_another_and_back(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ann requires approval, Bob proposes, Cyd refuses with a reason and then approves."""
    folder = write_folder(tmp_path / "desk")
    ledger = a_ledger(folder, "ann", bob="publisher", cyd="reviewer")
    expect.set_options(timeout=WAIT)
    review, release = "/plan/plan.toml/review", "/plan/plan.toml/release"
    with ExitStack() as desks:
        pages = {
            who: desks.enter_context(at_own_desk(browser, folder)) for who in ("ann", "bob", "cyd")
        }

        def at(who: str, path: str) -> Page:
            monkeypatch.setenv("LOGNAME", who)
            pages[who].goto(path)
            return pages[who]

        ann = at("ann", review)
        ann.get_by_role("button", name="Require approval").click()
        expect(ann.get_by_role("button", name="No longer require")).to_be_visible()
        bob = at("bob", release)
        expect(bob.get_by_role("button", name="Publish the figures")).to_be_disabled()
        at("bob", review).get_by_role("button", name="Propose this plan").click()
        expect(bob.get_by_text("You proposed this plan")).to_be_visible()
        cyd = at("cyd", review)
        cyd.get_by_label("Reason").fill("why by county?")
        cyd.get_by_role("button", name="Refuse").click()
        expect(cyd.get_by_text("Refused by 'cyd'")).to_be_visible()
        expect(at("bob", review).get_by_text("why by county?")).to_be_visible()
        at("cyd", review).get_by_role("button", name="Approve").click()
        expect(cyd.get_by_text("Approved by 'cyd'")).to_be_visible()
        at("bob", release)
        expect(bob.get_by_role("button", name="Publish the figures")).to_be_enabled()
    assert [(one.kind, one.who) for one in ledger.events()][-4:] == [
        ("require", "ann"),
        ("propose", "bob"),
        ("refuse", "cyd"),
        ("approve", "cyd"),
    ]


def press_to(page: Page, name: str, most: int = 60) -> None:
    """Go on by the tab key until something of this name has the focus, and is seen to have it."""
    for _ in range(most):
        page.keyboard.press("Tab")
        found = page.evaluate(
            """() => { const at = document.activeElement; const style = getComputedStyle(at);
            return [at.innerText || at.ariaLabel || at.labels?.[0]?.innerText || "",
                    style.outlineStyle !== "none"]; }"""
        )
        if name in found[0]:
            assert found[1], f"the focus on '{name}' is not seen"
            return
    raise AssertionError(f"'{name}' is not reached by the tab key")


def test_a_draft_is_filled_in_by_the_form(desk: Served) -> None:
    """By what the page says, without a line of TOML."""
    page = desk.page
    page.locator("select[name=data]").select_option("people.csv")
    page.get_by_label("Name of the plan").fill("mine")
    page.get_by_role("button", name="Draft a plan").click()
    check = page.locator("#check")
    expect(check).to_contain_text("placeholder")
    page.get_by_label("Values of county").fill("A, B, C")
    page.get_by_role("button", name="Set county").click()
    page.get_by_label("Values of sex").fill("female, male")
    page.get_by_role("button", name="Set sex").click()
    expect(check).to_contain_text("The plan is valid")
    page.get_by_role("button", name="Save the plan").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    page.get_by_role("link", name="Next: check the data").click()
    page.get_by_role("button", name="Check the records").click()
    expect(page.get_by_text("every record fitted the plan")).to_be_visible()


def test_by_keyboard_only(desk: Served) -> None:
    page = desk.page
    press_to(page, "plan.toml")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Plan", exact=True)).to_be_visible()
    press_to(page, "Publish and release")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="1. Exact figures")).to_be_visible()
    press_to(page, "I know that exact figures")
    page.keyboard.press("Space")
    press_to(page, "Publish the figures")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Public already: Population")).to_be_visible()
    press_to(page, "I know that drawing")
    page.keyboard.press("Space")
    press_to(page, "Draw people")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Verified: all")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_accessible_and_fits(desk: Served, scheme: str) -> None:
    """No finding of axe; nothing wider than a telephone or a screen; on paper what matters."""
    page = desk.page
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    for path in ("/", *(f"/plan/plan.toml{step}" for step in STEPS), "/plan/none"):
        for width in (1200, 400) if scheme == "light" else (400,):
            page.set_viewport_size({"width": width, "height": 900})
            if width == 1200 or scheme == "dark":
                desk.go(path)
            wider = page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert wider <= 0, (path, width)
        found = Axe().run(page)
        assert found.violations_count == 0, (path, found.generate_report())
    desk.complaints[:] = [one for one in desk.complaints if "404" not in one]


CUT_OFF = """() => [...document.querySelectorAll("caption, p, pre, li, dd")]
    .filter(one => one.getBoundingClientRect().right > innerWidth
                   || one.scrollWidth > one.clientWidth + 1)
    .map(one => one.innerText.slice(0, 60))"""


def check_page(page: Page, where: str, widths: tuple[int, ...] = (1200, 400)) -> None:
    """No finding of axe, nothing too wide and no text cut off, on a screen and on a telephone."""
    for width in widths:
        page.set_viewport_size({"width": width, "height": 900})
        wider = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert wider <= 0, (where, width)
        assert page.evaluate(CUT_OFF) == [], (where, width)
        found = Axe().run(page)
        assert found.violations_count == 0, (where, width, found.generate_report())


PROBLEMS = {
    "problems": [{"column": "sex", "kind": "not in the schema", "remedy": "Recode them."}],
    "lines": [
        {
            "section": "derive",
            "line": 'sex = { tidy = "sex", trim = true, case = "levels" }',
            "shows_values": False,
        }
    ],
}


def test_problems_and_an_attack_fit_a_dark_telephone(desk: Served) -> None:
    """What a check of the records and an attack left behind, everything unfolded."""
    page, folder = desk.page, desk.folder
    (attacked,) = attack_plan(Plan.load(folder / "plan.toml"), AuditEffort(4000, pairs=2, seed=3))
    write_audit(attacked, folder / AUDITS)
    (folder / "data-check").mkdir()
    (folder / "data-check" / "problems.json").write_text(json.dumps(PROBLEMS))
    page.emulate_media(color_scheme="dark")
    for path, words in (
        ("/data", "Suggested fixes"),
        ("/review", "No attack does better"),
        ("/price?of=sex&within=5", "What each exact figure costs"),
    ):
        desk.go(f"/plan/plan.toml{path}")
        expect(page.get_by_text(words).first).to_be_visible()
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        check_page(page, path, (400,))


def test_job_and_bundle_are_accessible(desk: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that runs, one that failed, the page for a draft, and a bundle."""
    page, go = desk.page, threading.Event()

    def slow(*_: object, progress: Callable[[str], None], **__: object) -> None:
        progress(Advance("reading", 0.25, "10 of 40 rows"))
        go.wait(WAIT / 1000)
        raise PlanError("the sea is rough.", remedy="Wait.")

    with monkeypatch.context() as patched:
        patched.setattr("congenial.desk.screens.workflow.publish", slow)
        desk.go("/plan/plan.toml/release")
        page.get_by_label("I know that exact figures").check()
        page.get_by_role("button", name="Publish the figures").click()
        expect(page.get_by_role("progressbar")).to_have_attribute("value", "25")
        expect(page.get_by_text("s left in this step")).to_be_visible()
        check_page(page, "running job")
        go.set()
        expect(page.get_by_text("the sea is rough")).to_be_visible()
        check_page(page, "failed job")
    desk.go("/")
    page.get_by_label("Name of the plan").fill("draft")
    page.get_by_role("button", name="Draft a plan").click()
    expect(page.get_by_role("button", name="Set county")).to_be_visible()
    check_page(page, "draft")
    plan = Plan.load(desk.folder / "plan.toml")
    publish(plan)
    release(plan, "people")
    desk.go("/plan/plan.toml/bundle/people")
    expect(page.get_by_text("Verified: all")).to_be_visible()
    check_page(page, "bundle")
    page.get_by_text("Every check").click()
    check_page(page, "bundle, all checks")
    desk.go("/plan/plan.toml/budget")
    check_page(page, "budget with a release")


def test_on_paper_the_content_is_left(desk: Served) -> None:
    page = desk.page
    desk.go("/plan/plan.toml/review")
    page.emulate_media(media="print")
    for hidden in ("nav", "header", "footer", "form"):
        assert not page.locator(hidden).first.is_visible(), hidden
    for shown in ("What is promised", "What changed", "The whole plan"):
        assert page.get_by_text(shown, exact=True).first.is_visible(), shown
    drawn = page.get_by_label("Text of the plan").evaluate(
        "one => one.checkVisibility({ contentVisibilityAuto: true }) && one.clientHeight"
    )
    assert drawn > 100  # folded on a screen, open on paper


def test_a_page_runs_no_script_of_a_plan(desk: Served) -> None:
    """Labels are written by people: what looks like HTML is shown, not obeyed."""
    hostile = "<img src=x onerror=document.title=1><script>document.title=2</script>"
    text = PLAN.replace('"Population"', f'"{hostile}"')
    (desk.folder / "plan.toml").write_text(text)
    for path in ("/plan/plan.toml", "/plan/plan.toml/review", "/plan/plan.toml/price"):
        desk.go(path)
        expect(desk.page.get_by_text("onerror=document").first).to_be_attached()
        assert desk.page.title() not in ("1", "2")
    desk.go("/plan/plan.toml")
    desk.page.get_by_label("Text of the plan").fill(text + "# typed\n")
    expect(desk.page.locator("#check")).to_contain_text("The plan is valid")
    assert desk.page.title() not in ("1", "2")
