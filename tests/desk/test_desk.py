"""The desk's screens by requests: the way of a plan, two people at once, and what no page shows."""

from __future__ import annotations

import io
import re
import threading
import time
import zipfile
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from congenial.data.advance import Advance
from congenial.desk.jobs import MOST_PAGES, Job, Jobs
from congenial.desk.price_screen import _less
from congenial.desk.workspace import text_digest
from congenial.errors import PlanError
from congenial.ledger.ledger import Ledger
from congenial.publication.check_document import examine
from congenial.publication.json_schema import plan_schema
from congenial.publication.number_of_people import PEOPLE
from congenial.publication.plan import Plan
from congenial.report.page_data import script_source
from tests.desk.desks import MARKER, PLAN, Colleague, Visitor, entered

AtOwnDesk = Callable[[str], Colleague]


def wait(visitor: Visitor, answer: object) -> dict[str, object]:
    """Follow a job to its end."""
    place = answer.headers["location"]
    for _ in range(600):
        told = visitor.get(f"{place}?as=json").json()
        assert visitor.get(place).status_code == 200
        if told["state"] != "running":
            return told
        time.sleep(0.05)
    raise AssertionError("the job did not end")


def a_ledger(folder: Path, who: str, **roles: str) -> Ledger:
    plan = Plan.load(folder / "plan.toml")
    budget = plan.budget.budget()
    made = Ledger.open(plan.ledger, plan.schema, adjacency=plan.unit_kind, budget=budget, who=who)
    for name, role in roles.items():
        made.grant(name, role)
    return made


