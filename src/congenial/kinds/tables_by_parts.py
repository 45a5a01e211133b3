"""Tables of a nation, drawn part by part: [[release]] with `tables` and `parts`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field, model_validator

from congenial.data.source import POSTGRES_SCHEMES
from congenial.errors import PlanError, StructureError
from congenial.figures.invariants import Invariants
from congenial.kinds.kind import (
    Check,
    Document,
    Files,
    Kind,
    Offer,
    Setting,
    Tell,
)
from congenial.kinds.tables import TablesSection, aim_words, all_axes, designed, named_tables
from congenial.kinds.tables_document import AIMS
from congenial.mechanisms.parted_steps import LEVEL, part_folder
from congenial.mechanisms.parted_tables import PartedTables
from congenial.mechanisms.tables_by_parts_release import PartedRelease
from congenial.mechanisms.tables_calibration import TablesProblem
from congenial.privacy.guarantee import Guarantee
from congenial.sampling.randomness import Randomness

if TYPE_CHECKING:
    from congenial.report.accuracy import Want
    from congenial.report.page import PageTable, Picture
    from congenial.report.release_page import Facts


class PartsSection(TablesSection):
    """[[release]] with `tables` and `parts`: the same tables, drawn and written part by part."""

    parts: str
    workers: int | None = Field(default=None, ge=1, le=1024)

    @model_validator(mode="after")
    def _as_they_are(self) -> PartsSection:
        if self.keep:
            raise ValueError("keep: whole counts by parts follow the areas of the tables only")
        if self.accuracy is not None:
            raise ValueError("accuracy: state rho or epsilon for a release by parts")
        if self.law_asked:
            raise ValueError(f"{self.law_asked[0]} does not go with parts")
        if self.nonnegative == "no":
            raise ValueError("nonnegative = 'no' does not go with parts: whole counts are printed")
        if self.units:
            raise ValueError("units = true does not go with parts")
        return self


@dataclass(frozen=True)
class PartsCheck:
    """What tables by parts would promise."""

    section: PartsSection
    mechanism: PartedTables
    guarantee: Guarantee


class TablesByParts(Kind[PartsSection]):
    """Tables of a nation under one promise, drawn, estimated and written part by part."""

    key = "parts"
    name = "tables by parts"
    section = PartsSection
    words = "check_tables_by_parts.txt"
    instead: ClassVar[str] = (
        "Ask one part of it with --part: docs/how-to/from-a-county-to-a-nation."
    )

    @property
    def release_class(self) -> type[PartedRelease]:
        """`PartedRelease`."""
        return PartedRelease

    def shown(self, section: PartsSection) -> list[str]:
        """The axes of all tables."""
        return all_axes(section)

    # ---- from the plan to a draw -------------------------------------------------------------

    def build(self, plan: Setting, section: PartsSection, figures: Invariants) -> PartedTables:
        """The mechanism of one section over the databases that agree with `figures`."""
        _refuse_database(plan, section)
        if figures.bounds:
            raise PlanError(
                f"release '{section.name}': '{figures.bounds[0].label}' bounds a statistic, and "
                "tables by parts keep no bounds.",
                remedy="Leave out parts: several tables in memory keep bounds.",
            )
        adjacency = plan.adjacency(figures)
        try:
            asked = TablesProblem(adjacency, named_tables(plan.schema, section))
            made = asked.parted(designed(section, asked), aim_words(section), section.parts)
            _refuse_unknown_level(section, made)
            made.refuse_undrawable()
            return made
        except StructureError as reason:
            what = f"release '{section.name}': {reason.what}"
            raise StructureError(what, remedy=reason.remedy) from None

    def check(
        self,
        plan: Setting,
        section: PartsSection,
        figures: Invariants,
        wish: Want | None = None,  # noqa: ARG002 - sums are not asked about
    ) -> PartsCheck:
        """What it promises, from public parameters alone."""
        made = self.build(plan, section, figures)
        return PartsCheck(section, made, self.promise(plan, section, made))

    @contextmanager
    def offer(
        self,
        plan: Setting,
        section: PartsSection,
        built: PartedTables,
        figures: Invariants,
        randomness: Randomness | None,
        progress: Tell,
    ) -> Iterator[Offer]:
        """A run that reads, checks and draws part by part."""
        from congenial.kinds.parted_run import NationRun

        guarantee = self.promise(plan, section, built)
        run = NationRun(plan, built, section.name, randomness, progress, section.workers)
        yield Offer(
            section.name,
            built.description,
            guarantee,
            draw=None,
            rehearsal=lambda: replace(run.made_up(), guarantee=guarantee),
            report=self.report,
            holds=lambda ledger: self.holds(plan, section, built, figures, ledger.figures),
            run=run,
        )

    # ---- the bundle --------------------------------------------------------------------------

    def part_file(self, files: Files, part: str) -> str:
        """The name of a part's file in the folder of every table."""
        from congenial.kinds.tables_by_parts_verification import part_file

        return part_file(files, part)

    def verify(self, files: Files, release: PartedRelease) -> list[Check]:
        """Promise, design, estimates, whole counts and files, all worked out anew."""
        from congenial.kinds.tables_by_parts_verification import verify

        return verify(files, release)

    def verify_part(self, files: Files, release: PartedRelease, part: str) -> list[Check]:
        """The same for one part, given what is printed of its top."""
        from congenial.kinds.tables_by_parts_verification import verify_part

        return verify_part(files, release, part)

    def report(self, release: PartedRelease, promise: str) -> str:
        """The report: the tables above the parts, and what there is of the others."""
        from congenial.report.release_page import release_page
        from congenial.report.tables_report import measured_tables, table_words, worst_errors

        return release_page(
            "tables_by_parts.html",
            release,
            promise,
            design=_design(release),
            picture=worst_errors(_worst(release)),
            measured=measured_tables(release, _worst(release), _files(release)),
            level=f"{LEVEL:.0%}",
            cut=release.description.parts,
            many=len(release.parts.labels),
            folders=[part_folder(release.tables, at) for at in sorted(release.worst)],
            tables=[
                (
                    table_words(release.schema, release.tables[at]),
                    _maps(release, at),
                    _table(release, at),
                )
                for at in sorted(release.upper)
            ],
        )

    # ---- telling people ----------------------------------------------------------------------

    def examine(self, checked: PartsCheck) -> Document:
        """What tables by parts would promise and how accurate each would be, as plain data."""
        made = checked.mechanism
        told, design = made.description, made.description.design
        return {
            **super().examine(checked),
            "title": f"{len(told.tables)} tables, in {len(made.parts.labels):,} parts",
            "law": told.measured[0].law,
            "aim": design["aim"],
            "aim_words": AIMS.get(design["aim"], design["aim"]),
            "types": design["types"],
            "design": design["words"],
            "parts": {"by": told.parts, "many": len(made.parts.labels)},
            "tables": [_row(made, at) for at in range(len(told.tables))],
        }


