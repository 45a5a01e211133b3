"""An .xlsx workbook: the tables, the exact figures, the promise and a dictionary on sheets.

Labels are stored as text, so that 10-14 stays an age and does not become a day in October. The file
is Office Open XML (ECMA-376) with inline strings: a zip archive of a few small XML files.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape, quoteattr

from congenial.data.advance import Tell, one_by_one, quiet
from congenial.exports.exported_tables import ExportedBundle, plain_name, unique_names
from congenial.publication.bundle_texts import PUBLISHED_COLUMNS, published_rows

Cell = object
Rows = Sequence[Sequence[Cell]]

MOST_ROWS = 1_048_576  # of a sheet
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_UNNAMED = str.maketrans(dict.fromkeys(r"[]:*?/\'", "-"))


class Workbook:
    """One .xlsx file."""

    name = "xlsx"
    words = "a workbook for spreadsheets: tables, exact figures, the promise, a dictionary"

    def files(self, bundle: ExportedBundle, progress: Tell = quiet) -> dict[str, bytes]:
        """The workbook."""
        return {f"{plain_name(bundle.name)}.xlsx": workbook(sheets_of(bundle), progress)}

    def left_open(self, bundle: ExportedBundle) -> list[str]:  # noqa: ARG002
        """Nothing."""
        return []


def sheets_of(bundle: ExportedBundle) -> dict[str, Rows]:
    """Rows of every sheet, by its name."""
    found: list[tuple[str, Rows]] = [("promise", _promise(bundle))]
    dictionary: list[Sequence[Cell]] = [("table", "column", "meaning", "level")]
    for table in bundle.tables:
        found.append((table.name, [tuple(c.name for c in table.columns), *table.rows]))
        for column in table.columns:
            levels = column.levels or ("",)
            dictionary += [(table.name, column.name, column.description, x) for x in levels]
    figures = list(published_rows(bundle.published))
    if figures:
        found.append(("published", [PUBLISHED_COLUMNS, *figures]))
    found.append(("dictionary", dictionary))
    names = unique_names([_sheet_name(name) for name, _ in found])
    return {name: rows for name, (_, rows) in zip(names, found, strict=True)}


def _promise(bundle: ExportedBundle) -> Rows:
    return [
        ("release", bundle.name),
        ("made", bundle.date),
        ("digest", bundle.digest),
        ("promise", bundle.promise),
        (
            "intervals",
            f"low and high contain the true count with a confidence of at least {bundle.level:g}",
        ),
    ]


def _sheet_name(name: str) -> str:
    """At most 28 characters, none that a sheet's name may not have."""
    return name.translate(_UNNAMED)[:28].strip() or "table"


def workbook(sheets: dict[str, Rows], progress: Tell = quiet) -> bytes:
    """The bytes of a workbook with these sheets, the same for the same sheets."""
    parts = {
        "[Content_Types].xml": _content_types(len(sheets)),
        "_rels/.rels": _relations([("officeDocument", "xl/workbook.xml")]),
        "xl/workbook.xml": _index(sheets),
        "xl/_rels/workbook.xml.rels": _relations(
            [("worksheet", f"worksheets/sheet{i}.xml") for i in range(1, len(sheets) + 1)]
        ),
    }
    for i, (name, rows) in enumerate(sheets.items(), start=1):
        parts[f"xl/worksheets/sheet{i}.xml"] = _sheet(name, rows, progress)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), _HEAD + text)
    return file.getvalue()


def _content_types(sheets: int) -> str:
    listed = "".join(
        f'<Override PartName="/xl/worksheets/sheet{i}.xml" ContentType="{_TYPE}.worksheet+xml"/>'
        for i in range(1, sheets + 1)
    )
    return (
        f'<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>'
        f"{listed}</Types>"
    )


def _relations(targets: Iterable[tuple[str, str]]) -> str:
    listed = "".join(
        f'<Relationship Id="rId{i}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for i, (kind, target) in enumerate(targets, start=1)
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{listed}</Relationships>'


def _index(sheets: Iterable[str]) -> str:
    listed = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{i}" r:id="rId{i}"/>'
        for i, name in enumerate(sheets, start=1)
    )
    return f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{listed}</sheets></workbook>'


def _sheet(name: str, rows: Rows, progress: Tell) -> str:
    if len(rows) > MOST_ROWS:
        rows = [*rows[: MOST_ROWS - 1], (f"{len(rows) - MOST_ROWS + 1} more rows: see the CSV",)]
    listed = "".join(
        f'<row r="{i}">{"".join(_cell(value, i, at) for at, value in enumerate(row))}</row>'
        for i, row in enumerate(one_by_one(rows, f"writing sheet '{name}'", progress), start=1)
    )
    return f'<worksheet xmlns="{_MAIN}"><sheetData>{listed}</sheetData></worksheet>'


def _cell(value: Cell, row: int, column: int) -> str:
    place = f"{_letters(column)}{row}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f'<c r="{place}"><v>{value!r}</v></c>'
    text = "".join(c for c in str(value) if c.isprintable() or c in "\n\t")
    shown = f'<t xml:space="preserve">{escape(text)}</t>'
    return f'<c r="{place}" t="inlineStr"><is>{shown}</is></c>'


def _letters(column: int) -> str:
    """A, B, ..., Z, AA, ...

    >>> [_letters(i) for i in (0, 25, 26, 701, 702)]
    ['A', 'Z', 'AA', 'ZZ', 'AAA']
    """
    found = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        found = chr(65 + rest) + found
    return found
