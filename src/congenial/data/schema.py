"""The schema: which variables there are, which levels they have; and the unit, whose rows they are.

Both are public, and fixed without data.
"""

from __future__ import annotations

import csv
import difflib
import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from congenial.data.about import KEY, About
from congenial.data.arguments import expect, texts
from congenial.data.attribute import MAX_LEVELS, REFUSE, Attribute, Axis, axis_of, refuse_repeats
from congenial.data.rational import Number, written
from congenial.errors import DataError, SchemaError, some_of

__all__ = ["Attribute", "Axis", "Schema"]

MANY = 100_000  # levels of an attribute from which a schema is kept once
KINDS = ("levels", "levels_file", "labels_file", "edges", "integers")
KEYS = (*KINDS, "top", "bottom", "whole", "within", "missing", "other", "of", "label", "labels")


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like `name`, case aside; None if none is close."""
    folded = {other.casefold(): other for other in reversed(list(known))}
    if name.casefold() in folded:
        return folded[name.casefold()]
    # Comparing with a very long list, or with long texts, takes minutes and says little.
    short = [other for other in folded if len(other) <= 60][-5000:]
    close = difflib.get_close_matches(name[:60].casefold(), short, n=1)
    return folded[close[0]] if close else None


def near(name: str, known: Iterable[str]) -> str:
    """A remedy for an unknown public name: the closest known one, or the first few."""
    known = list(known)
    close = closest(name, known)
    if close is not None:
        return f"Did you mean {close!r}?"
    listed = ", ".join(repr(other) for other in known[:8])
    return f"Known: {listed}{', ...' if len(known) > 8 else ''}."


@dataclass(frozen=True)
class Schema:
    """An ordered set of attributes; names of attributes and of coarser readings are distinct.

    Names that differ only in case are refused, because databases fold them together.

    >>> schema = Schema.from_dict({
    ...     "county": {"levels": ["A", "B", "C"], "within": {"state": ["PA", "PA", "NJ"]}},
    ...     "age": {"edges": [0, 18, 65], "top": "65+"},
    ... })
    >>> schema.names, schema.size(["state", "age"]), schema.axis("state").levels
    (('county', 'age'), 6, ('PA', 'NJ'))
    """

    attributes: tuple[Attribute, ...]
    about: About = field(default=About(), compare=False, repr=False)
    _axes: Mapping[str, Axis] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        expect(self.attributes, (tuple, list), "the schema", "Use Schema.from_dict.", SchemaError)
        for attribute in self.attributes:
            expect(attribute, Attribute, "an attribute", "Use Schema.from_dict.", SchemaError)
        object.__setattr__(self, "attributes", tuple(self.attributes))
        if not self.attributes:
            raise SchemaError("the schema has no attributes.", remedy="Declare at least one.")
        axes = [
            axis_of(attribute, name)
            for attribute in self.attributes
            for name in (attribute.name, *attribute.coarser)
        ]
        refuse_repeats([axis.name for axis in axes], "the name")
        refuse_repeats([axis.name.casefold() for axis in axes], "ignoring case, the name")
        object.__setattr__(self, "_axes", {axis.name: axis for axis in axes})
        if any(attribute.size >= MANY for attribute in self.attributes):
            _MANY_LEVELS[id(self)] = self

    @property
    def names(self) -> tuple[str, ...]:
        """Attribute names, in order."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def of_units(self) -> tuple[str, ...]:
        """Names of the attributes that all rows of a unit share, in order."""
        return tuple(attribute.name for attribute in self.attributes if attribute.of != "row")

    @property
    def sizes(self) -> tuple[str, ...]:
        """Names of the attributes that are the number of rows of a unit, in order."""
        return tuple(attribute.name for attribute in self.attributes if attribute.of == "unit size")

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the attributes that are columns of the data: all but sizes of units."""
        return tuple(attribute.name for attribute in self.attributes if attribute.of != "unit size")

    def attribute(self, name: str) -> Attribute:
        """The attribute called `name`; SchemaError with a near match otherwise."""
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise SchemaError(f"the schema has no attribute {name!r}.", remedy=near(name, self.names))

    def axis(self, name: str) -> Axis:
        """The axis called `name`, an attribute's name or a coarser name."""
        expect(name, str, "the name of an axis", "Give text.", SchemaError)
        axis = self._axes.get(name)
        if axis is None:
            raise SchemaError(
                f"the schema has no attribute or coarser name {name!r}.",
                remedy=near(name, self._axes),
            )
        return axis

    def axes(self, names: Sequence[str]) -> tuple[Axis, ...]:
        """The axes of a table; each attribute may occur once, at one resolution."""
        axes = tuple(self.axis(name) for name in texts(names, "the list of axes", SchemaError))
        refuse_repeats([axis.base for axis in axes], "in one table, the attribute")
        return axes

    def shown(self, name: str) -> str:
        """The name of an axis for readers: its label, or its name where it has none."""
        axis = self.axis(name)
        return (self.attribute(axis.base).label if axis.name == axis.base else "") or name

    def shown_levels(self, name: str) -> tuple[str, ...]:
        """The levels of an axis for readers: their labels, or the levels where they have none."""
        axis = self.axis(name)
        labels = self.attribute(axis.base).labels
        return tuple(labels.get(level, level) for level in axis.levels) if labels else axis.levels

    def size(self, names: Sequence[str]) -> int:
        """Number of cells of the table over these axes (1 for none: the total)."""
        return math.prod(axis.size for axis in self.axes(names))

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any], folder: Path | None = None) -> Schema:
        """Read the [schema] section of a plan, or what `to_dict` wrote.

        Each attribute is a table with exactly one of `levels`, `levels_file`, `labels_file`,
        `edges`, `integers`, and optionally `top`, `bottom`, `whole`, `within`, `missing`, `other`,
        `of`. A `levels_file` is a CSV file with a header, relative to `folder`: levels in the first
        column, parents in further columns named by their coarser names. A `labels_file` is the same
        with labels for readers in its second column. The content becomes part of the schema. One of
        many levels that is in use and says the same is shared: a nation's is large.
        """
        if not isinstance(mapping, Mapping):
            raise SchemaError("the schema is not a table of attributes.", remedy="See the plan.")
        same = _in_use(mapping)
        if same is not None:
            return same
        if sum(min(_integers(spec), MAX_LEVELS) for spec in mapping.values()) > MAX_LEVELS:
            raise SchemaError(
                f"the schema has more than {MAX_LEVELS} categories in all.",
                remedy="Use classes (edges) for wide ranges.",
            )
        about = About.from_dict(mapping.get(KEY, {}))
        specs = {name: spec for name, spec in mapping.items() if name != KEY}
        return cls(tuple(_attribute(name, spec, folder) for name, spec in specs.items()), about)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """The schema as plain JSON values; `from_dict` reads it back to an equal schema."""
        about = self.about.to_dict()
        plain = {
            attribute.name: _spec(attribute) | _words(attribute) for attribute in self.attributes
        }
        return plain | ({KEY: about} if about else {})

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of `to_dict`; the order of attributes and levels counts.

        Words for readers (`about`, `label`, `labels`) do not: the population stays the same.
        """
        pairs = [(attribute.name, _spec(attribute)) for attribute in self.attributes]
        text = json.dumps(pairs, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def __repr__(self) -> str:
        sized = some_of([f"{attribute.name}: {attribute.size}" for attribute in self.attributes])
        return f"Schema({sized[:200]})"

    def _repr_html_(self) -> str:
        from congenial._notebook import grid  # for notebooks alone

        rows = [
            (
                attribute.name,
                attribute.kind,
                len(attribute.levels),
                _some(attribute.levels),
                ", ".join(attribute.coarser),
            )
            for attribute in self.attributes
        ]
        title = f"Schema: {len(rows)} attribute{'s' if len(rows) > 1 else ''}"
        return grid(title, ("attribute", "kind", "levels", "labels", "coarser names"), rows)


_MANY_LEVELS: WeakValueDictionary[int, Schema] = WeakValueDictionary()


def _in_use(mapping: Mapping[str, Any]) -> Schema | None:
    """The schema of many levels that was written as `mapping` and is still in use, if any."""
    many = any(
        isinstance(spec, Mapping)
        and isinstance(spec.get("levels"), list)
        and len(spec["levels"]) >= MANY
        for spec in mapping.values()
    )
    in_use = list(_MANY_LEVELS.values()) if many else []
    return next((schema for schema in in_use if schema.to_dict() == mapping), None)


def _some(labels: Sequence[str]) -> str:
    """The first labels, as many as a line holds."""
    some = labels if len(labels) <= 8 else (*labels[:6], "...", labels[-1])
    return ", ".join(some)


def _spec(attribute: Attribute) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    if attribute.kind == "categorical":
        spec["levels"] = list(attribute.levels)
    elif attribute.kind == "integers":
        spec["integers"] = [attribute.low, attribute.high]
    else:
        spec["edges"] = [e if isinstance(e, int) else written(e) for e in attribute.edges]
        if attribute.whole_values:
            spec["whole"] = True
    optional = {"top": attribute.top, "bottom": attribute.bottom}
    spec |= {key: label for key, label in optional.items() if label is not None}
    rules = {"missing": attribute.missing, "other": attribute.other}
    spec |= {key: rule for key, rule in rules.items() if rule != REFUSE}
    if attribute.of != "row":
        spec["of"] = attribute.of
    if attribute.coarser:
        spec["within"] = {name: list(parents) for name, parents in attribute.coarser.items()}
    return spec


def _words(attribute: Attribute) -> dict[str, Any]:
    """Labels for readers, where there are some."""
    words = {"label": attribute.label, "labels": dict(attribute.labels)}
    return {key: value for key, value in words.items() if value}


def _attribute(name: str, spec: object, folder: Path | None) -> Attribute:
    if not isinstance(spec, Mapping):
        raise SchemaError(
            f"attribute {name!r} is not a table.",
            remedy=f'Write for example {name} = {{ levels = ["a", "b"] }}.',
        )
    for key in spec:
        if key not in KEYS:
            raise SchemaError(
                f"attribute {name!r} has unknown key {key!r}.", remedy=near(key, KEYS)
            )
    kinds = [key for key in KINDS if key in spec]
    if len(kinds) != 1:
        raise SchemaError(
            f"attribute {name!r} has {' and '.join(kinds) or 'none of ' + ', '.join(KINDS)}.",
            remedy=f"Give exactly one of {', '.join(KINDS)}.",
        )
    common: dict[str, Any] = {"coarser": _within(name, spec.get("within", {}))}
    labels = ("missing", "other", "top", "bottom", "of", "label")
    common |= {key: _label(spec[key], name) for key in labels if key in spec}
    if "labels" in spec:
        common["labels"] = _level_labels(spec["labels"], name)
    if "whole" in spec:
        common["whole_values"] = _flag(spec["whole"], name)
    value = spec[kinds[0]]
    if kinds[0] in ("levels_file", "labels_file"):
        return _from_file(name, kinds[0], value, folder, common)
    items = _items(value, name, kinds[0])
    if kinds[0] == "levels":
        return Attribute(name, "categorical", levels=_labels(items, name), **common)
    if kinds[0] == "edges":
        edges: tuple[Number, ...] = tuple(items)
        return Attribute(name, "bins", edges=edges, **common)
    if len(items) != 2:
        raise SchemaError(
            f"attribute {name!r}: integers has {len(items)} entries.",
            remedy="Give the lowest and the highest, for example integers = [1, 8].",
        )
    return Attribute(name, "integers", low=items[0], high=items[1], **common)


def _integers(spec: object) -> int:
    """How many levels an attribute given by two integers will have; 0 for any other."""
    ends = spec.get("integers") if isinstance(spec, Mapping) else None
    if not isinstance(ends, list | tuple) or not all(isinstance(end, int) for end in ends):
        return 0
    return max(0, max(ends) - min(ends)) if ends else 0


def _items(value: object, name: str, key: str) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise SchemaError(f"attribute {name!r}: {key} is not a list.", remedy="Write [ ... ].")
    return list(value)


def _label(value: object, name: str) -> str:
    """A label as text: codes may be written as whole numbers or truth values."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int)):
        return str(value)
    raise SchemaError(f"attribute {name!r}: category {value!r} is not text.", remedy="Quote it.")