KIND = TablesByParts()


def _row(made: PartedTables, at: int) -> Document:
    """What to expect of one table: its noise, and the error of its cells."""
    return {
        "table": list(made.tables[at]),
        "cells": made.schema.size(made.tables[at]),
        "measured": made.scales[at] is not None,
        "noise": made.scales[at],
        "below": at in made.below,
        "standard_deviation": made.description.design["mean_variances"][at] ** 0.5,
    }


def _refuse_database(plan: Setting, section: PartsSection) -> None:
    """Parts are counted into files beside the bundle, which no PostgreSQL server writes."""
    if str(plan.source.address).startswith(POSTGRES_SCHEMES):
        raise PlanError(
            f"release '{section.name}': parts are not counted by PostgreSQL.",
            remedy="Export the records to Parquet files, or leave out parts.",
        )


def _refuse_unknown_level(section: PartsSection, made: PartedTables) -> None:
    """Parts must be areas that some table or figure shows: whole counts are settled there first."""
    shown = [*made.tables, *(one.by for one in made.figures.equalities)]
    if not any(section.parts in names for names in shown):
        raise PlanError(
            f"release '{section.name}': parts = '{section.parts}', which no table and no figure "
            "shows.",
            remedy=f"Add a table over {section.parts}, such as "
            f"{list(made.summed(made.tables[made.below[0]]))}.",
        )


def _design(release: PartedRelease) -> Facts:
    told = release.description
    return [
        ("Noise", told.measured[0].law),
        ("Shared out", f"aim: {told.design.get('aim', '-')}"),
        ("How near the best", told.design.get("words", "-")),
        ("Parts", f"{len(release.parts.labels):,}, by {told.parts}"),
    ]


def _worst(release: PartedRelease) -> list[tuple[str, float]]:
    from congenial.report.tables_report import table_words

    words = (table_words(release.schema, names) for names in release.tables)
    return list(zip(words, release.largest_sds, strict=True))


def _files(release: PartedRelease) -> list[str]:
    marks = ("/" if at in release.worst else ".csv" for at in range(len(release.tables)))
    return [f"{part_folder(release.tables, at)}{mark}" for at, mark in enumerate(marks)]


def _maps(release: PartedRelease, at: int) -> tuple[Picture, ...]:
    """Maps of a table above the parts, where the plan names outlines of its areas."""
    if release.schema.about.map is None:
        return ()
    from congenial.report.map_section import maps_of

    columns = release.upper[at]
    counts, exact = columns["count"], columns["sd"] == 0
    values = columns["estimate"] if counts is None else counts
    low, high = (np.where(exact, values, columns[end]) for end in ("low", "high"))
    return maps_of(release.schema, release.tables[at], values, low, high, f"{LEVEL:.0%}")


def _table(release: PartedRelease, at: int) -> PageTable:
    from congenial.report.tables_report import table_rows

    file = f"{part_folder(release.tables, at)}.csv"
    columns = release.upper[at]
    numbers = {**columns, "exact": columns["sd"] == 0}
    return table_rows(release.schema, release.tables[at], numbers, file)
