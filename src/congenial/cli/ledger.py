"""`congenial ledger`: what was published and spent on a population, and by whom."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from congenial.cli.output import Document, Json, emit, examples, facts, heading, paragraph, table

if TYPE_CHECKING:
    from congenial.privacy.history import Entry
    from congenial.privacy.ledger import Ledger

Where = Annotated[
    Path, typer.Argument(metavar="LEDGER|PLAN", help="A ledger file, or a plan that names one.")
]

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Show and manage the ledger: one per population, append-only.",
    epilog=examples("congenial ledger show plan.toml", "congenial ledger pending ledger.sqlite"),
)


def _open(where: Path) -> Ledger:
    from congenial.privacy.ledger import Ledger

    if where.suffix == ".toml":
        from congenial.release.plan import Plan

        where = Plan.load(where).ledger_path
    return Ledger.open(where, create=False)


@app.command(epilog=examples("congenial ledger show plan.toml"))
def show(where: Where, as_json: Json = False) -> None:
    """Show releases, published figures and what is spent of the budget."""
    ledger = _open(where)
    document = _summary(ledger) | {
        "published": [
            {"at": event.at, "who": event.who, "labels": _labels(event.payload)}
            for event in ledger.events()
            if event.kind == "mandates"
        ],
        "releases": [_entry(entry) for entry in ledger.entries()],
    }
    if as_json:
        emit(document)
        return
    facts({name.capitalize(): document[name] for name in ("ledger", "budget", "spent", "left")})
    if document["published"]:
        heading("Published exactly")
        rows = [
            (one["at"][:19], one["who"], "; ".join(one["labels"])) for one in document["published"]
        ]
        table(("when (UTC)", "who", "figures"), rows)
    heading("Releases")
    _show_entries(document["releases"])


@app.command(epilog=examples("congenial ledger pending ledger.sqlite"))
def pending(where: Where, as_json: Json = False) -> None:
    """List releases that were reserved or drawn and never finished, as after a crash."""
    entries = [_entry(entry) for entry in _open(where).pending()]
    if as_json:
        emit({"pending": entries})
        return
    _show_entries(entries)
    if entries:
        paragraph(
            "Reserved ones are refunded by `congenial ledger abandon`; drawn ones stay spent, "
            "since their noise may have been seen."
        )


@app.command(epilog=examples("congenial ledger abandon ledger.sqlite 0123456789ab"))
def abandon(
    where: Where,
    release: Annotated[str, typer.Argument(metavar="ID", help="The release's id.")],
    as_json: Json = False,
) -> None:
    """Give up a pending release: refunded if nothing was drawn, spent for good otherwise."""
    ledger = _open(where)
    ledger.abandon(release)
    entry = next(one for one in ledger.entries() if one.id == release)
    document = _summary(ledger) | {"release": _entry(entry)}
    if as_json:
        emit(document)
        return
    fate = "stays spent: its noise was drawn" if entry.counted else "is refunded"
    paragraph(f"Release '{entry.name}' ({release}) is {entry.status}; it {fate}.")
    facts({name.capitalize(): document[name] for name in ("budget", "spent", "left")})


@app.command(
    epilog=examples(
        "congenial ledger budget ledger.sqlite",
        "congenial ledger budget ledger.sqlite --epsilon 6",
        "congenial ledger budget ledger.sqlite --epsilon 4 --delta 1e-9",
    )
)
def budget(
    where: Where,
    epsilon: Annotated[str | None, typer.Option(help="Largest epsilon in all.")] = None,
    delta: Annotated[str | None, typer.Option(help="The delta that goes with epsilon.")] = None,
    rho: Annotated[str | None, typer.Option(help="Largest rho in all.")] = None,
    as_json: Json = False,
) -> None:
    """Show the budget, or set it. A change stays in the history; change the plan accordingly."""
    ledger = _open(where)
    if (epsilon, delta, rho) != (None, None, None):
        from congenial.privacy.budget import Budget

        ledger.set_budget(Budget(epsilon, delta, rho))
    document = _summary(ledger)
    if as_json:
        emit(document)
    else:
        facts({name.capitalize(): document[name] for name in ("budget", "spent", "left")})


@app.command(epilog=examples("congenial ledger export ledger.sqlite --format csv > ledger.csv"))
def export(
    where: Where,
    kind: Annotated[
        Literal["csv", "json"], typer.Option("--format", help="How to write the history.")
    ] = "json",
    as_json: Json = False,
) -> None:
    """Write the whole history, its chain of digests checked, to standard output."""
    events = [vars(event) for event in _open(where).events()]
    if as_json or kind == "json":
        for event in events:
            event |= {"payload": json.loads(event["text"])}
        emit({"events": events})
        return
    import csv
    import io

    out = io.StringIO()
    writer = csv.DictWriter(out, list(events[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(events)
    typer.echo(out.getvalue(), nl=False)


def _summary(ledger: Ledger) -> Document:
    limit, spent = ledger.budget, ledger.spent()
    return {
        "ledger": str(ledger.path),
        "budget": "not set" if limit is None else limit.words,
        "spent": ledger.spent_words(),
        "left": "not limited" if limit is None else limit.left(spent),
    }


def _entry(entry: Entry) -> Document:
    return {
        "id": entry.id,
        "name": entry.name,
        "at": entry.at,
        "who": entry.who,
        "status": entry.status,
        "counted": entry.counted,
        "table": list(entry.description.table),
        "bundle_digest": entry.bundle_digest,
        "plan_digest": entry.plan_digest,
    }


def _show_entries(entries: list[Document]) -> None:
    if not entries:
        paragraph("None.")
        return
    rows = [(one["id"], one["name"], one["at"][:19], one["who"], one["status"]) for one in entries]
    table(("id", "release", "when (UTC)", "who", "status"), rows)


def _labels(payload: Document) -> list[str]:
    return [str(statement["label"]) for statement in payload["statements"]]