def test_from_a_plan_to_a_bundle(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """All the way of one person; confidential values reach no page, header, address or log."""
    me = entered(folder)
    pages = [me.get("/").text, me.get("/plan/plan.toml").text]
    price = me.get("/plan/plan.toml/price?of=county&within=5&level=95&without=Population")
    assert "published exactly" in price.text
    assert "Without Population" in price.text
    assert "<meter" in price.text
    no = me.post("/plan/plan.toml/draw", {"name": "people", "digest": me.digest()})
    assert (no.status_code, "Tick the box" in no.text) == (422, True)
    sure = {"sure": "publish", "digest": me.digest()}
    assert wait(me, me.post("/plan/plan.toml/make-public", sure))["state"] == "done"
    pages += [me.get(f"/plan/plan.toml/{step}").text for step in ("publish", "release")]
    assert "Public already: Population" in pages[-2]
    sure = {"sure": "release", "name": "people", "digest": me.digest()}
    done = wait(me, me.post("/plan/plan.toml/draw", sure))
    assert done["state"] == "done"
    bundle = me.get(str(done["then"])).text
    assert "All checks passed" in bundle
    report = me.get("/plan/plan.toml/bundle/people/report.html")
    policy = report.headers["content-security-policy"]
    assert "sandbox allow-scripts" in policy
    assert f"script-src {script_source()};" in policy  # no script but the report's own
    kept = me.get("/plan/plan.toml/bundle/people/table.csv")
    assert kept.headers["content-disposition"].startswith("attachment")
    for stray in ("notes.txt", "link.csv"):  # only what the bundle lists is handed out
        place = folder / "bundles" / "people" / stray
        place.symlink_to(folder / "people.csv") if "link" in stray else place.write_text(MARKER)
        assert me.get(f"/plan/plan.toml/bundle/people/{stray}").status_code == 404
    budget = me.get("/plan/plan.toml/budget").text
    assert "epsilon = 1" in budget
    later = me.get("/plan/plan.toml/price?suppose=sex+%3D+%27male%27").text
    assert "If someone also knew: sex = &#39;male&#39;" in later
    pages += [price.text, bundle, report.text, kept.text, budget, me.get("/").text]
    pages.append(me.get("/plan/plan.toml/review").text)
    assert not [page for page in pages if MARKER in page]
    out = capfd.readouterr()
    assert MARKER not in out.out + out.err


def test_a_plan_that_states_no_figure_is_drawn_at_once(folder: Path) -> None:
    head, _, rest = PLAN.partition("[publish]")
    (folder / "plan.toml").write_text(f"{head}[[release]]{rest.partition('[[release]]')[2]}")
    me = entered(folder)
    assert "promise leaves the number of people public" in me.get("/plan/plan.toml/publish").text
    sure = {"sure": "release", "name": "people", "digest": me.digest()}
    assert wait(me, me.post("/plan/plan.toml/draw", sure))["state"] == "done"
    assert "Number of people" in me.get("/plan/plan.toml/budget").text


def test_faults_in_the_data_are_told_without_them(folder: Path) -> None:
    people = folder / "people.csv"
    people.write_text(people.read_text() + f"{MARKER}-99,{MARKER},female\n")
    me = entered(folder)
    sure = {"sure": "publish", "digest": me.digest()}
    answer = me.post("/plan/plan.toml/make-public", sure)
    told = wait(me, answer)
    assert told["state"] == "failed"
    assert "county" in str(told["error"])
    assert MARKER not in str(told) + me.get(answer.headers["location"]).text
    assert wait(me, me.post("/plan/plan.toml/data/check"))["state"] == "done"
    page = me.get("/plan/plan.toml/categories").text
    assert "values that the plan does not name" in page
    assert "Recode them" in page
    assert MARKER not in page
    private = folder / "data-check" / "problems.csv"
    assert private.stat().st_mode & 0o077 == 0
    for name in (
        "data-check",
        "problems.csv",
        "data-check%2fproblems.csv",
        "data-check:problems.csv",
    ):
        assert me.get(f"/plan/{name}").status_code == 404


def test_lines_that_quote_no_value_are_added_to_the_plan(folder: Path) -> None:
    people = folder / "people.csv"
    people.write_text(people.read_text().replace("female", "FEMALE").replace("A,", f"{MARKER}A,"))
    me = entered(folder)
    assert wait(me, me.post("/plan/plan.toml/data/check"))["state"] == "done"
    page = me.get("/plan/plan.toml/categories").text
    assert "case = &#34;lower&#34;" in page
    assert MARKER not in page
    opened = {"opened": text_digest(PLAN)}
    stale = me.post("/plan/plan.toml/data/fix", {"opened": text_digest("another")})
    assert (stale.status_code, (folder / "plan.toml").read_text()) == (409, PLAN)
    assert me.post("/plan/plan.toml/data/fix", opened).status_code == 303
    text = (folder / "plan.toml").read_text()
    assert 'sex = { tidy = "sex", case = "lower" }' in text
    assert MARKER not in text
    assert "Add these lines" not in me.get("/plan/plan.toml/categories").text


def test_a_proposed_plan_is_not_proposed_by_the_one_who_reviews_it(
    folder: Path, at_own_desk: AtOwnDesk
) -> None:
    """Whoever proposes cannot approve: a reviewer must not fall into that."""
    ann, bob = at_own_desk("ann"), at_own_desk("bob")
    fields = {"digest": Plan.load(folder / "plan.toml").digest}
    assert "Propose this plan" in ann.get("/plan/plan.toml/review").text
    assert ann.post("/plan/plan.toml/propose", fields).status_code == 303
    seen = bob.get("/plan/plan.toml/review").text
    assert "Propose this plan" not in seen
    assert "Approve" in seen


def test_the_text_is_checked_as_it_is_typed(folder: Path) -> None:
    me = entered(folder)
    head = {"x-csrf-token": me.csrf()}

    def check(text: str) -> dict[str, str]:
        told = me.client.post("/plan/plan.toml/check", json={"text": text}, headers=head)
        assert told.status_code == 200
        return told.json()

    assert check(PLAN)["state"] == "fine"
    assert "unknown key" in check(PLAN.replace("unit =", "units ="))["words"]
    assert "TOML" in check(PLAN + "[")["words"]
    hostile = check(PLAN.replace("Population", "<script>alert(1)</script>"))
    assert set(hostile) == {"state", "words"}
    assert (folder / "plan.toml").read_text() == PLAN  # nothing is saved by that


def edit(me: Visitor, what: str, view: str = "tables?", **fields: str) -> Any:
    opened = re.search(r'name="opened" value="([^"]+)"', me.get("/plan/plan.toml/text").text)
    assert opened
    address = f"/plan/plan.toml/edit?view={quote(view)}"
    return me.post(address, {"edit": what, "opened": opened[1]} | fields)


def test_edits_are_saved_undone_and_refused_beside_their_field(folder: Path) -> None:
    me, plan = entered(folder), folder / "plan.toml"
    answer = edit(me, "toggle-axis", entry="people", at="0", name="sex")
    assert answer.headers["location"] == "/plan/plan.toml/tables"
    assert 'table = ["county"]' in plan.read_text()
    assert edit(me, "promise", section="release", entry="people", parameter="rho", value="0.5")
    assert ("rho = 0.5" in plan.read_text(), "epsilon = 1.0" in plan.read_text()) == (True, False)
    no = edit(me, "promise", section="release", entry="people", parameter="rho", value="much")
    assert (no.status_code, "&#39;much&#39; is not a number" in no.text) == (422, True)
    assert 'value="much"' in no.text
    history = me.get("/plan/plan.toml/text").text
    assert "promise of people" in history
    assert (folder / ".plan.toml.history").stat().st_mode & 0o077 == 0
    assert me.post("/plan/plan.toml/undo", {"opened": text_digest("older")}).status_code == 409
    opened = {"opened": text_digest(plan.read_text())}
    assert me.post("/plan/plan.toml/undo", opened | {"back": "2"}).status_code == 303
    assert plan.read_text() == PLAN


def test_a_plan_is_locked_once_something_is_drawn(folder: Path) -> None:
    me, plan = entered(folder), folder / "plan.toml"
    for name, more in (("make-public", {"sure": "publish"}), ("draw", {"sure": "release"})):
        fields = more | {"digest": me.digest(), "name": "people"}
        assert wait(me, me.post(f"/plan/plan.toml/{name}", fields))["state"] == "done"
    before = plan.read_text()
    assert "This plan is locked" in me.get("/plan/plan.toml/tables").text
    here = {"place": "toggle-axispeople0", "entry": "people", "at": "0", "name": "sex"}
    no = edit(me, "toggle-axis", **here)
    assert (no.status_code, "the plan is locked: people" in no.text.lower()) == (422, True)
    fields = {"text": PLAN.replace("1.0", "2"), "opened": text_digest(before)}
    assert me.post("/plan/plan.toml/save", fields).status_code == 422
    assert plan.read_text() == before
    copy = me.post("/plan/plan.toml/fork", {"name": "next"})
    assert copy.headers["location"] == "/plan/next.toml/tables"
    assert 'name = "people-2"' in (folder / "next.toml").read_text()
    both = me.get("/plan/next.toml/price?beside=plan.toml").text  # beside what was released
    assert both.count("<meter") >= 6


def test_values_of_a_column_are_shown_on_request_only(folder: Path) -> None:
    """On one page, marked; what is taken from it is marked in the plan."""
    me, people, plan = entered(folder), folder / "people.csv", folder / "plan.toml"
    people.write_text(people.read_text().replace(",female", f",{MARKER}f"))
    page = me.post("/plan/plan.toml/values", {"column": "sex"})
    assert (page.status_code, page.headers["cache-control"]) == (200, "no-store")
    assert "CONFIDENTIAL" in page.text
    assert f"{MARKER}f" in page.text
    assert MARKER not in me.get("/plan/plan.toml/categories?column=sex").text
    edit(me, "recode", "categories?column=sex", column="sex", value=f"{MARKER}f", to="female")
    line = f'sex = {{ recode = "sex", to = {{ "{MARKER}f" = "female" }} }}'
    assert f"{line} # chosen by looking at the data" in plan.read_text()
    assert "not expected" not in me.post("/plan/plan.toml/values", {"column": "sex"}).text
    rows = {"column": "sex", "kind": "levels", "listed": "a, b"}
    edit(me, "set-column-by-looking", "categories?", **rows)
    assert 'sex = { levels = ["a", "b"] } # chosen by looking' in plan.read_text()


def test_figures_are_previewed_before_they_are_public(folder: Path) -> None:
    me = entered(folder)
    (folder / "people.csv").write_text("person_id,county,sex\nx,A,male\ny,B,female\nz,B,male\n")
    shown = me.post("/plan/plan.toml/preview", {"digest": me.digest()}).text
    assert "CONFIDENTIAL until they are published" in shown
    assert "fewer people than the threshold" in shown
    assert shown.count(" (small)</td>") == 2
    assert "(small)" not in me.get("/plan/plan.toml/publish").text
    assert not (folder / "ledger.sqlite").exists()


def test_terms_are_explained_as_in_the_glossary(folder: Path) -> None:
    rows = Path("docs/glossary.md").read_text(encoding="utf-8")
    rows = re.sub(r"\[([^]]*)\]\([^)]*\)|`", r"\1", rows)
    boxes = re.findall(r"<b>([^<]+)</b>: (.*)[.]</p>", entered(folder).get("/").text)
    assert len(boxes) == 12
    for name, words in boxes:
        assert f"| {name.lower()} | {unescape(words)} |".lower() in rows.lower()


def test_made_up_people_a_question_and_one_file(folder: Path) -> None:
    me = entered(folder)
    made_up = me.get("/plan/plan.toml/rehearsal/people")
    assert "MADE-UP PEOPLE" in made_up.text
    assert "sandbox" in made_up.headers["content-security-policy"]
    assert not (folder / "ledger.sqlite").exists()
    for name, more in (("make-public", {"sure": "publish"}), ("draw", {"sure": "release"})):
        fields = more | {"digest": me.digest(), "name": "people"}
        assert wait(me, me.post(f"/plan/plan.toml/{name}", fields))["state"] == "done"
    asked = me.get("/plan/plan.toml/bundle/people?of=count() by county").text
    assert "Confidence: at least 90 %" in asked
    wrong = me.get("/plan/plan.toml/bundle/people?of=nonsense(").text
    assert 'class="notice problem beside"' in wrong
    packed = zipfile.ZipFile(io.BytesIO(me.get("/plan/plan.toml/zip/people").content))
    on_disk = {f"people/{one.name}" for one in (folder / "bundles" / "people").iterdir()}
    assert set(packed.namelist()) == on_disk
    assert "100 %" not in me.get("/plan/plan.toml/budget").text
    assert "(25 %)" in me.get("/plan/plan.toml/budget").text


def test_the_slider_says_what_check_says(folder: Path) -> None:
    me = entered(folder)
    head = {"x-csrf-token": me.csrf()}

    def move(value: str) -> dict[str, Any]:
        fields = {"release": "people", "value": value}
        return me.client.post("/plan/plan.toml/price/move", json=fields, headers=head).json()

    moved = move("2")
    changed = Plan.parse(PLAN.replace("epsilon = 1.0", "epsilon = 2"), folder)
    (checked,) = examine(changed)["releases"]
    expected = [(one["what"], one["within"]) for one in checked["accuracy"]]
    assert [(one["what"], one["width"]) for one in moved["rows"]] == expected
    assert moved["allowed"]
    assert "The budget does not allow this" in move("5")["budget"]
    assert "not a positive number" in move("-1")["problem"]
    assert (folder / "plan.toml").read_text() == PLAN


@pytest.mark.parametrize(
    "text",
    [
        "data = 1",
        "release = 3\npublish = 2\nschema = []\nbudget = 'x'",
        "release = [1, 'x']",
        "publish.a = 1\nrelease = [{ tables = 3, name = 4 }]",
        "[[release]]\ntable = 'x'\nepsilon = [1]",
        "publish.a = { by = 3, count = ['x'] }",
        "",
        "[",
    ],
)
def test_the_screens_survive_any_text(text: str, folder: Path) -> None:
    (folder / "plan.toml").write_text(f"{text}\n# budget data")
    me = entered(folder)
    for step in ("data", "categories", "figures", "tables", "text", "price", "read"):
        assert me.get(f"/plan/plan.toml/{step}").status_code in (200, 422), step


def test_labels_are_shown_in_place_of_codes(folder: Path) -> None:
    plan = folder / "plan.toml"
    text = PLAN.replace('"male"] }', '"male"], label = "Sex & gender" }')
    plan.write_text(text.replace('by = ["county"]', 'by = ["sex"]'))
    me = entered(folder)
    assert "<h2>Population</h2>" in me.get("/plan/plan.toml/figures").text
    assert "sex (Sex &amp; gender)" in me.get("/plan/plan.toml/categories?column=sex").text
    assert "county x Sex &amp; gender" in me.get("/plan/plan.toml/price").text
    assert "Population (by Sex &amp; gender" in me.get("/plan/plan.toml/review").text


def test_keys_come_from_the_json_schema(folder: Path) -> None:
    keys = entered(folder).get("/plan-keys").json()
    assert sorted(keys) == sorted(plan_schema()["properties"])
    assert {"levels", "edges", "label"} <= set(keys["schema"]["keys"])
    assert {"table", "tables", "epsilon", "statistics"} <= set(keys["release"]["keys"])
    assert (keys["publish"]["free"], keys["budget"]["free"]) == (True, False)


def test_two_people_save_one_plan(folder: Path) -> None:
    """The second is shown both, and nothing is lost."""
    me = entered(folder)
    opened = text_digest(PLAN)
    mine, theirs = PLAN.replace("1.0", "1.5"), PLAN.replace("1.0", "0.5")
    first = me.post("/plan/plan.toml/save", {"text": theirs, "opened": opened})
    assert first.status_code == 303
    second = me.post("/plan/plan.toml/save", {"text": mine, "opened": opened})
    assert second.status_code == 409
    assert "changed by somebody else" in second.text
    assert "+epsilon = 1.5" in second.text
    assert "-epsilon = 0.5" in second.text
    assert (folder / "plan.toml").read_text() == theirs
    again = me.post("/plan/plan.toml/save", {"text": mine, "opened": text_digest(theirs)})
    assert again.status_code == 303
    bad = me.post("/plan/plan.toml/save", {"text": "x = [", "opened": text_digest(mine)})
    assert (bad.status_code, (folder / "plan.toml").read_text()) == (422, mine)


def test_a_plan_is_reviewed_by_somebody_else(folder: Path, at_own_desk: AtOwnDesk) -> None:
    ledger = a_ledger(folder, "ann", bob="publisher", cyd="reviewer")
    ann, bob, cyd = map(at_own_desk, ("ann", "bob", "cyd"))
    assert ann.post("/plan/plan.toml/require", {"needed": "yes"}).status_code == 303
    digest = {"digest": Plan.load(folder / "plan.toml").digest}
    early = wait(bob, bob.post("/plan/plan.toml/make-public", digest | {"sure": "publish"}))
    assert "somebody else approves" in str(early["error"])
    assert bob.post("/plan/plan.toml/propose", digest).status_code == 303
    assert bob.post("/plan/plan.toml/approve", digest).status_code == 403
    assert cyd.post("/plan/plan.toml/refuse", digest).status_code == 403  # without a reason
    refusal = digest | {"because": "<b>too fine</b>"}
    assert cyd.post("/plan/plan.toml/refuse", refusal).status_code == 303
    assert "&lt;b&gt;too fine" in bob.get("/plan/plan.toml/review").text
    assert cyd.post("/plan/plan.toml/approve", digest).status_code == 303
    assert ledger.approvals.plan(digest["digest"]).standing == "approved"
    assert cyd.post("/plan/plan.toml/draw", digest | {"sure": "release"}).status_code == 403
    told = wait(bob, bob.post("/plan/plan.toml/make-public", digest | {"sure": "publish"}))
    assert told["state"] == "done"
    assert [one.who for one in ledger.events() if one.kind == "mandates"] == ["bob"]
    (folder / "plan.toml").write_text(PLAN.replace("1.0", "1.5"))
    page = cyd.get("/plan/plan.toml/review").text
    assert "+epsilon = 1.5" in page
    stale = cyd.post("/plan/plan.toml/approve", digest)  # of the page as it was before
    assert "was changed since" in stale.text


def test_a_draft_for_a_data_file_shows_no_value(folder: Path) -> None:
    me = entered(folder)
    made = me.post("/plans", {"data": "people.csv", "name": "second"})
    assert made.headers["location"] == "/plan/second.toml"
    assert MARKER not in (folder / "second.toml").read_text()
    assert "placeholder" in me.get("/plan/second.toml/categories").text
    assert me.post("/plans", {"data": "people.csv", "name": "second"}).status_code == 422


def test_progress_tells_shares_and_no_numbers_of_people() -> None:
    job = Job("x", "t", "p", "/")
    job.tell(Advance("counting", 0.25, "1,500 of 6,000 rows"))
    assert job.document()["share"] == 25
    assert "1,500" not in str(job.document())
    assert job.document()["left"] is not None
    job.tell("group 17 is drawn")
    assert "17" not in job.stage


def test_a_slow_page_shows_how_far_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And is then shown itself, at the same address, and is worked out once."""
    go, asked = threading.Event(), []

    def slow(*words: object, **more: object) -> dict[str, object]:
        tell = more.get("progress", words[-1])
        asked.append(tell)
        tell(Advance("working out 'people'", 0.5))
        go.wait(10)
        return examine(*words, **more)

    monkeypatch.setattr("congenial.desk.visit.PATIENCE", 0.2)
    monkeypatch.setattr("congenial.desk.screens.examine", slow)
    me = entered(folder)
    place = "/plan/plan.toml/review?level=90"
    waiting = me.get(place).text
    assert 'value="50"' in waiting
    assert "Running: working out &#39;people&#39;" in waiting
    assert "s left in this step" in waiting
    found = re.search(r'data-address="([^"]+)"', waiting)
    assert found
    assert me.get(found[1]).json()["then"] == place
    me.get(place)
    assert len(asked) == 1
    go.set()
    monkeypatch.setattr("congenial.desk.visit.PATIENCE", 10.0)
    assert "What is promised" in me.get(place).text
    assert len(asked) == 1
    assert "What is promised" in me.get(place).text  # once more, and worked out again
    assert len(asked) == 2


def test_a_page_from_before_a_change_is_not_shown() -> None:
    jobs = Jobs()

    def ended(place: str) -> Job:
        job = jobs.page("p", place, lambda _: "page")
        assert job.over.wait(10)
        return job

    first = ended("/a")
    assert ended("/a") is first
    assert ended("/b") is not first
    jobs.changed()
    assert ended("/a") is not first


def test_pages_that_wait_are_limited() -> None:
    jobs, go = Jobs(), threading.Event()
    started = [jobs.page("p", f"/{at}", lambda _: go.wait(10)) for at in range(MOST_PAGES)]
    with pytest.raises(PlanError, match="too many pages"):
        jobs.page("p", "/more", lambda _: None)
    go.set()
    assert all(one.over.wait(10) for one in started)


def test_one_job_per_plan() -> None:
    jobs, go = Jobs(), threading.Event()
    first = jobs.start("t", "p", "/", lambda _: go.wait(10))
    with pytest.raises(PlanError, match="already"):
        jobs.start("t", "p", "/", lambda _: None)
    go.set()
    while first.state == "running":
        time.sleep(0.01)

    def fail(_: object) -> None:
        raise ValueError(MARKER)

    broken = jobs.start("t", "p", "/", fail)
    while broken.state == "running":
        time.sleep(0.01)
    assert broken.error == "unexpected error: ValueError."


def test_no_page_quotes_the_levels_of_a_file(folder: Path) -> None:
    """A plan may name the records as its list of levels, also once a ledger has them."""
    me = entered(folder)
    head = {"x-csrf-token": me.csrf()}
    people = f"""
data.source = "people.csv"
schema.id.levels_file = "people.csv"
publish.One.count = "id = '{MARKER}'"
budget.epsilon = 1
"""
    told = me.client.post("/plan/plan.toml/check", json={"text": people}, headers=head).json()
    assert "60 categories, which are listed in a file" in told["words"]
    assert f"{MARKER}-" not in str(told)
    rows = (folder / "people.csv").read_text().replace(",A,", f",{MARKER}-A,")
    (folder / "people.csv").write_text(rows)
    (folder / "counties.csv").write_text(f"county\n{MARKER}-A\nB\nC\n")
    sure = {"sure": "publish", "digest": me.digest()}
    assert wait(me, me.post("/plan/plan.toml/make-public", sure))["state"] == "done"
    price = me.get("/plan/plan.toml/price?suppose=county+%3D+%27A%27").text
    assert "3 categories, which are listed in a file" in price
    assert MARKER not in price


def test_tables_that_the_program_chooses_are_priced(folder: Path) -> None:
    chosen = PLAN.replace('table = ["county", "sex"]', 'table = ["county", "sex"]\ntables = "auto"')
    (folder / "plan.toml").write_text(chosen)
    page = entered(folder).get("/plan/plan.toml/price?of=sex&within=500&level=95")
    assert page.status_code == 200
    assert ": needs epsilon = " in page.text
    assert '<option value="county,sex"' in page.text


def test_each_sum_of_one_table_is_priced_once(folder: Path) -> None:
    page = entered(folder).get("/plan/plan.toml/price").text
    assert page.count('<th scope="row">county x sex</th>') == 1
    assert page.count('<th scope="row">sex</th>') == 1


def test_a_plan_without_a_figure_keeps_everything_else(folder: Path) -> None:
    """Columns that are made from others and words for readers, too."""
    more = (
        '[derive]\nsex = { tidy = "sex", case = "levels" }\n\n[about]\ntitle = "Who lives where"\n'
    )
    (folder / "plan.toml").write_text(f"{PLAN}\n{more}")
    plan = Plan.load(folder / "plan.toml")
    less = _less(plan, ["Population"])
    assert not less.publish
    assert less.model_dump(exclude={"publish"}) == plan.model_dump(exclude={"publish"})
    assert less.folder == plan.folder
    assert less.figures.statements == (PEOPLE,)
