"""The desk in a real browser: from a folder to a published bundle, by keyboard only, for people
who use a screen reader, a telephone, a dark screen or paper.

Uses a Chromium that is on the machine; `CONGENIAL_BROWSER` names another. Without one it skips.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from congenial.data.advance import Advance
from congenial.desk.access import DeskSettings
from congenial.desk.server import link
from congenial.errors import PlanError
from congenial.publication.plan import Plan
from congenial.publication.table_audit import AUDITS, AuditEffort, attack_plan, write_audit
from congenial.publication.workflow import publish, release
from tests.desk.desks import MARKER, PLAN, serving, write_folder
from tests.desk.test_desk import a_ledger

STEPS = (
    *("/data", "/categories", "/categories?column=%2B", "/figures", "/tables"),
    *("/tables?release=%2B", "/price?of=sex&within=5&without=Population", "/review", "/publish"),
    *("/release", "/read", "/budget", "/text"),
)
WAIT = 120_000  # milliseconds; machines of automatic runs are slow


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


MESSY = """person_id;ward;sex;cost
{rows}
"""
WARDS = ("Surgery", "Medicine", "medicine ", "SURG", "n/a", "Maternity")


def write_hospital(folder: Path) -> None:
    """A messy file of stays: spellings, words for missing, an empty line."""
    rows = [f"{MARKER}-{i};{WARDS[i % 6]};{'FM'[i % 2]};{100 * (i % 40)}" for i in range(600)]
    folder.mkdir()
    (folder / "stays.csv").write_text(MESSY.format(rows="\n".join(rows)))


def act(page: Page, button: str) -> None:
    """Press a button, and wait until the desk has answered in place."""
    page.get_by_role("button", name=button, exact=True).click()
    expect(page.locator("html.busy")).to_have_count(0)


def to_step(page: Page, title: str) -> None:
    """Go to a step of the plan by the list of steps."""
    page.get_by_role("navigation").get_by_role("link", name=re.compile(f"^{title}")).click()


def test_from_a_messy_file_to_a_bundle_without_typing_toml(
    browser: Browser, tmp_path: Path
) -> None:
    """A hospital: exact admissions by ward, the sum of costs protected, its mean asked for."""
    write_hospital(tmp_path / "desk")
    settings = DeskSettings(tmp_path / "desk")
    with serving(settings) as port:
        for visited in _visited(browser, settings, port):
            _plan_the_hospital(visited.page)
            _publish_the_hospital(visited)
            visited.complaints[:] = [one for one in visited.complaints if "422" not in one]


def _plan_the_hospital(page: Page) -> None:
    page.get_by_label("Name of the plan").fill("hospital")
    page.get_by_role("button", name="Draft a plan").click()
    to_step(page, "Categories")
    page.get_by_role("link", name="ward").click()
    page.get_by_label("Values of ward").fill("Surgery, Medicine, Maternity")
    page.get_by_label("Without a value, count as").fill("unknown")
    act(page, "Set ward")
    for wrong, level in (("SURG", "Surgery"), ("medicine ", "Medicine"), ("n/a", "")):
        page.get_by_role("link", name="ward").click()
        act(page, "Look at its values (confidential)")
        expect(page.get_by_role("heading", name="CONFIDENTIAL")).to_be_visible()
        page.get_by_label(f"Count {wrong} as").select_option(level)
        expect(page.get_by_role("heading", name="As text")).to_be_visible()
    page.get_by_role("link", name="sex").click()
    page.get_by_label("Values of sex").fill("F, M")
    act(page, "Set sex")
    page.get_by_role("link", name="cost").click()
    act(page, "Remove cost")
    to_step(page, "Exact figures")
    page.get_by_label("Name of the figure").fill("Admissions")
    page.get_by_role("checkbox", name="ward").check()
    act(page, "Add figure")
    to_step(page, "Tables")
    act(page, "Remove release first-table")
    page.get_by_label("Name of the release").fill("cost")
    page.get_by_role("checkbox", name="ward").check()
    page.get_by_label("Value", exact=True).fill("1")
    act(page, "Add release")
    act(page, "Add a table")
    expect(page.get_by_role("button", name="ward in table 2")).to_be_visible()
    page.get_by_text("What the tables count").click()
    page.get_by_label("Count or sum").select_option("cost")
    act(page, "Set what is counted")
    beside = page.locator(".beside")  # beside the fields that it is about
    expect(beside).to_contain_text("the lowest and the highest number")
    page.get_by_label("Count or sum").select_option("cost")
    page.get_by_label("Lowest number of a person").fill("0")
    page.get_by_label("Highest").fill("5000")
    page.get_by_label("Rounded to steps of").fill("10")
    act(page, "Set what is counted")
    expect(page.locator("#check")).to_have_text("The plan is valid.")


def _publish_the_hospital(desk: Served) -> None:
    page = desk.page
    to_step(page, "Categories")
    page.get_by_role("button", name="Check the records").click()
    expect(page.get_by_text("every record fitted the plan")).to_be_visible()
    to_step(page, "Accuracy and price")
    expect(page.get_by_text("which leaves epsilon = 1")).to_be_visible()
    to_step(page, "Publish")
    act(page, "Show me the figures first (confidential)")
    expect(page.get_by_text("No figure is about fewer than 3 people")).to_be_visible()
    page.get_by_label("I know that exact figures cannot be taken back").check()
    page.get_by_role("button", name="Publish the figures").click()
    expect(page.get_by_text("Public already: Admissions")).to_be_visible()
    to_step(page, "Release")
    page.get_by_label("I know that drawing cost").check()
    page.get_by_role("button", name="Draw cost").click()
    expect(page.get_by_text("All checks passed").first).to_be_visible()
    expect(page.frame_locator("iframe").get_by_role("heading").first).to_be_visible()
    page.get_by_label("Ask the bundle").fill("mean(cost) by ward")
    act(page, "Answer")
    expect(page.get_by_role("region", name="Answer")).to_contain_text("Maternity")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download all as one zip").click()
    assert MARKER.encode() not in Path(download.value.path()).read_bytes()
    assert MARKER not in page.content()
    text = (desk.folder / "hospital.toml").read_text()
    assert text.count("chosen by looking at the data") == 1


def test_the_text_and_the_screen_stay_in_step(desk: Served) -> None:
    page = desk.page
    desk.go("/plan/plan.toml/tables")
    text, check = page.get_by_label("Text of the plan"), page.locator("#check")
    act(page, "sex in table 1")
    expect(text).to_have_value(PLAN.replace('"county", "sex"]\neps', '"county"]\neps'))
    expect(page.get_by_role("button", name="sex in table 1")).to_be_focused()
    page.get_by_role("button", name="Undo").click()
    expect(text).to_have_value(PLAN)
    wrong = PLAN.replace("unit =", "units =")
    text.fill(wrong)
    expect(check).to_contain_text("unknown key")
    at = wrong.index("units")
    text.evaluate(f"one => one.setSelectionRange({at}, {at})")
    text.press("ArrowRight")
    expect(page.locator("#keys")).to_contain_text("[data] has no key units. Keys of [data]: source")
    text.fill(PLAN.replace("epsilon = 1.0", "epsilon = 2"))
    expect(check).to_have_text("The plan is valid.")
    expect(page.get_by_text("The text is not saved yet.")).to_be_visible()
    text.press("Control+s")
    expect(page.get_by_label("epsilon of people")).to_have_value("2")
    assert "epsilon = 2   # per person" in (desk.folder / "plan.toml").read_text()


def test_the_slider_is_followed(desk: Served) -> None:
    """By keys, with the numbers of the desk; nothing is saved until it is kept."""
    page = desk.page
    desk.go("/plan/plan.toml/price")
    margin = page.locator('tr[data-what="county x sex"] .words')
    before = margin.inner_text()
    slider = page.get_by_label("epsilon of people, slider")
    slider.focus()
    page.keyboard.press("End")
    expect(margin).not_to_have_text(before)
    expect(page.get_by_text("which leaves nothing")).to_be_visible()
    assert (desk.folder / "plan.toml").read_text() == PLAN
    act(page, "Keep")
    expect(page.get_by_text("which leaves nothing")).to_be_visible()
    assert "epsilon = 4 " in (desk.folder / "plan.toml").read_text()


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
    review, publish_page = "/plan/plan.toml/review", "/plan/plan.toml/publish"
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
        bob = at("bob", publish_page)
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
        at("bob", publish_page)
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
            const said = at.ariaLabel || at.innerText || at.labels?.[0]?.innerText || "";
            return [at === document.body ? "" : said,
                    style.outlineStyle !== "none"]; }"""
        )
        if name in found[0]:
            assert found[1], f"the focus on '{name}' is not seen"
            return
    raise AssertionError(f"'{name}' is not reached by the tab key")


