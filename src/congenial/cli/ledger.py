"""`congenial ledger`: what was published and spent on a population, and by whom."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from congenial.cli.command_options import Json, examples
from congenial.cli.output import answer, emit
from congenial.data.text_files import rows_csv
from congenial.ledger import ledger_document as documents
from congenial.ledger.budget import Budget
from congenial.ledger.ledger import Ledger
from congenial.publication.drawing import finish as finish_all
from congenial.publication.plan import Plan
from congenial.publication.plan_ledger import opened_or_made

Where = Annotated[
    str,
    typer.Argument(
        metavar="LEDGER|PLAN",
        help="A ledger's file or postgresql:// URL, or a plan that names one.",
    ),
]

app = typer.Typer(
    name="ledger",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=examples("congenial ledger show plan.toml", "congenial ledger pending ledger.sqlite"),
)


@app.callback()
def ledger() -> None:
    """Show and manage the ledger: one per population, append-only."""


def _place(where: str) -> str:
    if not where.endswith(".toml"):
        return where

    return Plan.load(where).ledger


def _open(where: str) -> Ledger:
    return Ledger.open(_place(where), create=False)


def _open_or_start(where: str) -> Ledger:
    """The ledger; that of a plan is started where it is absent."""
    if not where.endswith(".toml") or Ledger.exists(_place(where)):
        return _open(where)

    return opened_or_made(Plan.load(where))


@app.command(epilog=examples("congenial ledger show plan.toml"))
def show(where: Where, as_json: Json = False) -> None:
    """Show releases, published figures and what is spent of the budget."""
    answer("ledger.txt", as_json, ledger=documents.ledger_document(_open(where)))


@app.command(epilog=examples("congenial ledger pending ledger.sqlite"))
def pending(where: Where, as_json: Json = False) -> None:
    """List releases that were reserved or drawn and never finished, as after a crash."""
    answer("ledger.txt", as_json, ledger={"pending": documents.pending(_open(where))})


@app.command(
    epilog=examples(
        "congenial ledger finish plan.toml",
        "congenial ledger finish ledger.sqlite --out to-publish",
    )
)
def finish(
    where: Where,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the bundles [default: bundles, beside the plan or ledger]."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write and record the bundles of what was drawn and never finished. Spends nothing."""
    ledger = _open(where)
    folder = Path(where if "://" not in where else ".").parent / "bundles" if out is None else out
    finished = [
        {"name": release.name, "folder": str(release.folder), "digest": release.digest}
        for release in finish_all(ledger, folder)
    ]
    document = {
        "finished": finished,
        "folder": str(folder),
        "pending": documents.pending(ledger),
    }
    answer("ledger.txt", as_json, ledger=document)


@app.command(epilog=examples("congenial ledger abandon ledger.sqlite 0123456789ab"))
def abandon(
    where: Where,
    release: Annotated[str, typer.Argument(metavar="ID", help="The release's id.")],
    as_json: Json = False,
) -> None:
    """Give up a pending release: refunded if nothing was drawn, spent for good otherwise."""
    ledger = _open(where)
    ledger.abandon(release)
    entry = ledger.find(release)
    assert entry is not None  # it was abandoned just now
    document = documents.summary(ledger) | {"abandoned": documents.entry_document(entry)}
    answer("ledger.txt", as_json, ledger=document)


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
        ledger.set_budget(Budget(epsilon, delta, rho))
    answer("ledger.txt", as_json, ledger=documents.summary(ledger))