def _level_labels(value: object, name: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise SchemaError(
            f"attribute {name!r}: labels is not a table.",
            remedy='Write for example labels = { "1" = "female", "2" = "male" }.',
        )
    return {str(level): _label(label, name) for level, label in value.items()}


def _flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise SchemaError(
            f"attribute {name!r}: whole is neither true nor false.", remedy="Write whole = true."
        )
    return value


def _labels(values: Sequence[Any], name: str) -> tuple[str, ...]:
    if set(map(type, values)) <= {str}:
        return tuple(values)
    return tuple(_label(value, name) for value in values)


def _within(name: str, value: object) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, Mapping):
        raise SchemaError(
            f"attribute {name!r}: within is not a table.",
            remedy="Write for example within = { state = [...] }.",
        )
    return {
        coarse: _labels(_items(parents, name, f"within.{coarse}"), name)
        for coarse, parents in value.items()
    }


def _from_file(
    name: str, key: str, value: object, folder: Path | None, common: dict[str, Any]
) -> Attribute:
    if not isinstance(value, str) or not value:
        raise SchemaError(f"attribute {name!r}: {key} is not a file name.")
    header, columns = _read_columns(name, key, value, (folder or Path()) / value)
    levels, *parents = columns
    coarse = header[1:]
    if key == "labels_file":
        labels = dict(zip(levels, parents[0], strict=True))
        common = common | {"labels": labels | common.get("labels", {})}
        parents, coarse = parents[1:], coarse[1:]
    refuse_repeats([*coarse, *common["coarser"]], f"attribute {name!r}: the coarser name")
    coarser = dict(zip(coarse, parents, strict=True))
    common = common | {"coarser": coarser | common["coarser"]}
    return Attribute(name, "categorical", levels=levels, from_file=True, **common)