def test_by_keyboard_only(desk: Served) -> None:
    page = desk.page
    press_to(page, "plan.toml")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Accuracy and price")).to_be_visible()
    press_to(page, "Tables")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Protected tables")).to_be_visible()
    press_to(page, "county in table 1")
    page.keyboard.press("Enter")
    off = page.get_by_role("button", name="county in table 1", pressed=False)
    expect(off).to_be_focused()
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="county in table 1", pressed=True)).to_be_focused()
    press_to(page, "Publish")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Publish the exact figures")).to_be_visible()
    press_to(page, "I know that exact figures")
    page.keyboard.press("Space")
    press_to(page, "Publish the figures")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Public already: Population")).to_be_visible()
    press_to(page, "Release")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Release", exact=False).first).to_be_visible()
    expect(page.get_by_role("button", name="Draw people")).to_be_visible()
    press_to(page, "I know that drawing")
    page.keyboard.press("Space")
    press_to(page, "Draw people")
    page.keyboard.press("Enter")
    expect(page.get_by_text("All checks passed").first).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_accessible_and_fits(desk: Served, scheme: str) -> None:
    """No finding of axe; nothing wider than a telephone or a screen; on paper what matters."""
    page = desk.page
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    for path in ("/", *(f"/plan/plan.toml{step}" for step in STEPS), "/plan/none"):
        for width in (1280, 390) if scheme == "light" else (390,):
            page.set_viewport_size({"width": width, "height": 800})
            if width == 1280 or scheme == "dark":
                desk.go(path)
            wider = page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert wider <= 0, (path, width)
            if width == 1280 and path != "/":  # the page itself never scrolls, panes may
                assert page.evaluate("document.documentElement.scrollHeight") <= 800, path
        found = Axe().run(page)
        assert found.violations_count == 0, (path, found.generate_report())
    desk.complaints[:] = [one for one in desk.complaints if "404" not in one]