@app.command(
    epilog=examples(
        "congenial ledger unit ledger.sqlite",
        "congenial ledger unit ledger.sqlite --max-rows 6",
        "congenial ledger unit ledger.sqlite 'several rows' --max-rows 6 --accept-weaker",
    )
)
def unit(
    where: Where,
    kind: Annotated[
        Literal["add-remove", "several rows"] | None,
        typer.Argument(metavar="KIND", help="add-remove or 'several rows'; as it is if left out."),
    ] = None,
    max_rows: Annotated[int | None, typer.Option(help="The most rows of one unit.")] = None,
    accept_weaker: Annotated[
        bool, typer.Option("--accept-weaker", help="Change it even if earlier promises weaken.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show whose content is protected, or change it to more rows; change the plan accordingly.

    'several rows' keeps exact figures, add-remove does not. Everything that is spent is priced
    again for the new unit, over all datasets that look alike; a unit is never made smaller.
    """
    ledger = _open(where)
    if (kind, max_rows) != (None, None):
        asked, now = kind or ledger.unit.kind, ledger.unit.max_rows
        ledger.change_unit(asked, max_rows or now or 1, accept_weaker=accept_weaker)
    document = documents.summary(ledger) | {"unit": ledger.unit.words}
    answer("ledger.txt", as_json, ledger=document)


@app.command(
    epilog=examples(
        "congenial ledger grant postgresql://ann@host/ledger bob releaser",
        "congenial ledger grant ledger.sqlite bob none",
    )
)
def grant(
    where: Where,
    who: Annotated[str, typer.Argument(metavar="WHO", help="A user of the database or system.")],
    role: Annotated[
        Literal["none", "reader", "reviewer", "releaser", "publisher", "owner"],
        typer.Argument(metavar="ROLE", help="none, reader, reviewer, releaser, publisher, owner."),
    ],
    as_json: Json = False,
) -> None:
    """Give somebody a role; whoever gives the first one becomes an owner by it.

    A reader reads, a reviewer also approves plans, a releaser reads and releases, a publisher also
    publishes exact figures, an owner also sets the budget and grants roles. PostgreSQL enforces
    this by its users. In a SQLite file it guards against accidents only: whoever can write the file
    can change it.
    """
    ledger = _open(where)
    ledger.grant(who, role)
    answer("ledger.txt", as_json, ledger={"ledger": ledger.where, "roles": ledger.roles})


@app.command(
    epilog=examples(
        "congenial ledger require plan.toml",
        "congenial ledger require ledger.sqlite --no-approval",
    )
)
def require(
    where: Where,
    no_approval: Annotated[
        bool, typer.Option("--no-approval", help="Plans no longer need an approval.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Have only approved plans published and released, or no longer; owners only.

    A plan is proposed by whoever wrote it (`congenial propose`) and approved by somebody else
    (`congenial approve`). PostgreSQL enforces this. In a SQLite file it guards against accidents
    only. A ledger that a plan names and that is not there yet is started.
    """
    ledger = _open_or_start(where)
    ledger.require_approval(not no_approval)
    document = {"ledger": ledger.where, "approval_required": ledger.approvals.required}
    answer("ledger.txt", as_json, ledger=document)


@app.command(
    epilog=examples(
        "congenial ledger repair ledger.sqlite",
        'congenial ledger repair ledger.sqlite 7 0123456789ab --because "written by hand"',
    )
)
def repair(
    where: Where,
    event: Annotated[
        int | None, typer.Argument(metavar="EVENT", help="The event's number; none lists them.")
    ] = None,
    digest: Annotated[
        str, typer.Argument(metavar="DIGEST", help="Its digest, or 12 digits of it or more.")
    ] = "",
    because: Annotated[str, typer.Option(help="Why it is voided; stays in the history.")] = "",
    nothing_drawn: Annotated[
        bool,
        typer.Option(
            "--nothing-drawn", help="An owner's word that nothing was drawn or published by it."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """List events that cannot be read, or void one; owners only.

    The event stays in the history. It counts as nothing if nothing can have been drawn or published
    by it. Otherwise what it spent is unknown, and the budget allows nothing more until an owner
    says with --nothing-drawn that nothing was.
    """
    ledger = _open(where)
    if event is not None:
        ledger.repair(event, digest, because, nothing_drawn=nothing_drawn)
    unreadable = [documents.malformed_document(event) for event in ledger.malformed()]
    document = documents.summary(ledger) | {"unreadable": unreadable}
    answer("ledger.txt", as_json, ledger=document)


@app.command(epilog=examples("congenial ledger export ledger.sqlite --to csv > ledger.csv"))
def export(
    where: Where,
    kind: Annotated[
        Literal["csv", "json"],
        typer.Option("--to", "--format", help="How to write the history."),
    ] = "json",
    as_json: Json = False,
) -> None:
    """Write the whole history, its chain of digests checked, to standard output.

    CSV has one line per event: who, when, what, and the plan's digest. JSON has the same events,
    and what they add up to: budget, spent, releases, roles.
    """
    ledger = _open(where)
    events = [documents.event_document(event) for event in ledger.events()]
    if as_json or kind == "json":
        releases = [documents.entry_document(entry) for entry in ledger.entries()]
        emit(
            documents.summary(ledger)
            | {"releases": releases, "roles": ledger.roles, "events": events}
        )
        return

    columns = [name for name in events[0] if name != "payload"]
    rows = [[event[name] for name in columns] for event in events]
    typer.echo(rows_csv([columns, *rows]), nl=False)
