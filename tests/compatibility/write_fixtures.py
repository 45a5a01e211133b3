"""How the fixtures of this folder were made: by version 0.1.0, on made-up data.

Run it with that version, and no other, in the path:

    PYTHONPATH=congenial-0.1.0/src python tests/compatibility/write_fixtures.py FOLDER

Each fixture is NAME.zip with a plan, its data, the ledger and the bundles that 0.1.0 wrote, and
NAME.json with what 0.1.0 said about them: the lines of `verify`, promises, prices, digests, and
what it drew from the seed `SEED`. Pictures are left out, as where the extra `report` is not
installed. Running it again makes other fixtures: noise is drawn afresh.
"""

from __future__ import annotations

import csv
import json
import os
import random
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

sys.modules["altair"] = None  # type: ignore[assignment]
os.environ["LOGNAME"] = "curator"

from plans import AFTER, BEFORE, PLANS  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

import congenial  # noqa: E402
from congenial.cli import app  # noqa: E402

SEED = 41
Row = Sequence[object]


def run(*words: object) -> Any:
    """What a command prints."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exit_code:
        raise SystemExit(f"{' '.join(map(str, words))}\n{result.output}\n{result.exception!r}")
    return json.loads(result.stdout) if "--json" in words else result.stdout


# ---- made-up data --------------------------------------------------------------------------------


def _save(path: Path, header: Row, rows: Iterator[Row] | Sequence[Row]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def write_data(folder: Path) -> None:
    """A few people, patients and records; the same on every run."""
    made = random.Random(7)
    people = [
        (i, i // 3, made.choices("ABC", (5, 3, 2))[0], sex, age)
        for i in range(60)
        for sex, age in [(made.choice("fm"), made.randrange(64))]
    ]
    people += [(60 + i, 20 + i, made.choice("AB"), made.choice("fm"), 70) for i in range(6)]
    _save(folder / "people.csv", ("id", "household", "county", "sex", "age"), people)
    _save(folder / "earlier.csv", ("county", "count"), [("A", 31), ("B", 20), ("C", 0)])
    for name, first, many in (("patients", 0, 60), ("modelling", 1000, 400)):
        rows = [_patient(made, first + i) for i in range(many)]
        _save(folder / f"{name}.csv", ("patient", "ward", "age", "readmitted"), rows)
    records = [_record(made, i) for i in range(40)]
    header = ("id", "household", "region", "kids", "ill", "income", "rent")
    _save(folder / "records.csv", header, records)


def _patient(made: random.Random, number: int) -> Row:
    sick = made.random() < 0.3
    age = min(max(int(made.gauss(64 if sick else 52, 16)), 0), 109)
    again = made.random() < (0.4 if sick else 0.15)
    return number, "oncology" if sick else "other", age, "yes" if again else "no"


def _record(made: random.Random, number: int) -> Row:
    kids = "" if made.random() < 0.1 else min(int(made.expovariate(0.7)), 6)
    income = round(made.gammavariate(1.2, 150)) - 20
    region = made.choices(("north", "south", "west"), (5, 3, 2))[0]
    return number, number // 2, region, kids, made.randrange(3), income, made.randrange(5, 90)


# ---- what 0.1.0 makes of them, and says ----------------------------------------------------------


def _prepare(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True)
    write_data(folder)
    for path in folder.glob("*.csv"):
        if path.name not in text:
            path.unlink()
    plan = folder / "plan.toml"
    plan.write_text(text)
    return plan


def bundles_of(plan: Path) -> dict[str, Any]:
    """What each bundle beside a plan says, and what `verify` says of it."""
    return {
        bundle.name: {
            "verify": [[one.what, bool(one.holds)] for one in congenial.verify(bundle)],
            "digest": (bundle / "DIGEST.txt").read_text().strip(),
            "explain": run("explain", bundle, "--json")["promises"],
        }
        for bundle in sorted((plan.parent / "bundles").iterdir())
    }


def prices_of(plan: Path) -> dict[str, Any]:
    """What the ledger counts, and what its releases promise under the figures of the plan."""
    told = run("ledger", "export", plan, "--json")
    told.pop("ledger")
    loss = congenial.Ledger.open(plan.parent / "ledger.sqlite").spent()
    spent = {name: str(value) for name, value in vars(loss).items() if _is_number(value)}
    found = {"ledger": told, "loss": spent}
    try:
        return found | {"reassess": run("reassess", plan, "--json")}
    except SystemExit as refused:  # such as where persons have several rows
        return found | {"reassess_refused": str(refused).splitlines()[-1]}


def _is_number(value: object) -> bool:
    return isinstance(value, Fraction | int | float)


def digests_of(plan: Path) -> dict[str, str]:
    """Identities of what was planned and of what a record is."""
    read = congenial.Plan.load(plan)
    return {"plan": read.digest, "schema": read.schema.digest}


def draws_of(plan: Path, text: str) -> dict[str, dict[str, str]]:
    """What each release of a plan draws from a seed, as the text files of its bundle."""
    names = [section.name for section in congenial.Plan.load(plan).release]
    return {name: _drawn(_prepare(plan.parent / "seeded" / name, text), name) for name in names}


def _drawn(plan: Path, name: str) -> dict[str, str]:
    if congenial.Plan.load(plan).publish:
        run("publish", plan)
    run("release", plan, "--name", name, "--seed", SEED)
    files = sorted((plan.parent / "bundles" / name).glob("*.csv"))
    return {path.name: path.read_text() for path in files if path.name != "published.csv"}


def write_fixture(name: str, text: str, place: Path, out: Path) -> None:
    """Publish, release, verify, reassess, and draw from a seed."""
    plan = _prepare(place / name, text)
    if congenial.Plan.load(plan).publish:
        run("publish", plan)
    run("release", plan)
    told = {"digests": digests_of(plan), "check": run("check", plan, "--json")}
    told |= {"bundles": bundles_of(plan), **prices_of(plan), "draws": draws_of(plan, text)}
    shutil.rmtree(plan.parent / "seeded")
    save(plan, told, out / name)


def save(plan: Path, told: dict[str, Any], stem: Path) -> None:
    """The folder of a plan as NAME.zip, and what was said of it as NAME.json."""
    said = {"software": congenial.__version__, **told}
    stem.with_suffix(".json").write_text(json.dumps(said, indent=1, sort_keys=True) + "\n")
    with zipfile.ZipFile(
        stem.with_suffix(".zip"), "w", zipfile.ZIP_DEFLATED, compresslevel=9
    ) as out:
        for path in sorted(plan.parent.rglob("*")):
            if path.is_file():
                out.write(path, path.relative_to(plan.parent))


# ---- ledgers with a past -------------------------------------------------------------------------


def write_weakened(place: Path, out: Path) -> None:
    """A release, figures published after it that weaken it, another release."""
    plan = _prepare(place / "ledger-weakened", BEFORE)
    run("release", plan)
    plan.write_text(AFTER)
    run("publish", plan, "--accept-weaker")
    run("release", plan)
    told = {"digests": digests_of(plan), "bundles": bundles_of(plan), **prices_of(plan)}
    save(plan, told, out / "ledger-weakened")


def write_unfinished(place: Path, out: Path) -> None:
    """Releases reserved, drawn, refunded and abandoned; a budget and a role that changed."""
    plan = _prepare(place / "ledger-unfinished", AFTER)
    run("publish", plan)
    run("release", plan)
    ledger = congenial.Ledger.open(plan.parent / "ledger.sqlite")
    made = congenial.read(plan.parent / "bundles" / "late")
    for name, drawn, given_up in (
        ("reserved", False, False),
        ("drawn", True, False),
        ("cancelled", False, True),
        ("abandoned", True, True),
    ):
        reservation = ledger.reserve(made.description, made.guarantee, name, "no plan")
        if drawn:
            reservation.mark_drawn()
        if given_up:
            ledger.abandon(reservation.id)
    run("ledger", "budget", plan, "--epsilon", "50", "--delta", "1e-6")
    run("ledger", "grant", plan, "bob", "reader")
    plan.write_text(AFTER.replace("epsilon = 40", "epsilon = 50"))
    told = {"digests": digests_of(plan), "bundles": bundles_of(plan), **prices_of(plan)}
    told["pending"] = run("ledger", "pending", plan, "--json")["pending"]
    save(plan, told, out / "ledger-unfinished")


def main(out: Path, names: Sequence[str]) -> None:
    if congenial.__version__ != "0.1.0":
        raise SystemExit(f"these fixtures are 0.1.0's, and this is {congenial.__version__}")
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        for name in names or PLANS:
            print(name, flush=True)
            write_fixture(name, PLANS[name], Path(place), out)
        if not names:
            write_weakened(Path(place), out)
            write_unfinished(Path(place), out)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
