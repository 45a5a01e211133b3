"""`congenial demo`: the whole way, from a generated population to a verified bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from congenial.cli import publish, release
from congenial.cli.command_options import Json, with_examples
from congenial.cli.output import Document, emit, heading, paragraph, show, working
from congenial.cli.verify import FAILED
from congenial.errors import PlanError
from congenial.publication.check_document import examine, words
from congenial.publication.demo_population import write_demo, write_nation
from congenial.publication.plan import Plan
from congenial.publication.published_document import published_words
from congenial.publication.verification import verification_document

FIRST_SEED = 20200401


Engine = Literal["duckdb", "spark"]  # where records are counted


@with_examples(
    "congenial demo",
    "congenial demo --out trial --seed-data 7",
    "congenial demo --areas 10000 --out nation",
    "congenial demo --areas 10000 --engine spark --out nation",
)
def demo(
    out: Annotated[Path, typer.Option(help="The folder to create; never overwritten.")] = Path(
        "demo"
    ),
    seed_data: Annotated[
        int, typer.Option(min=0, help="Seed of the generated people, not of the noise.")
    ] = FIRST_SEED,
    areas: Annotated[
        int | None,
        typer.Option(
            min=100,
            max=10_000_000,
            help="Generate a nation with this many areas, released by parts.",
        ),
    ] = None,
    engine: Annotated[
        Engine, typer.Option(help="Where the records of a nation are counted and drawn.")
    ] = "duckdb",
    as_json: Json = False,
) -> None:
    """Try everything on 300,000 generated people.

    Writes a population and a plan, then runs check, publish, release and verify on them.
    """
    with working("generating a population"):
        plan = Plan.load(_written(out, seed_data, areas, engine))
    document: Document = {"folder": str(out), "check": examine(plan)}
    if not as_json:
        paragraph(f"Generated a population and a plan in '{out}'.")
        _title(f"congenial check {out}/plan.toml")
        show(words(document["check"]))
    with working("computing the exact figures"):
        document["publish"] = publish.carry_out(plan)
    if not as_json:
        _title(f"congenial publish {out}/plan.toml")
        show(published_words(document["publish"], plan.schema))
        if areas is None:
            _title(f"congenial check {out}/plan.toml")
            show(words(examine(plan)))
        _title(f"congenial release {out}/plan.toml")
    document["releases"] = [release.carry_out(plan, section.name) for section in plan.release]
    document["verify"] = [
        verification_document(Path(made_release["folder"])) for made_release in document["releases"]
    ]
    if as_json:
        emit(document)
    else:
        _finish(document)
    if not all(check_result["holds"] for check_result in document["verify"]):
        raise typer.Exit(FAILED)


def _written(out: Path, seed: int, areas: int | None, engine: Engine) -> Path:
    """The plan of a new population."""
    if areas is None:
        if engine != "duckdb":
            raise PlanError(
                f"--engine {engine} needs --areas.", remedy="Add, for example, --areas 10000."
            )

        return write_demo(out, seed)

    return write_nation(out, areas, seed, engine == "spark")


def _title(command: str) -> None:
    heading(f"$ {command}")


def _finish(document: Document) -> None:
    for each_release, checks in zip(document["releases"], document["verify"], strict=True):
        holding = sum(check["holds"] for check in checks["checks"])
        release.show(each_release, f"{holding} of {len(checks['checks'])} checks passed")
