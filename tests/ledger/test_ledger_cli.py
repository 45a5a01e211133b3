"""`congenial ledger` on both databases: roles, upgrade, export, and passwords that stay unseen."""

from __future__ import annotations

import csv
import getpass
import io
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from congenial.cli import app
from congenial.ledger.budget import Budget
from congenial.ledger.ledger import Ledger
from congenial.ledger.stores.store import Event
from congenial.privacy.descriptions import TablesDescription
from congenial.publication.plan import Plan
from tests.desk.desks import PLAN, entered, write_folder
from tests.docs.pages import DOCS, blocks
from tests.ledger.conftest import Postgres
from tests.ledger.ledgers import COUNTIES, SCHEMA, described, promise


def run(*words: str, code: int = 0) -> Any:
    result = CliRunner().invoke(app, ["ledger", *words])
    assert result.exit_code == code, result.stderr
    return result


@pytest.fixture
def ledger(place: str) -> Ledger:
    """A ledger with a publication and a release from a plan."""
    ledger = Ledger.open(place, SCHEMA, budget=Budget(epsilon=9))
    ledger.publish(COUNTIES, plan_digest="plan-1")
    with ledger.reserve(described(), promise(ledger), "sex", plan_digest="plan-2") as reservation:
        reservation.mark_drawn()
        reservation.commit("bundle-1")
    return ledger


def test_show_and_budget_take_a_url(place: str, ledger: Ledger) -> None:
    shown = json.loads(run("show", place, "--json").stdout)
    assert shown["ledger"] == ledger.where
    assert [one["plan_digest"] for one in shown["releases"]] == ["plan-2"]
    assert "epsilon = 9" in run("budget", place).stdout
    law = described()
    ledger.reserve(TablesDescription((law,), (law.table,)), promise(ledger), "again")
    shown = json.loads(run("show", place, "--json").stdout)
    assert [one["table"] for one in shown["releases"]] == [list(law.table)] * 2


def test_the_unit_is_shown_and_changed(place: str, ledger: Ledger) -> None:
    assert "replace-one" in run("unit", place).stdout
    refused = run("unit", place, "several rows", "--max-rows", "2", code=4)
    assert "weakens what earlier releases promise" in refused.stderr
    asked = ("several rows", "--max-rows", "2", "--accept-weaker", "--json")
    changed = json.loads(run("unit", place, *asked).stdout)
    assert changed["unit"] == "several rows with max_rows = 2"
    assert changed["spent"] == ledger.spent_words() != "epsilon = 1"
    more = json.loads(run("unit", place, "--max-rows", "3", "--accept-weaker", "--json").stdout)
    assert more["unit"] == "several rows with max_rows = 3"


def test_export_as_csv_names_who_when_and_plan(place: str, ledger: Ledger) -> None:
    text = run("export", place, "--to", "csv").stdout
    assert text == run("export", place, "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["kind"], row["plan_digest"], row["bundle_digest"]) for row in rows] == [
        ("open", "", ""),
        ("budget", "", ""),
        ("mandates", "plan-1", ""),
        ("reserve", "plan-2", ""),
        ("draw", "", ""),
        ("commit", "", "bundle-1"),
    ]
    assert all(row["who"] and row["at"].endswith("+00:00") for row in rows)
    # Enough to check the chain of digests again, without this software's database.
    for row in rows:
        event = Event(
            int(row["id"]),
            row["at"],
            row["who"],
            row["kind"],
            row["release"] or None,
            row["text"],
            row["previous"],
            row["digest"],
        )
        assert event.expected_digest == event.digest


def test_export_as_json_holds_events_and_what_they_add_up_to(place: str, ledger: Ledger) -> None:
    document = json.loads(run("export", place).stdout)
    assert document == json.loads(run("export", place, "--json").stdout)
    assert [event["digest"] for event in document["events"]] == [
        event.digest for event in ledger.events()
    ]
    assert document["events"][3]["payload"]["name"] == "sex"
    assert document["releases"][0]["status"] == "committed"
    assert (document["spent"], document["roles"]) == (ledger.spent_words(), {})


def test_grant_shows_in_show_and_refuses_unknown_words(place: str, ledger: Ledger) -> None:
    me = "postgres" if place.startswith("postgresql") else getpass.getuser()
    other = "locked" if place.startswith("postgresql") else "bob"
    assert json.loads(run("grant", place, other, "reader", "--json").stdout)["roles"] == {
        me: "owner",
        other: "reader",
    }
    assert "reader" in run("show", place).stdout
    run("grant", place, other, "king", code=2)
    assert "only owner" in run("grant", place, me, "none", code=4).stderr


def test_a_password_is_not_repeated() -> None:
    for url in ("postgresql://u:hush@127.0.0.1:1/base", "postgresql://u:x@hush@h/base"):
        for command in (("show", url), ("export", url), ("grant", url, "bob", "reader")):
            result = run(*command, code=4)
            assert "hush" not in result.stdout + result.stderr


def test_the_page_about_a_team_can_be_followed(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every block of it as written, on a server that is reached by its socket; then Ben and Cyd
    review a changed plan at desks of their own.
    """
    monkeypatch.chdir(tmp_path)
    write_folder(tmp_path)
    plan = PLAN.partition("[budget]")[0]
    where = rf"postgresql:///privacy?host={postgres.folder}"
    for block in blocks(DOCS / "how-to" / "team-ledger.md"):
        text = block.text.replace("postgresql://db.example/privacy", where)
        if block.language == "sql":
            postgres.run(*filter(str.strip, text.split(";")))
        elif block.language == "toml":
            (tmp_path / "plan.toml").write_text(plan + text)
        elif "repair" not in text:
            for line in text.splitlines():
                who, program, *words = shlex.split(line)
                assert program == "congenial"
                monkeypatch.setenv(*who.split("="))
                done = CliRunner().invoke(app, words)
                assert done.exit_code == 0, (line, done.stderr)
    events = [(one.kind, one.who) for one in Ledger.open(where).events()]
    assert ("propose", "ben") in events
    assert ("approve", "cyd") in events
    assert ("mandates", "ada") in events
    assert events[-1] == ("commit", "ben")
    (tmp_path / "plan.toml").write_text((tmp_path / "plan.toml").read_text().replace("1.0", "0.5"))
    digest = {"digest": Plan.load(tmp_path / "plan.toml").digest}
    for who, deed in (("ben", "propose"), ("cyd", "approve")):
        monkeypatch.setenv("PGUSER", who)
        assert entered(tmp_path).post(f"/plan/plan.toml/{deed}", digest).status_code == 303
    assert [(one.kind, one.who) for one in Ledger.open(where).events()[-2:]] == [
        ("propose", "ben"),
        ("approve", "cyd"),
    ]
