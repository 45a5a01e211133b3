"""`congenial audit`: attack a plan's releases before anybody else does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from congenial.audit.property_inference import draw_shadows, property_inference
from congenial.cli.command_options import Json, with_examples
from congenial.cli.output import Document, answer, emit, say, working
from congenial.data.advance import one_by_one
from congenial.errors import PlanError
from congenial.kinds.statistics import KIND, Asked, modelling_records
from congenial.mechanisms.distribution.assumptions import histograms
from congenial.mechanisms.distribution.fit import numpy_generator
from congenial.papers import catalogue
from congenial.privacy.numbers import percent
from congenial.publication import table_audit
from congenial.publication.bundle import private_file, private_folder
from congenial.publication.plan import Plan
from congenial.publication.plan_ledger import exact_figures, open_ledger
from congenial.sampling.randomness import SeededRandomness, SystemRandomness

if TYPE_CHECKING:
    from congenial.kinds.statistics import StatisticsCheck
    from congenial.sampling.randomness import Randomness

FOR_CURATOR = "CONFIDENTIAL: computed from the modelling data, for the curator only."
_ENDS = ("value", "low", "high")
BROKEN = 1  # the attack does better than the promise allows


@with_examples(
    "congenial audit plan.toml",
    "congenial audit bundles/sex-by-age --draws 4000000 --out audit",
    "congenial audit --property plan.toml",
)
def audit(
    source: Annotated[Path, typer.Argument(help="The plan file, or a bundle's folder.")],
    whole: Annotated[
        bool,
        typer.Option(
            "--property", help="Attack statistics that hide a property of the whole dataset."
        ),
    ] = False,
    draws: Annotated[int, typer.Option(min=400, help="Draws for each pair.")] = 1_000_000,
    pairs: Annotated[int, typer.Option(min=1, max=100, help="Pairs of datasets to try.")] = 6,
    delta: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Bound epsilon at this delta [default: the promised one]."),
    ] = None,
    name: Annotated[list[str] | None, typer.Option(help="Only this release.")] = None,
    repetitions: Annotated[
        int,
        typer.Option(min=1, help="With --property: how often the attack is trained and tested."),
    ] = 50,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write tables and pictures to this folder; those of --property are CONFIDENTIAL."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed, to repeat the same attack.")] = None,
    as_json: Json = False,
) -> None:
    """Attack a release and see whether the promise holds.

    Draws tables for made-up datasets that agree with every published figure. Reads no data, except
    modelling data with --property; spends nothing. Exit code 1 if an attack does better than the
    promise allows.
    """
    if whole:
        with working("attacking"):
            document = attack(Plan.load(source), repetitions, out, seed)
        emit(document) if as_json else _show_property(document)
        attacks = document["attacks"]
    else:
        with working("choosing pairs of datasets to attack") as progress:
            effort = table_audit.AuditEffort(draws, pairs, delta, seed)
            names = tuple(name or ())
            if source.is_dir():
                attacks = table_audit.attack_bundle(source, effort, names, progress)
            else:
                attacks = table_audit.attack_plan(Plan.load(source), effort, names, progress)
        document = {"audits": attacks}
        if out is not None:
            written = [
                path
                for each_attack in attacks
                for path in table_audit.write_with_picture(each_attack, out)
            ]
            document["files"] = [str(path) for path in written]
        answer("audit.txt", as_json, audit=document)
    if any(result["violated"] for result in attacks):
        raise typer.Exit(BROKEN)


def attack(plan: Plan, repetitions: int, out: Path | None, seed: int | None) -> Document:
    """Property inference on every pair of scenarios, as plain data."""
    sections = plan.of("statistics")
    if not sections:
        raise PlanError(
            "the plan releases no statistics that hide a property.",
            remedy="Add a [[release]] with `statistics` and `protect`, or leave out --property.",
        )
    section = sections[0]
    check = KIND.check(plan, section, exact_figures(plan, open_ledger(plan, create=False)))
    randomness = SystemRandomness() if seed is None else SeededRandomness(seed)
    attacks = _attacks(plan, check, repetitions, randomness)
    document: Document = {
        "name": section.name,
        "mechanism": check.mechanism.name,
        "repetitions": repetitions,
        "diagnosis": check.diagnosis.words,
        "attacks": attacks,
    }
    if out is not None:
        document["files"] = _write(check, attacks, out, seed)
    return document


def _attacks(
    plan: Plan, found: StatisticsCheck, repetitions: int, randomness: Randomness
) -> list[Document]:
    """Half of the modelling records train the attack, the other half test it."""
    section = found.section
    asked = Asked.read(plan, section)
    records = modelling_records(plan, section, asked)
    assert asked.hide is not None  # or there were no modelling records
    order = numpy_generator(randomness).permutation(len(records))
    auxiliary, testing = records.split([len(records) // 2], order)
    attacks = []
    for pair in one_by_one(asked.hide.pairs, "attacking pairs of scenarios"):
        shadows = draw_shadows(
            pair,
            auxiliary,
            testing,
            records=section.records,
            repetitions=repetitions,
            randomness=randomness,
        )
        result = property_inference(found.mechanism, shadows, randomness)
        attacks.append(
            {
                "scenarios": [side.words for side in pair],
                "before": vars(result.before),
                "after": vars(result.after),
                "allowed": result.allowed,
                "violated": result.violated,
                "words": result.words,
            }
        )
    return attacks


def _write(
    found: StatisticsCheck, attacks: list[Document], out: Path, seed: int | None
) -> list[str]:
    """CONFIDENTIAL: the attack and the assumptions, as JSON, CSV and pictures."""
    private_folder(out)
    name = found.section.name
    rows: list[list[Any]] = [
        [
            " against ".join(attack_result["scenarios"]),
            when,
            *(attack_result[key][end] for end in _ENDS),
        ]
        for attack_result in attacks
        for when, key in (("without noise", "before"), ("as released", "after"))
    ]
    allowed = max(attack_result["allowed"] for attack_result in attacks)
    inference = {
        "title": f"Property inference against '{name}'",
        "source": FOR_CURATOR,
        "item": "attack",
        "columns": ["pair", "statistics", "accuracy", "95 % from", "95 % to"],
        "rows": rows,
        "chart": {
            "kind": "points",
            "x": "statistics",
            "y": "accuracy",
            "y_title": "correct guesses, with 95 % intervals",
            "low": "95 % from",
            "high": "95 % to",
            "rule": {"the most the promise allows": allowed},
            "facet": "pair" if len(attacks) > 1 else "",
        },
    }
    assumed = {
        "title": f"Distributions assumed by '{name}'",
        "source": f"{FOR_CURATOR} Bars: sampled statistics; lines: the fitted distributions.",
        "item": "assumptions",
        **histograms(found.fit),
        "chart": {
            "kind": "histogram",
            "x": "from",
            "x2": "to",
            "y": "sampled density",
            "line": "Gaussian density",
            "by": "scenario",
            "facet": "statistic",
            "x_free": True,
            "y_free": True,
        },
    }
    shared = {"paper": name, "seed": seed}
    written = [
        path for result in (inference, assumed) for path in catalogue.write(result | shared, out)
    ]
    return [str(private_file(path)) for path in written]


def _show_property(document: Document) -> None:
    say(
        "audit_property.txt",
        **{"files": []} | document,
        violated=any(attack["violated"] for attack in document["attacks"]),
        accuracy=_accuracy,
        percent=percent,
    )


def _accuracy(share: Document) -> str:
    return f"{share['value']:.1%} ({share['low']:.1%} to {share['high']:.1%})"
