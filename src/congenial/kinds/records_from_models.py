"""Synthetic records: [[release]] with `model`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, model_validator

from congenial.kinds.kind import NamedSection, Positive
from congenial.kinds.loaded_kind import LoadedKind, Offers, Words

if TYPE_CHECKING:
    from congenial.synthesis.records_from_models_release import SyntheticRelease


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
                raise ValueError(f"theta names {name!r}, which has no model")
        if self.mechanism not in ("auto", "pseudo-posterior"):
            raise ValueError(
                f"mechanism = {self.mechanism!r} cannot be released: only certified synthesis "
                "('auto', 'pseudo-posterior') has a proof; local estimates are for studies in "
                "Python and for `congenial curve`"
            )
        return self


class RecordsFromModels(LoadedKind[ModelRecordsSection]):
    """Records drawn column by column from models with certified weights."""

    key = "model"
    name = "synthetic records"
    section = ModelRecordsSection
    instead: ClassVar[str] = "Combine the copies: see docs/how-to/synthetic-records."

    def offers(self) -> Offers:
        """`records_from_models_offer`."""
        from congenial.kinds import records_from_models_offer

        return records_from_models_offer

    def words(self) -> Words:
        """`records_from_models_words`."""
        from congenial.kinds import records_from_models_words

        return records_from_models_words

    def shown(self, section: ModelRecordsSection) -> Sequence[str]:
        """The columns of a record, drawn or copied."""
        return (*section.public, *section.model)

    @property
    def release_class(self) -> type[SyntheticRelease]:
        """`SyntheticRelease`."""
        from congenial.synthesis.records_from_models_release import SyntheticRelease

        return SyntheticRelease

    def report(self, release: SyntheticRelease, promise: str) -> str:
        """The report of the records and their models."""
        from congenial.report.records_from_models_report import render

        return render(release, promise)


KIND = RecordsFromModels()
