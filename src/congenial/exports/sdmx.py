"""SDMX: the data as SDMX-CSV 1.0, and its structure message (SDMX-ML 2.1) with code lists.

Levels become codes: letters, digits and underscores; their labels are the codes' names, and codes
of areas have the larger areas they lie in as parents. A cell of which nobody should rely on the
number alone has the status U (low reliability); every other has A.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from xml.sax.saxutils import escape, quoteattr

from congenial.data.advance import Tell, one_by_one, quiet
from congenial.data.text_files import rows_csv
from congenial.exports.exported_tables import (
    ExportedBundle,
    ExportedColumn,
    ExportedTable,
    identifier,
    plain_name,
    unique_names,
)

AGENCY = "PUBLISHER"
VERSION = "1.0"
MEASURE = "OBS_VALUE"
_BASE = "http://www.sdmx.org/resources/sdmxml/schemas/v2_1"
TIME, UNIT, STATUS = "TIME_PERIOD", "UNIT_MEASURE", "OBS_STATUS"
STATUSES = {"A": "Normal value", "U": "Low reliability"}
_UNRELIABLE = ("caution", "poor")
_DESCRIBED = {
    TIME: "the reference period of the data",
    UNIT: "PS for persons, otherwise the number that is summed",
    STATUS: "A: normal value; U: low reliability, see RELIABILITY",
}


class Sdmx:
    """For each table a CSV file of data, and one structure message for all."""

    name = "sdmx"
    words = "SDMX-CSV 1.0 with its structure message (SDMX-ML 2.1)"

    def files(self, bundle: ExportedBundle, progress: Tell = quiet) -> dict[str, bytes]:
        """The data of each table, and structure.xml."""
        names = unique_names([plain_name(table.name) for table in bundle.tables])
        flows = [Flow(table, bundle) for table in bundle.tables]
        files = {
            f"{name}.csv": rows_csv(
                one_by_one(list(flow.rows()), f"writing {name}.csv", progress), "\r\n"
            ).encode()
            for name, flow in zip(names, flows, strict=True)
        }
        files["structure.xml"] = "\n".join(_message(bundle, flows)).encode()
        return files

    def left_open(self, bundle: ExportedBundle) -> list[str]:
        """Who publishes it, in the terms of SDMX; when the data are of, if no plan says it."""
        agency = f"the agency: {AGENCY} in structure.xml and in the first column of the data"
        if bundle.period is not None:
            return [agency]
        return [agency, f"{TIME}: it is the day of the release, because [about] has no date"]


class Flow:
    """A table as a dataflow: identifiers for axes and levels."""

    def __init__(self, table: ExportedTable, bundle: ExportedBundle) -> None:
        self.name, self.columns = table.name, table.columns
        self.period, self.unit = bundle.period or bundle.date, table.unit
        self.id = identifier(table.name)
        self.axes = [column for column in table.columns if column.meaning == "label"]
        self.numbers = [column for column in table.columns if column.meaning in ("number", "flag")]
        self.attributes = [*(identifier(number.name) for number in self.numbers[1:]), UNIT, STATUS]
        reserved = ["DATAFLOW", MEASURE, TIME, *self.attributes]
        ids = unique_names([*reserved, *(identifier(axis.name) for axis in self.axes)])
        self.dimensions = ids[len(reserved) :]
        self.codes = [
            unique_names([identifier(x, False) for x in axis.levels]) for axis in self.axes
        ]

    def status(self) -> Iterator[str]:
        """OBS_STATUS of each cell."""
        flags = [number.values for number in self.numbers if number.meaning == "flag"]
        cells = flags[0] if flags else [""] * len(self.numbers[0].values)
        return ("U" if flag in _UNRELIABLE else "A" for flag in cells)

    def larger_areas(self, at: int) -> Iterator[tuple[list[str], list[int], Sequence[str]]]:
        """What the codes of an axis lie in, one step up at a time: codes of what is larger, the
        place of each smaller one's among them, and its labels. Only what is nested.
        """
        axis, codes = self.axes[at], self.codes[at]
        before = self.columns[: self.columns.index(axis)][::-1]
        coarser = takewhile(lambda c: c.meaning == "coarser label", before)
        inner, taken = axis, list(codes)
        for outer in sorted(coarser, key=lambda one: -len(one.levels)):
            pairs = {*zip(inner.values, outer.values, strict=True)}
            if len(pairs) != len(inner.levels):
                continue
            own = [identifier(f"{outer.name}_{level}", False) for level in outer.levels]
            taken = unique_names([*taken, *own])
            above = dict(pairs)
            places = [outer.levels.index(above[level]) for level in inner.levels]
            yield taken[-len(own) :], places, outer.levels
            inner = outer

    def rows(self) -> Iterator[Sequence[object]]:
        """The header, then one row for each cell."""
        yield ["DATAFLOW", *self.dimensions, TIME, MEASURE, *self.attributes]
        flow = f"{AGENCY}:{self.id}({VERSION})"
        coded = [_coded(axis, codes) for axis, codes in zip(self.axes, self.codes, strict=True)]
        numbers = [number.values for number in self.numbers]
        for *row, status in zip(*coded, *numbers, self.status(), strict=True):
            labels, values = row[: len(coded)], row[len(coded) :]
            yield [flow, *labels, self.period, *values, self.unit, status]

    def names_of(self, axis: ExportedColumn) -> tuple[str, ...]:
        """What readers call the codes of an axis: the column of words after it, or its levels."""
        after = self.columns[self.columns.index(axis) + 1]
        if after.meaning != "words":
            return axis.levels
        words = dict(zip(axis.values, after.values, strict=True))
        return tuple(words[level] for level in axis.levels)


def _coded(column: ExportedColumn, codes: list[str]) -> list[str]:
    code = dict(zip(column.levels, codes, strict=True))
    return [code[value] for value in column.values]


# ---- the structure message -----------------------------------------------------------------------


def _message(bundle: ExportedBundle, flows: list[Flow]) -> Iterator[str]:
    spaces = " ".join(f'xmlns:{short}="{_BASE}/{short}"' for short in ("message", "structure"))
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<message:Structure {spaces} xmlns:common="{_BASE}/common">'
    yield "<message:Header>"
    yield f"<message:ID>{escape(plain_name(bundle.name))}</message:ID>"
    yield "<message:Test>false</message:Test>"
    yield f"<message:Prepared>{escape(str(bundle.index.get('created', '')))}</message:Prepared>"
    yield f'<message:Sender id="{AGENCY}"/>'
    yield "</message:Header>"
    yield "<message:Structures>"
    yield "<structure:Dataflows>"
    for flow in flows:
        yield from _dataflow(flow)
    yield "</structure:Dataflows>"
    yield "<structure:Codelists>"
    for flow in flows:
        yield from _code_lists(flow)
    yield "</structure:Codelists>"
    yield "<structure:Concepts>"
    for flow in flows:
        yield from _concepts(flow)
    yield "</structure:Concepts>"
    yield "<structure:DataStructures>"
    for flow in flows:
        yield from _data_structure(flow)
    yield "</structure:DataStructures>"
    yield "</message:Structures>"
    yield "</message:Structure>\n"


def _maintained(kind: str, name: str, label: str) -> str:
    attributes = f'id="{name}" agencyID="{AGENCY}" version="{VERSION}" isFinal="true"'
    return f"<structure:{kind} {attributes}>{_named(label)}"


def _named(label: str) -> str:
    return f'<common:Name xml:lang="en">{escape(label)}</common:Name>'


def _reference(name: str, package: str, kind: str, parent: str = "") -> str:
    """A reference to something maintained, or to an item of it."""
    inside = f' maintainableParentID="{parent}" maintainableParentVersion="{VERSION}"'
    own = inside if parent else f' version="{VERSION}"'
    return f'<Ref id="{name}"{own} agencyID="{AGENCY}" package="{package}" class="{kind}"/>'


def _dataflow(flow: Flow) -> Iterator[str]:
    yield _maintained("Dataflow", flow.id, flow.name)
    structure = _reference(f"DSD_{flow.id}", "datastructure", "DataStructure")
    yield f"<structure:Structure>{structure}</structure:Structure></structure:Dataflow>"


def _code_lists(flow: Flow) -> Iterator[str]:
    for axis, name, codes in zip(flow.axes, flow.dimensions, flow.codes, strict=True):
        yield _maintained("Codelist", f"CL_{flow.id}_{name}", axis.name)
        labels: Sequence[str] = flow.names_of(axis)
        for larger, places, names in flow.larger_areas(flow.axes.index(axis)):
            yield from (
                _code(code, label, larger[at])
                for code, label, at in zip(codes, labels, places, strict=True)
            )
            codes, labels = larger, names
        yield from (_code(code, label) for code, label in zip(codes, labels, strict=True))
        yield "</structure:Codelist>"
    yield _maintained("Codelist", f"CL_{flow.id}_{STATUS}", STATUS)
    yield from (_code(code, label) for code, label in STATUSES.items())
    yield "</structure:Codelist>"


def _code(code: str, label: str, parent: str = "") -> str:
    inside = f"<structure:Parent><Ref id={quoteattr(parent)}/></structure:Parent>" if parent else ""
    return f"<structure:Code id={quoteattr(code)}>{_named(label)}{inside}</structure:Code>"


def _concepts(flow: Flow) -> Iterator[str]:
    yield _maintained("ConceptScheme", f"CS_{flow.id}", flow.name)
    columns = [(column.name, column.description) for column in (*flow.axes, *flow.numbers)]
    columns += _DESCRIBED.items()
    ids = [*flow.dimensions, MEASURE, *flow.attributes[:-2], TIME, UNIT, STATUS]
    for name, (label, words) in zip(ids, columns, strict=True):
        described = f'<common:Description xml:lang="en">{escape(words)}'
        yield f'<structure:Concept id="{name}">{_named(label)}'
        yield f"{described}</common:Description></structure:Concept>"
    yield "</structure:ConceptScheme>"


def _data_structure(flow: Flow) -> Iterator[str]:
    yield _maintained("DataStructure", f"DSD_{flow.id}", flow.name)
    yield "<structure:DataStructureComponents>"
    yield '<structure:DimensionList id="DimensionDescriptor">'
    for place, name in enumerate(flow.dimensions, start=1):
        yield f'<structure:Dimension id="{name}" position="{place}">{_identity(flow, name)}'
        yield f"{_coded_by(flow, name)}</structure:Dimension>"
    yield f'<structure:TimeDimension id="{TIME}" position="{len(flow.dimensions) + 1}">'
    yield _identity(flow, TIME)
    yield '<structure:LocalRepresentation><structure:TextFormat textType="ObservationalTimePeriod"'
    yield "/></structure:LocalRepresentation></structure:TimeDimension>"
    yield "</structure:DimensionList>"
    if flow.attributes:
        yield '<structure:AttributeList id="AttributeDescriptor">'
        for name in flow.attributes:
            yield f'<structure:Attribute id="{name}" assignmentStatus="Conditional">'
            yield _identity(flow, name)
            yield _coded_by(flow, name) if name == STATUS else ""
            measure = f'<structure:PrimaryMeasure><Ref id="{MEASURE}"/></structure:PrimaryMeasure>'
            yield f"<structure:AttributeRelationship>{measure}</structure:AttributeRelationship>"
            yield "</structure:Attribute>"
        yield "</structure:AttributeList>"
    yield '<structure:MeasureList id="MeasureDescriptor">'
    yield f'<structure:PrimaryMeasure id="{MEASURE}">{_identity(flow, MEASURE)}'
    yield "</structure:PrimaryMeasure></structure:MeasureList>"
    yield "</structure:DataStructureComponents></structure:DataStructure>"


def _coded_by(flow: Flow, name: str) -> str:
    codes = _reference(f"CL_{flow.id}_{name}", "codelist", "Codelist")
    coded = f"<structure:Enumeration>{codes}</structure:Enumeration>"
    return f"<structure:LocalRepresentation>{coded}</structure:LocalRepresentation>"


def _identity(flow: Flow, name: str) -> str:
    concept = _reference(name, "conceptscheme", "Concept", f"CS_{flow.id}")
    return f"<structure:ConceptIdentity>{concept}</structure:ConceptIdentity>"
