"""The edit of a plan's text that makes a column from others: an age, a year, keys put together."""

from __future__ import annotations

from datetime import date

from congenial.desk import plan_edits
from congenial.desk.plan_edits import PLACEHOLDER, Values, read
from congenial.errors import PlanError

# How a file writes the last day of 2020, and the format that reads it; None is what plans expect.
DATES: dict[str, str | None] = {
    "2020-12-31": None,
    "31.12.2020": "%d.%m.%Y",
    "31/12/2020": "%d/%m/%Y",
    "12/31/2020": "%m/%d/%Y",
    "20201231": "%Y%m%d",
}
WAYS = {
    "age": "Age in full years at a day, from a date of birth",
    "year": "Year of a date",
    "month": "Month of a date",
    "join": "Columns put together, such as tract and block",
}


def derive_column(
    text: str, column: str, way: str, sources: str, at: str, dates: str, between: str
) -> str:
    """Make a column from others, and ask for its values as a draft does.

    What it is made from leaves the schema and the tables of a draft, which are about the new one.
    """
    names = plan_edits.names_in(sources)
    if not column.strip() or not names or way not in WAYS or (way != "join" and len(names) > 1):
        raise PlanError(
            "a column needs a name and what it is made from.",
            remedy="Name one column of dates, or several columns to put together, by commas.",
        )
    entry = _entry(way, names, at, dates, between)
    line = f"{plan_edits.key_of(column)} = {plan_edits.inline(entry)}"
    text = plan_edits.add_line(text, "derive", line)
    for name in names:
        text = _replaced(text, name, column)
    if column in read(text).get("schema", {}):
        return text
    asked = f'{plan_edits.key_of(column)} = {{ levels = ["{PLACEHOLDER}"] }}'
    return plan_edits.add_line(text, "schema", asked)


def _entry(way: str, names: list[str], at: str, dates: str, between: str) -> Values:
    if way == "join":
        return {"join": names} | ({"between": between} if between else {})
    written = DATES.get(dates)
    entry: Values = {way: names[0]} | ({"at": _day(at)} if way == "age" else {})
    return entry | ({"format": written} if written else {})


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise PlanError(
            f"'{text}' is not a day at which people have an age.", remedy="Write it as 2020-12-31."
        ) from None


def _replaced(text: str, name: str, column: str) -> str:
    """Without a column of a draft that has no values yet; tables show the new one in its place."""
    if read(text).get("schema", {}).get(name) != {"levels": [PLACEHOLDER]} or name == column:
        return text
    text = plan_edits.remove_column(text, name)
    for one in read(text).get("release", []):
        shown = one.get("table", [])
        if name in shown:
            now = dict.fromkeys(column if other == name else other for other in shown)
            text = plan_edits.set_table(text, one["name"], ", ".join(now))
    return text
