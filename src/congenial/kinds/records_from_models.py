"""Synthetic records: [[release]] with `model`.

Only certified synthesis can be released: its promise is a theorem. The pairs are those of the
plan's figures, so that with figures a copy costs 2 M a*; with public columns they are
datasets in which one person's other values differ, and a copy costs 2 M. The ledger counts whole
records in either case, because that is what its other releases promise. Nothing here depends on
the confidential data until `ready` reads them, and no number of the report is computed from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from congenial.data.tabulate import Microdata
from congenial.errors import GuaranteeError, PlanError
from congenial.figures.figures import Figures
from congenial.kinds.kind import (
    Checked,
    Document,
    Kind,
    Ready,
    Tell,
)
from congenial.kinds.plan_sections import NamedSection, Positive
from congenial.kinds.planned_data import PlannedData
from congenial.pairs.sensitive_values import values_given_public
from congenial.privacy.composition import joint_loss
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.numbers import number
from congenial.report.page import PageColumn, PageTable, counted, folded_table, table
from congenial.report.release_page import Headline, promise_facts, release_page
from congenial.sampling.randomness import SeededRandomness
from congenial.synthesis.certified import Records, Synthesizer, SyntheticRelease
from congenial.synthesis.columns import Column
from congenial.synthesis.record_files import (
    DICTIONARY,
    DICTIONARY_TITLES,
    checks_of_records,
    dictionary_rows,
    read_in_pandas,
    read_in_r,
    records_table,
    type_of,
)
from congenial.synthesis.record_model import generator_of

OF_COLUMN = ("given", "share", "weighting", "correct")  # the other keys of a column are its model's
LOCAL_ONLY = ("mixture", "numpyro", "gibbs")
SETTLED = "none: its totals are published, and its values follow from them"
FIRST_COPY = "synthetic-1.csv"

_NUMBER = 24  # bytes of a number as text
_SEPARATORS = 4  # quotes, an apostrophe and a comma
_OTHER_KEYS = ("kind", "model")  # of a model, which are said before its settings

SEVERAL_COPIES = """import congenial

release = congenial.read("this-folder")


def estimate(frame):
    # a value and its variance, as if the copy were real data
    values = {values}
    return values.mean(), values.var() / len(values)


found = release.combine(estimate)
found.estimate, found.interval(0.95)"""

ONE_COPY = """import congenial

