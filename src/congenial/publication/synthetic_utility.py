"""For the curator only: the analyses of a plan's synthetic records, in a private folder.

What they compute is in `synthesis.utility_documents`. Here a plan says which release, which data
and which bundle, and results and pictures go to a folder that only its owner may enter.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from congenial.data.schema import Schema
from congenial.data.tabulate import Microdata
from congenial.errors import BundleError, PlanError
from congenial.kinds.registry import of_section
from congenial.publication import workflow
from congenial.publication.bundle import private_file, private_folder, read
from congenial.publication.plan import Plan
from congenial.report import utility_page
from congenial.synthesis import utility_documents
from congenial.synthesis.certified import Synthesizer, SyntheticRelease
from congenial.synthesis.from_tables.records_from_tables_release import TableRecordsRelease
from congenial.synthesis.risk_utility import Measure
from congenial.synthesis.utility_documents import Document, Regression

REPLICATES = 5  # draws of every way that released records from tables stand beside


def synthetic_section(plan: Plan, name: str | None) -> Any:
    """The release of synthetic records that is meant: from models (`model`) or from tables
    (`synthesise`); the only one where none is named.
    """
    sections = [*plan.of("model"), *plan.of("synthesise")]
    if name is not None:
        meant = plan.named(name)
        if meant not in sections:
            raise PlanError(
                f"release '{name}' has no synthetic records.",
                remedy="Name one with `model` or `synthesise`.",
            )
        return meant
    if not sections:
        raise PlanError(
            "the plan releases no synthetic records.",
            remedy="Add a [[release]] with `model` or with `synthesise`.",
        )
    if len(sections) > 1:
        names = ", ".join(section.name for section in sections)
        raise PlanError(
            "the plan has several releases of synthetic records.",
            remedy=f"Name one with --name. It has: {names}.",
        )
    return sections[0]


def from_models(section: Any) -> bool:
    """Whether the records of a section are from models, not from tables."""
    return of_section(section).key == "model"


def curve_of_models(
    plan: Plan,
    section: Any,
    measures: Sequence[Measure],
    bounds: Sequence[Fraction],
    local: Sequence[tuple[float, float]],
    replicates: int,
    folder: Path,
) -> Document:
    """CONFIDENTIAL: errors against epsilon, with a picture."""
    synthesizer = _built(plan, section)
    private_folder(folder)
    with _records(plan) as data:
        document = utility_documents.curve_of_models(
            synthesizer, data, measures, bounds, local, replicates, folder
        )
    return _with_picture({"release": section.name} | document, folder, "curve.png")


def curve_of_tables(
    plan: Plan,
    section: Any,
    times: Sequence[Fraction],
    replicates: int,
    folder: Path,
    copies: Sequence[Any] = (),
) -> Document:
    """CONFIDENTIAL: errors of every way to make records at every promise, with a picture."""
    synthesizer = _built(plan, section)
    private_folder(folder)
    with _records(plan) as fine, _records(plan, synthesizer.schema) as data:
        document = utility_documents.curve_of_tables(
            synthesizer, fine, data, times, replicates, copies
        )
    named = {"release": section.name} | document | {"folder": str(folder)}
    return _with_picture(named, folder, "compared.png")


def utility(
    plan: Plan, section: Any, bundle: Path, folder: Path, regression: Regression | None = None
) -> Document:
    """CONFIDENTIAL: released records against the data, with a page or a picture."""
    release = read(bundle)
    if not isinstance(release, SyntheticRelease if from_models(section) else TableRecordsRelease):
        raise PlanError(
            f"'{bundle}' is not a bundle of '{section.name}': it has other content.",
            remedy="Name another bundle.",
        )
    if isinstance(release, TableRecordsRelease):
        return curve_of_tables(plan, section, [Fraction(1)], REPLICATES, folder, release.copies)
    document = utility_of_bundle(plan, release, regression)
    document["files"] = [str(path) for path in write(document, folder)]
    return document


def utility_of_bundle(
    plan: Plan, release: SyntheticRelease, regression: Regression | None = None
) -> Document:
    """CONFIDENTIAL: released copies against the plan's data, and the weight of every record."""
    if plan.schema.digest != release.schema.digest:
        raise PlanError(
            f"the bundle '{release.name}' has a schema that differs from the plan's.",
            remedy="Give the plan from which it was released.",
        )
    pairs: Any = release.guarantee.adjacency
    synthesizer = Synthesizer.from_dict(pairs, release.description.law)
    with _records(plan) as data:
        document = utility_documents.utility_of_copies(
            synthesizer, data, release.copies, regression
        )
    return {"release": release.name} | document


def _built(plan: Plan, section: Any) -> Any:
    """What would draw the records of a section."""
    return of_section(section).build(plan, section, workflow.published_so_far(plan))


def _records(plan: Plan, schema: Schema | None = None) -> Microdata:
    """The plan's records, by its own schema or by another one."""
    return Microdata.open(plan.source, schema or plan.schema, plan.unit)


def _with_picture(document: Document, folder: Path, name: str) -> Document:
    """With the address of a picture of the errors; None without the extra `report`."""
    picture = utility_page.errors_chart(document)
    if picture is not None:
        picture.save(str(private_file(folder / name)), format="png", scale_factor=2)
    return document | {"picture": None if picture is None else str(folder / name)}


def write(document: Document, folder: Path) -> list[Path]:
    """Write page and numbers to a private folder (only its owner may enter), never in a bundle."""
    content = {
        "utility.json": json.dumps(document, indent=1),
        "utility.html": utility_page.render(document),
    }
    private_folder(folder)
    paths = [folder / name for name in content]
    try:
        for path, text in zip(paths, content.values(), strict=True):
            private_file(path).write_text(text, encoding="utf-8")
    except OSError as reason:
        raise BundleError(f"'{folder}' cannot be written: {reason.strerror}.") from None
    return paths
