"""The unit of protection: whose presence or answers the promise is about."""

from __future__ import annotations

from dataclasses import dataclass

from congenial.errors import DataError


@dataclass(frozen=True)
class Unit:
    """Who owns the rows: one row for each value of `column`, or at most `max_rows`.

    `column` names the identifier; tabulation checks that it is never missing and that no value
    has more rows than allowed. Without a column every row is taken for one unit: that is an
    assumption nobody checks, and a promise must say so.

    Without `max_rows` neighbours replace one record, so the number of rows is public; with it they
    add or remove up to `max_rows` rows.

    >>> Unit("person_id").rows, Unit("person_id", max_rows=3).rows, Unit().checked
    (1, 3, False)
    """

    column: str | None = None
    max_rows: int | None = None

    def __post_init__(self) -> None:
        if self.column is not None and (not isinstance(self.column, str) or not self.column):
            raise DataError("the unit column is not a column name.", remedy="Give its name.")
        if self.max_rows is None:
            return
        if isinstance(self.max_rows, bool) or not isinstance(self.max_rows, int):
            raise DataError("max_rows is not a whole number.", remedy="Give 1 or more.")
        if self.max_rows < 1:
            raise DataError(f"max_rows is {self.max_rows}.", remedy="Give 1 or more.")

    @property
    def rows(self) -> int:
        """The most rows one unit may have."""
        return 1 if self.max_rows is None else self.max_rows

    @property
    def remedy(self) -> str:
        """What to do about a unit with more rows than it may have."""
        if self.max_rows is None:
            return (
                "Keep one row per unit. Where no figure is published and no scenarios are stated, "
                "max_rows = K allows K rows."
            )
        return f"Keep at most {self.rows} per unit, or raise max_rows."

    @property
    def checked(self) -> bool:
        """Whether the limit is checked on the data rather than assumed."""
        return self.column is not None