@dataclass(frozen=True)
class Unit:
    """Who owns the rows: one row for each value of `column`, or at most `max_rows`.

    `column` names the identifier; tabulation checks that it is never missing and that no value
    has more rows than allowed. Without a column every row is taken for one unit: that is an
    assumption nobody checks, and a promise must say so.

    Without `max_rows` neighbours replace one record, so the number of rows is public. With it they
    add or remove up to `max_rows` rows, and where figures are published exactly they change the
    rows of units as far as the figures allow (`pairs/several_rows`). With `truncate` a unit with
    more rows keeps its first `max_rows`, in the order of the schema's columns (`truncated`).

    >>> Unit("person_id").rows, Unit("person_id", max_rows=3).rows, Unit().checked
    (1, 3, False)
    """

    column: str | None = None
    max_rows: int | None = None
    truncate: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.truncate, bool):
            raise DataError("truncate is neither true nor false.", remedy="Give True or False.")
        if self.truncate and (self.max_rows is None or self.column is None):
            raise DataError(
                "truncate needs a unit and max_rows.",
                remedy='Give both, for example Unit("household", max_rows=8, truncate=True).',
            )
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
                "Duplicates: remove them. Several rows per person on purpose: give the maximum, "
                "max_rows = 5 (for tables and records from tables, without scenarios). If each "
                "row is a different person: name another column, or leave out unit."
            )
        return (
            f"Keep at most {self.rows} per unit, raise max_rows, or count only the first "
            f'{self.rows} of each: truncate = "column order".'
        )

    @property
    def checked(self) -> bool:
        """Whether the limit is checked on the data rather than assumed."""
        return self.column is not None


