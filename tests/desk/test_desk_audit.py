"""The attack on a plan's releases at the desk: who may start it, and what its reviewers see."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from congenial.publication.check_document import examine, review_html
from congenial.publication.plan import Plan
from congenial.publication.table_audit import AUDITS, AuditEffort, attack_plan, audit_results
from tests.desk.desks import PLAN, Visitor, entered
from tests.desk.test_desk import AtOwnDesk, a_ledger, wait

FEW = AuditEffort(4000, pairs=2, seed=3)
REVIEW = "/plan/plan.toml/review"


def digest(folder: Path) -> dict[str, str]:
    return {"digest": Plan.load(folder / "plan.toml").digest}


def attack(visitor: Visitor, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    monkeypatch.setattr("congenial.desk.screens.table_audit.AuditEffort", lambda _: FEW)
    return wait(visitor, visitor.post("/plan/plan.toml/audit", digest(folder)))


def test_the_result_stands_in_the_review(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "people.csv").unlink()  # an attack reads no data
    me = entered(folder)
    assert "Not attacked yet." in me.get(REVIEW).text
    assert attack(me, folder, monkeypatch)["then"] == REVIEW
    page = me.get(REVIEW).text
    assert "No attack does better than promised" in page
    assert "before the plan changed" not in page
    plan = Plan.load(folder / "plan.toml")
    sent = review_html(plan, examine(plan), PLAN, "plan.toml")
    assert "No attack does better than promised" in sent
    assert "table county x sex" in sent
    (folder / "plan.toml").write_text(PLAN.replace("1.0", "1.5"))
    assert "before the plan changed" in me.get(REVIEW).text
    assert not (folder / "ledger.sqlite").exists()  # nothing is spent


def test_a_broken_promise_is_said_first(folder: Path) -> None:
    plan = Plan.load(folder / "plan.toml")
    (told,) = attack_plan(plan, FEW)
    (folder / AUDITS).mkdir()
    place = folder / AUDITS / "audit-people.json"
    place.write_text(json.dumps(told | {"violated": True, "words": "<b>Broken</b>"}))
    page = entered(folder).get(REVIEW).text
    assert "Do not release." in page
    assert "&lt;b&gt;Broken" in page
    for wrong in ("", "[]", "{}", json.dumps(told | {"plan_digest": None}) + "x"):
        place.write_text(wrong)
        assert [one.words for one in audit_results(plan)] == ["not attacked yet"]


def test_who_has_no_word_on_a_plan_attacks_nothing(
    folder: Path, at_own_desk: AtOwnDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_ledger(folder, "ann", bob="reader", cyd="reviewer")
    bob, cyd = at_own_desk("bob"), at_own_desk("cyd")
    answer = bob.post("/plan/plan.toml/audit", digest(folder))
    assert (answer.status_code, "review or propose" in answer.text) == (403, True)
    assert "Try to break" not in bob.get(REVIEW).text
    stale = cyd.post("/plan/plan.toml/audit", {"digest": "another"})
    assert (stale.status_code, (folder / AUDITS).exists()) == (409, False)
    assert attack(cyd, folder, monkeypatch)["state"] == "done"


def test_a_kind_without_an_attack_says_so(folder: Path) -> None:
    text = PLAN.replace('table = ["county", "sex"]', 'tables = [["county", "sex"], ["sex"]]')
    (folder / "plan.toml").write_text(text)
    page = entered(folder).get(REVIEW).text
    assert "The automatic attack test does not cover this kind of release" in page
    assert "Try to break" not in page