CUT_OFF = """() => [...document.querySelectorAll("caption, p, pre, li, dd")]
    .filter(one => one.getBoundingClientRect().right > innerWidth
                   || one.scrollWidth > one.clientWidth + 1)
    .map(one => one.innerText.slice(0, 60))"""


def check_page(page: Page, where: str, widths: tuple[int, ...] = (1280, 390)) -> None:
    """No finding of axe, nothing too wide and no text cut off, on a screen and on a telephone."""
    for width in widths:
        page.set_viewport_size({"width": width, "height": 800})
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
        ("/categories", "Suggested fixes"),
        ("/review", "No attack does better"),
        ("/price?of=sex&within=5", "What would an accuracy need?"),
    ):
        desk.go(f"/plan/plan.toml{path}")
        expect(page.get_by_text(words).first).to_be_visible()
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        check_page(page, path, (390,))


def test_job_and_bundle_are_accessible(desk: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that runs, one that failed, the page for a draft, and a bundle."""
    page, go = desk.page, threading.Event()

    def slow(*_: object, progress: Callable[[str], None], **__: object) -> None:
        progress(Advance("reading", 0.25, "10 of 40 rows"))
        go.wait(WAIT / 1000)
        raise PlanError("the sea is rough.", remedy="Wait.")

    with monkeypatch.context() as patched:
        patched.setattr("congenial.desk.release_screens.workflow.publish", slow)
        desk.go("/plan/plan.toml/publish")
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
    page.get_by_role("link", name="Categories").click()
    expect(page.get_by_role("button", name="Set county")).to_be_visible()
    check_page(page, "draft")
    act(page, "Look at its values (confidential)")
    expect(page.get_by_role("heading", name="CONFIDENTIAL")).to_be_visible()
    check_page(page, "values")
    desk.go("/plan/plan.toml/publish")
    act(page, "Show me the figures first (confidential)")
    check_page(page, "preview")
    plan = Plan.load(desk.folder / "plan.toml")
    publish(plan)
    release(plan, "people")
    desk.go("/plan/plan.toml/bundle/people")
    expect(page.get_by_text("All checks passed").first).to_be_visible()
    check_page(page, "bundle")
    page.get_by_text("Every check").click()
    check_page(page, "bundle, all checks")
    desk.go("/plan/plan.toml/bundle/people?of=count()")
    check_page(page, "an answer")
    desk.go("/plan/plan.toml/tables")
    expect(page.get_by_text("This plan is locked")).to_be_visible()
    check_page(page, "a locked plan")
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
    for path in ("figures", "review", "price"):
        path = f"/plan/plan.toml/{path}"
        desk.go(path)
        expect(desk.page.get_by_text("onerror=document").first).to_be_attached()
        assert desk.page.title() not in ("1", "2")
    desk.go("/plan/plan.toml/figures")
    desk.page.get_by_label("Text of the plan").fill(text + "# typed\n")
    expect(desk.page.locator("#check")).to_contain_text("The plan is valid")
    assert desk.page.title() not in ("1", "2")