# Files of levels: CSV, one row a level; a nation has millions. An error names rows and never quotes
# what the file holds: it may not be a list of levels at all.


def _read_columns(
    name: str, key: str, value: str, path: Path
) -> tuple[list[str], tuple[tuple[str, ...], ...]]:
    """The header of a CSV file, and its columns; SchemaError, which quotes no level, if it is none
    or cannot list levels.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = (row for row in csv.reader(file, strict=True) if row)
            header = next(rows, [])
            columns = tuple(zip(*_whole_rows(name, value, header, rows), strict=True))
    except OSError as error:
        raise SchemaError(
            f"attribute {name!r}: {key} {value!r} cannot be read ({error.strerror}).",
            remedy="Check the name; it is relative to the plan's folder.",
        ) from None
    except (UnicodeDecodeError, csv.Error):
        raise SchemaError(
            f"attribute {name!r}: {key} {value!r} is not a CSV file in UTF-8."
        ) from None
    if not columns:
        raise SchemaError(
            f"attribute {name!r}: {key} {value!r} has no categories.",
            remedy="Write a header row, then one row per category.",
        )
    if key == "labels_file" and len(columns) < 2:
        raise SchemaError(
            f"attribute {name!r}: labels_file {value!r} has one column.",
            remedy="Write categories in the first column and their labels in the second, or use "
            "levels_file.",
        )
    _refuse_fields(name, value, "level", columns[0], once=True)
    labelled = key == "labels_file"
    if labelled:
        _refuse_fields(name, value, "label", columns[1], once=True)
    for place, parents in enumerate(columns[1 + labelled :], 2 + labelled):
        _refuse_fields(name, value, f"text in column {place}", parents, once=False)
    return header, columns


def _refuse_fields(name: str, file: str, what: str, fields: Sequence[str], once: bool) -> None:
    """SchemaError for a field of a column that cannot be a name, or is there twice."""
    bad = "" in fields or any(map(str.isspace, fields)) or not "".join(fields).isprintable()
    if not bad and (not once or len(set(fields)) == len(fields)):
        return
    rows: dict[str, int] = {}
    for number, text in enumerate(fields, start=2):
        if not text.strip() or not text.isprintable():
            raise SchemaError(
                f"attribute {name!r}: row {number} of {file!r} has no {what}, or has control "
                "characters there.",
                remedy=f"Give every row a {what}.",
            )
        first = rows.setdefault(text, number)
        if once and first != number:
            raise SchemaError(
                f"attribute {name!r}: rows {first} and {number} of {file!r} have the same {what}.",
                remedy=f"Give each row its own {what}.",
            )


def _whole_rows(
    name: str, value: str, header: list[str], rows: Iterable[list[str]]
) -> Iterator[list[str]]:
    """The rows below the header, equal names of parents as one object; SchemaError for one of
    another length.
    """
    first_equal: dict[str, str] = {}
    for number, (level, *parents) in enumerate(rows, start=2):
        if len(parents) + 1 != len(header):
            raise SchemaError(
                f"attribute {name!r}: row {number} of {value!r} has {len(parents) + 1} fields, "
                f"the header has {len(header)}.",
                remedy="Give every row one field per column.",
            )
        yield [level, *map(first_equal.setdefault, parents, parents)]