release = congenial.read("this-folder")
release.to_pandas(1)"""


class ModelRecordsSection(NamedSection):
    """[[release]] with `model`: synthetic records, drawn column by column from models.

    `model` has one entry per column, in the order they are drawn; `theta` the values each model's
    parameters may take. `M` is the range of one record's score for one copy; `epsilon` states the
    promise instead, or bounds it besides.
    """

    model: dict[str, str | dict[str, Any]] = Field(min_length=1)
    theta: dict[str, dict[str, Any]] = {}
    M: Positive | None = None
    copies: int = Field(default=1, ge=1)
    records: int | None = Field(default=None, ge=1)
    public: list[str] = []
    basis: Literal["theorem"] | None = None

    @model_validator(mode="after")
    def _possible(self) -> ModelRecordsSection:
        if self.M is None and self.epsilon is None:
            raise ValueError("must have M or epsilon")
        if self.delta is not None:
            raise ValueError("synthetic records promise epsilon without delta; leave delta out")
        for name in self.theta:
            if name not in self.model:
                raise ValueError(f"theta has {name!r}, which is not under model")
        if self.mechanism not in ("auto", "pseudo-posterior"):
            raise ValueError(
                f"mechanism = {self.mechanism!r} cannot be released: only 'auto' and "
                "'pseudo-posterior' have a proof; local estimates are for studies in Python and "
                "`congenial curve`"
            )
        return self


@dataclass(frozen=True)
class ModelRecordsCheck(Checked):
    """What a release of synthetic records would promise, and what the ledger would count for it."""

    mechanism: Synthesizer
    counted: Fraction


class RecordsFromModels(Kind[ModelRecordsSection]):
    """Records drawn column by column from models with certified weights."""

    key = "model"
    name = "synthetic records"
    section = ModelRecordsSection
    words = "check_records_from_models.txt"
    release_class = SyntheticRelease
    instead: ClassVar[str] = "Combine the copies: see docs/how-to/synthetic-records."

    # ---- from the plan to a draw ---------------------------------------------------------------

    def build(
        self, plan: PlannedData, section: ModelRecordsSection, figures: Figures
    ) -> Synthesizer:
        """The synthesizer of one section over the databases that agree with `figures`."""
        pairs = _pairs(plan, section, figures)
        try:
            columns = _columns(section)
            if section.epsilon is None:
                assert section.M is not None
                return Synthesizer(
                    pairs,
                    columns,
                    section.M,
                    section.copies,
                    section.records,
                    tuple(section.public),
                )
            return Synthesizer.calibrate(
                Guarantee.pure(section.epsilon, under=pairs),
                columns,
                copies=section.copies,
                records=section.records,
                public=section.public,
                bound=section.M,
            )
        except (TypeError, ValueError, AttributeError):
            raise PlanError(
                f"release '{section.name}': model or theta has a value of the wrong type.",
                remedy="Ranges are [low, high, points] with numbers; see docs/reference/plan.md.",
            ) from None

    def check(
        self,
        plan: PlannedData,
        section: ModelRecordsSection,
        figures: Figures,
    ) -> ModelRecordsCheck:
        """What it promises, from public parameters alone."""
        synthesizer = self.build(plan, section, figures)
        price = joint_loss([synthesizer.description], plan.adjacency(figures)).epsilon
        promise = self.promise(plan, section, synthesizer)
        return ModelRecordsCheck(section, synthesizer, promise, price)

    def ready(
        self,
        plan: PlannedData,  # noqa: ARG002 - all that matters is in what was built
        section: ModelRecordsSection,
        built: Synthesizer,
        figures: Figures,  # noqa: ARG002
        data: Microdata,
        progress: Tell,  # noqa: ARG002
    ) -> Ready:
        """The laws of the parameters given the data."""
        fitted = built.fit(data)
        return Ready(
            draw=lambda randomness: built.release(fitted, randomness, section.name),
            made_up=lambda: _rehearsal(built, section.name),
            room=built.copies * (built.records or fitted.n) * _bytes_of_a_record(built),
        )

    def shown(self, section: ModelRecordsSection) -> Sequence[str]:
        """The columns of a record, drawn or copied."""
        return (*section.public, *section.model)

    # ---- the bundle ----------------------------------------------------------------------------

    def report(self, release: SyntheticRelease, promise: str) -> str:
        """The promise, the models, the columns and how to analyse copies, as one HTML document."""
        law, copies = release.description.law, len(release.copies)
        epsilon = number(release.description.epsilon)
        facts = promise_facts(
            release.guarantee,
            ("M, the weight of one record in one copy", law["M"]),
            ("Copies, each of which costs", law["copies"]),
            ("Per replaced record, all copies", f"epsilon = {epsilon}"),
            ("Numerics", "none: the parameters are drawn exactly"),
        )
        rows = dictionary_rows(release.schema, release.copies[0].column_names)
        titles = [PageColumn(title) for title in DICTIONARY_TITLES]
        return release_page(
            "records_from_models.html",
            release,
            promise,
            headlines=[
                Headline("Synthetic records", f"{release.copies[0].num_rows:,}", "no real person"),
                Headline("Columns", f"{release.copies[0].num_columns:,}"),
                Headline("Copies", f"{copies:,}"),
            ],
            rows=counted(release.copies[0].num_rows, "synthetic record"),
            copies=copies,
            public=", ".join(law["public"]),
            promise_facts=facts,
            models=_models(release),
            columns=folded_table(titles, rows, len(rows), DICTIONARY),
            code=ONE_COPY if copies == 1 else SEVERAL_COPIES.format(values=_values(release)),
            in_r=read_in_r(release, FIRST_COPY),
            in_pandas=read_in_pandas(release, FIRST_COPY),
        )

    def rebuilt(self, release: SyntheticRelease) -> Iterable[Synthesizer]:
        """The synthesizer of this law over these pairs."""
        return [release.synthesizer]

    def checks(self, release: SyntheticRelease) -> dict[str, bool]:
        """The promise, and what records must be like."""
        law, copies = release.synthesizer, release.copies
        sizes = {law.records} if law.records else {copy.num_rows for copy in copies}
        return super().checks(release) | {
            "every copy has the expected columns and number of records": all(
                tuple(copy.column_names) == law.names and {copy.num_rows} == sizes
                for copy in copies
            ),
            **checks_of_records(
                release.published, release.schema, copies, figures=law.records is None
            ),
        }

    # ---- what `congenial check` says -----------------------------------------------------------

    def examine(self, checked: ModelRecordsCheck) -> Document:
        """The check of one section as plain data; from public parameters alone."""
        synthesizer, pairs = checked.mechanism, checked.guarantee.adjacency
        return {
            **super().examine(checked),
            "columns": [
                {
                    "name": column.name,
                    "model": column.model.to_dict(),
                    "given": list(column.given),
                    "weighting": column.weighting,
                    "M": kernel.bound,
                    "settled": column.name in synthesizer.settled,
                    "contexts": kernel.contexts,
                    "least_weight": float(kernel.weights[kernel.allowed].min()),
                    "largest_weight": float(kernel.weights.max()),
                }
                for column, kernel in zip(synthesizer.columns, synthesizer.kernels, strict=True)
            ],
            "title": "synthetic records",
            "public": list(synthesizer.public),
            "M": synthesizer.bound,
            "copies": synthesizer.copies,
            "records": synthesizer.records,
            "mechanism": synthesizer.name,
            "protects": list(getattr(pairs, "sensitive", synthesizer.schema.names)),
            "counted": checked.counted,
        }


KIND = RecordsFromModels()


def _pairs(plan: PlannedData, section: ModelRecordsSection, figures: Figures) -> Records:
    """What must look alike: the plan's pairs, or with public columns one person's other values.

    The latter needs figures that a single value cannot break, and one row per person. Other figures
    have their usual price.
    """
    pairs = None
    if plan.unit.max_rows is None:
        pairs = values_given_public(figures, section.public, section.model)
    return plan.adjacency(figures) if pairs is None else pairs


def _columns(section: ModelRecordsSection) -> tuple[Column, ...]:
    """The columns of a section with their models; `theta` is part of the model it belongs to."""
    columns = []
    for name, stated in section.model.items():
        model: dict[str, Any] = _plain({"kind": stated} if isinstance(stated, str) else stated)
        of_column = {key: model.pop(key) for key in OF_COLUMN if key in model}
        kind = model.setdefault("kind", "multinomial")
        if kind in LOCAL_ONLY:
            raise GuaranteeError(
                f"column {name!r}: a model drawn by a chain ({kind!r}) has no proof, so it is "
                "never released.",
                remedy="Use a model of docs/reference/plan.md, or study it in Python.",
            )
        model = _merged(model, _plain(section.theta.get(name, {})), name)
        columns.append(Column.from_dict({"name": name, "model": model, **of_column}))
    return tuple(columns)


def _plain(value: Any) -> Any:
    """Decimals of the plan as floats, at any depth: grids are public and need not be exact."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return float(value) if isinstance(value, Decimal) else value


