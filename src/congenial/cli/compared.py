"""Records from tables beside other ways to make records: what `curve` and `utility` show."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from congenial.cli.output import Document, emit, heading, line, paragraph, table, warn, working
from congenial.errors import PlanError

if TYPE_CHECKING:
    from congenial.kinds.records_from_tables import TableRecordsSection
    from congenial.publication.plan import Plan

NOTES = (
    "CONFIDENTIAL: these errors are measured against the confidential records. They stay with the "
    "curator: no bundle holds them, and they must not be published.",
    "Choosing a promise, columns or a way to make records by looking at them is NOT covered by the "
    "promise of a release.",
)
REPLICATES = 5  # draws of every way that released records stand beside
WORDS = {"columns": "mean over columns", "pairs": "mean over pairs of columns"}


def tables_section(plan: Plan, name: str | None) -> TableRecordsSection | None:
    """The release of records from tables that is meant; None where it is another, or one of models
    is there to be meant.
    """
    found: list[TableRecordsSection] = plan.of("synthesise")
    if name is not None:
        meant = plan.named(name)
        return next((section for section in found if section is meant), None)
    return found[0] if len(found) == 1 and not plan.of("model") else None


def positive_numbers(option: str, text: str) -> list[Fraction]:
    """The list of positive numbers that an option gives."""
    from congenial.data.rational import fraction

    try:
        found = [fraction(one.strip()) for one in text.split(",") if one.strip()]
    except (ValueError, ZeroDivisionError):
        found = []
    if not found or min(found) <= 0:
        raise PlanError(f"{option} {text!r} is no list of positive numbers.", remedy="As in 0.5,1.")
    return found


def examine(
    plan: Plan,
    section: TableRecordsSection,
    times: list[Fraction],
    replicates: int,
    folder: Path,
    released: Any = None,
) -> Document:
    """CONFIDENTIAL: errors of every way at every promise, as plain data; with a picture."""
    from congenial.data.tabulate import Microdata
    from congenial.kinds.records_from_tables import KIND
    from congenial.publication import workflow
    from congenial.publication.private import private_folder
    from congenial.sampling.randomness import SystemRandomness
    from congenial.synthesis.from_tables.compared_records import ComparedRecords

    made = KIND.build(plan, section, workflow.published_so_far(plan))
    private_folder(folder)
    with (
        Microdata.open(plan.source, plan.schema, plan.unit) as fine,
        Microdata.open(plan.source, made.schema, plan.unit) as data,
    ):
        against = ComparedRecords(made, made.fetch(fine), data)
        rows = [] if released is None else list(against.released(released.copies))
        rows += against.rows(times, replicates, SystemRandomness())
    document: Document = {
        "release": section.name,
        "promise": made.guarantee.tradeoff.words,
        "notes": list(NOTES),
        "replicates": replicates,
        "folder": str(folder),
        "rows": rows,
    }
    document["picture"] = _picture(document, folder)
    return document


def beside_released(
    plan: Plan,
    section: TableRecordsSection,
    bundle: Path | None,
    out: Path | None,
    *,
    as_json: bool,
) -> None:
    """Show released records from tables beside other ways to make records at the same promise."""
    from congenial.publication.bundle import read
    from congenial.synthesis.from_tables.records_from_tables_release import TableRecordsRelease

    where = plan.folder / "bundles" / section.name if bundle is None else bundle
    release = read(where)
    if not isinstance(release, TableRecordsRelease):
        raise PlanError(f"'{where}' holds no records from tables.", remedy="Name another bundle.")
    folder = plan.folder / "utility" / section.name if out is None else out
    for note in NOTES if as_json else ():
        warn(note)
    with working("comparing"):
        document = examine(plan, section, [Fraction(1)], REPLICATES, folder, release)
    emit(document) if as_json else show(document)


def _picture(document: Document, folder: Path) -> str | None:
    """Error against the promise, a line for each way; None without the extra `report`."""
    from congenial.publication.private import private_file
    from congenial.report import pictures
    from congenial.report.charts import chart

    if not pictures.available():
        return None
    columns = ["measure", "made by", "times the promise", "total variation", "low", "high"]
    rows = [
        [
            WORDS[row["measure"]],
            row["mechanism"],
            row["times"],
            row["mean_error"],
            max(0.0, row["mean_error"] - 2 * (row["mean_se"] or 0.0)),
            row["mean_error"] + 2 * (row["mean_se"] or 0.0),
        ]
        for row in document["rows"]
    ]
    drawn = {
        "title": f"{document['release']}: records beside the data",
        "source": "CONFIDENTIAL: for the curator alone. Bands: two standard errors. No privacy: "
        "drawn from the data with replacement.",
        "columns": columns,
        "rows": rows,
        "chart": {
            "kind": "line",
            "x": columns[2],
            "y": columns[3],
            "low": "low",
            "high": "high",
            "by": columns[1],
            "facet": "measure",
            "y_free": True,
            "x_log": True,
        },
    }
    path = private_file(folder / "compared.png")
    chart(drawn).save(str(path), format="png", scale_factor=2)
    return str(path)


def show(document: Document) -> None:
    """The comparison for the curator."""
    heading(f"Records of '{document['release']}' beside other ways at the same promise")
    for measure in dict.fromkeys(row["measure"] for row in document["rows"]):
        rows = [
            (f"{row['times']:g}", row["mechanism"], _error(row))
            for row in document["rows"]
            if row["measure"] == measure
        ]
        paragraph("")
        paragraph(f"Total variation from the data, {WORDS[measure]}")
        table(
            ("times the promise", "made by", "error"), rows, numbers=("times the promise", "error")
        )
    paragraph(
        f"Once the promise is {document['promise']}. In parentheses: standard errors over "
        f"{document['replicates']} draws. Records from tables alone keep published figures. "
        "No privacy: as many records drawn from the data with replacement, which is off by chance."
    )
    line("Kept in", document["folder"])
    if document["picture"]:
        line("Picture", document["picture"])
    for note in document["notes"]:
        paragraph(note, style="bold red")


def _error(row: Document) -> str:
    chance = "" if row["mean_se"] is None else f" ({row['mean_se']:.2g})"
    return f"{row['mean_error']:.4f}{chance}"
