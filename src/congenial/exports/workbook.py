"""An .xlsx workbook: the tables, the exact figures, the promise and a dictionary on sheets.

Labels are stored as text, so that 10-14 stays an age and does not become a day in October. Tables
have a bold header that stays in sight, a filter and columns as wide as their texts; numbers are
stored in full and shown with as many digits as anybody reads. The file is Office Open XML
(ECMA-376) with inline strings: a zip archive of a few small XML files.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape, quoteattr

from congenial.data.advance import Tell, one_by_one, quiet
from congenial.exports.exported_tables import ExportedBundle, plain_name, unique_names
from congenial.publication.bundle_texts import PUBLISHED_COLUMNS, published_rows
from congenial.tables.intervals import interval_names

Cell = object
Rows = Sequence[Sequence[Cell]]

MOST_ROWS = 1_048_576  # of a sheet
WIDEST, MEASURED_ROWS = 60, 200  # letters of a column; rows whose texts say how wide it is
HEADER, WHOLE, REAL = 1, 2, 3  # styles, as in `_STYLES`
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_STYLES = (  # plain, bold, whole numbers with thousands (3), the same with two decimals (4)
    f'<styleSheet xmlns="{_MAIN}"><fonts count="2"><font><sz val="11"/><name val="Calibri"/></font>'
    '<font><b/><sz val="11"/><name val="Calibri"/></font></fonts><fills count="2"><fill>'
    '<patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill>'
    '</fills><borders count="1"><border/></borders>'
    '<cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="4"><xf xfId="0"/>'
    '<xf fontId="1" applyFont="1" xfId="0"/><xf numFmtId="3" applyNumberFormat="1" xfId="0"/>'
    '<xf numFmtId="4" applyNumberFormat="1" xfId="0"/></cellXfs></styleSheet>'
)
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
    sheets: list[tuple[str, Rows]] = [("promise", _promise(bundle))]
    dictionary: list[Sequence[Cell]] = [("table", "column", "meaning", "level")]
    for table in bundle.tables:
        sheets.append((table.name, [tuple(c.name for c in table.columns), *table.rows]))
        for column in table.columns:
            levels = column.levels or ("",)
            dictionary += [(table.name, column.name, column.description, x) for x in levels]
    figures = list(published_rows(bundle.published))
    if figures:
        sheets.append(("published", [PUBLISHED_COLUMNS, *figures]))
    sheets.append(("dictionary", dictionary))
    names = unique_names([_sheet_name(name) for name, _ in sheets])
    return {name: rows for name, (_, rows) in zip(names, sheets, strict=True)}


def _promise(bundle: ExportedBundle) -> Rows:
    return [
        ("release", bundle.name),
        ("made", bundle.date),
        ("digest", bundle.digest),
        ("promise", bundle.promise),
        *(
            (f"intervals of {table.name}", _interval_words(table.basis, bundle))
            for table in bundle.tables
        ),
    ]


def _interval_words(basis: str, bundle: ExportedBundle) -> str:
    low, high = interval_names(bundle.level)
    words = f"{low} to {high} holds the true number with a confidence of {bundle.level:.4g}"
    return f"{words}; {basis}" if basis else "none"


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
            [
                *(("worksheet", f"worksheets/sheet{i}.xml") for i in range(1, len(sheets) + 1)),
                ("styles", "styles.xml"),
            ]
        ),
        "xl/styles.xml": _STYLES,
    }
    for i, (name, rows) in enumerate(sheets.items(), start=1):
        parts[f"xl/worksheets/sheet{i}.xml"] = _sheet(name, rows, progress)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            archive.writestr(member, _HEAD + text, zipfile.ZIP_DEFLATED)
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
        f'<Override PartName="/xl/styles.xml" ContentType="{_TYPE}.styles+xml"/>'
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
    headed = name != "promise"  # whose rows are names and texts
    listed = "".join(
        f'<row r="{i}">'
        f"{''.join(_cell(value, i, at, headed and i == 1) for at, value in enumerate(row))}</row>"
        for i, row in enumerate(one_by_one(rows, f"writing sheet '{name}'", progress), start=1)
    )
    pane, last = "", f"{_letters(len(rows[0]) - 1)}{len(rows)}"
    if headed:
        still = '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/>'
        pane = f'<sheetViews><sheetView workbookViewId="0">{still}</sheetView></sheetViews>'
    filters = f'<autoFilter ref="A1:{last}"/>' if headed else ""
    data = f"<sheetData>{listed}</sheetData>"
    return f'<worksheet xmlns="{_MAIN}">{pane}{_widths(rows)}{data}{filters}</worksheet>'


def _widths(rows: Rows) -> str:
    """Columns as wide as the longest text in the first rows."""
    first = rows[:MEASURED_ROWS]
    longest = [
        max((len(_shown(row[at])) for row in first if at < len(row)), default=0)
        for at in range(len(rows[0]))
    ]
    listed = "".join(
        f'<col min="{at}" max="{at}" width="{min(WIDEST, letters + 2)}" customWidth="1"/>'
        for at, letters in enumerate(longest, start=1)
    )
    return f"<cols>{listed}</cols>"


def _shown(value: Cell) -> str:
    return f"{value:,.2f}" if isinstance(value, float) else str(value)


def _cell(value: Cell, row: int, column: int, header: bool) -> str:
    place = f"{_letters(column)}{row}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        digits = WHOLE if isinstance(value, int) else REAL
        return f'<c r="{place}" s="{digits}"><v>{value!r}</v></c>'
    text = "".join(c for c in str(value) if c.isprintable() or c in "\n\t")
    cell_text = f'<t xml:space="preserve">{escape(text)}</t>'
    style = f' s="{HEADER}"' if header else ""
    return f'<c r="{place}"{style} t="inlineStr"><is>{cell_text}</is></c>'


def _letters(column: int) -> str:
    """A, B, ..., Z, AA, ...

    >>> [_letters(i) for i in (0, 25, 26, 701, 702)]
    ['A', 'Z', 'AA', 'ZZ', 'AAA']
    """
    letters = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(65 + rest) + letters
    return letters