def _merged(model: dict[str, Any], theta: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Theta's ranges put into the model, also into one inside another (a spike's)."""
    merged = dict(model)
    for key, value in theta.items():
        inner = merged.get(key)
        if key == "model" and isinstance(value, Mapping):
            inner = {"kind": inner} if isinstance(inner, str) else dict(inner or {})
            merged[key] = _merged(inner, value, name)
        elif key in merged:
            raise PlanError(
                f"column {name!r} has {key!r} under model and under theta.",
                remedy="Give it in one place.",
            )
        else:
            merged[key] = value
    return merged


def _bytes_of_a_record(synthesizer: Synthesizer) -> int:
    """Bytes that one synthetic record takes at most, as CSV and as Parquet."""
    axes = synthesizer.schema.axes(synthesizer.names)
    longest = (max(len(level.encode()) for level in axis.levels) for axis in axes)
    return 2 * sum(max(size, _NUMBER) + _SEPARATORS for size in longest)


def _rehearsal(synthesizer: Synthesizer, name: str) -> SyntheticRelease:
    """A release of the same form, in which all records have the first level of every column."""
    records = synthesizer.records or 1
    codes = {column: np.zeros(records, dtype=np.int64) for column in synthesizer.names}
    source = SeededRandomness(0)
    copy = records_table(synthesizer.schema, synthesizer.names, codes, generator_of(source))
    return SyntheticRelease(
        name,
        synthesizer.description,
        synthesizer.guarantee,
        source.label,
        False,
        (copy,) * synthesizer.copies,
    )


def _models(release: SyntheticRelease) -> PageTable:
    law, pairs = release.description.law, release.guarantee.adjacency
    synthesizer = Synthesizer.from_dict(pairs, law)  # type: ignore[arg-type]  # of records, as released
    rows = [
        [
            column["name"],
            SETTLED if column["name"] in synthesizer.settled else _model_words(column["model"]),
            ", ".join(column["given"]) or "-",
            _weights(column["weighting"]) if kernel.bound else "-",
            number(kernel.bound),
        ]
        for column, kernel in zip(law["columns"], synthesizer.kernels, strict=True)
    ]
    titles = [
        PageColumn("column"),
        PageColumn("model and Theta"),
        PageColumn("given"),
        PageColumn("weights"),
        PageColumn("part of M", number=True),
    ]
    return table(titles, rows)


def _weights(weighting: str) -> str:
    return "per record" if weighting == "record" else "one for all"


def _model_words(model: Mapping[str, Any]) -> str:
    """A model and its settings on one line; ranges as low .. high."""
    settings = [
        f"{key} {_value_words(value)}"
        for key, value in model.items()
        if key not in _OTHER_KEYS and value is not None
    ]
    inner = f" of {_model_words(model['model'])}" if "model" in model else ""
    return f"{model['kind']}{inner}" + (f": {', '.join(settings)}" if settings else "")


def _value_words(value: Any) -> str:
    if isinstance(value, Mapping):
        log = ", log scale" if value["spacing"] == "log" else ""
        return f"{value['low']:g} .. {value['high']:g} ({value['points']} points{log})"
    if isinstance(value, list):
        return "; ".join(_value_words(inner) for inner in value)
    return str(value)


def _values(release: SyntheticRelease) -> str:
    """Something to estimate: the mean of a number, or the share of a category."""
    names = release.copies[0].column_names
    numbers = [name for name in names if type_of(release.schema.attribute(name)) != "text"]
    if numbers:
        return f"frame[{numbers[-1]!r}].dropna()"
    return f"frame[{names[-1]!r}] == {release.schema.attribute(names[-1]).levels[0]!r}"
