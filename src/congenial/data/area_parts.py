"""A geography cut into parts: every part is a schema of its own, and so is what lies above them.

A geography is one attribute with coarser names that nest (block < tract < county < state). `parts`
names one of them: its levels are the parts. Tables over finer names fall apart into the parts;
tables over `parts` itself, over coarser names, or over no geography at all lie above them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from congenial.data.attribute import REFUSE, Attribute, Axis
from congenial.data.schema import Schema, near
from congenial.data.workload import Ints
from congenial.errors import SchemaError


@dataclass(frozen=True)
class AreaParts:
    """A schema and the name of the parts into which its geography is cut.

    >>> schema = Schema.from_dict({
    ...     "block": {"levels": ["1", "2", "3"], "within": {"state": ["P", "P", "Q"]}},
    ...     "sex": {"levels": ["f", "m"]},
    ... })
    >>> parts = AreaParts(schema, "state")
    >>> parts.labels, parts.schema_of(0).attribute("block").levels
    (('P', 'Q'), ('1', '2'))
    """

    schema: Schema
    parts: str

    def __post_init__(self) -> None:
        attribute = self.schema.attribute(self.schema.axis(self.parts).base)
        if self.parts == attribute.name:
            raise SchemaError(
                f"parts = {self.parts!r} is the finest geography, so every part would be a single "
                "area.",
                remedy=f"Name a coarser one. {near(self.parts, attribute.coarser)}"
                if attribute.coarser
                else f"Give {self.parts!r} coarser names with within or a levels_file.",
            )
        if (attribute.missing, attribute.other) != (REFUSE, REFUSE):
            raise SchemaError(
                f"attribute {attribute.name!r} has a category for missing or other values, which "
                "belongs to no part.",
                remedy="Leave out missing and other, or list that category as an area with its "
                "parents.",
            )

    @cached_property
    def attribute(self) -> Attribute:
        """The geography."""
        return self.schema.attribute(self._axis.base)

    @property
    def _axis(self) -> Axis:
        return self.schema.axis(self.parts)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the parts, in order."""
        return self._axis.levels

    @cached_property
    def _by_part(self) -> tuple[Ints, Ints]:
        of_base = self._axis.of_base
        order = np.argsort(of_base, kind="stable")
        return order, np.searchsorted(of_base[order], np.arange(len(self.labels) + 1))

    def areas(self, part: int) -> Ints:
        """The finest areas of a part, as numbers of levels."""
        order, starts = self._by_part
        return order[starts[part] : starts[part + 1]]

    # ---- names -------------------------------------------------------------------------------

    def geographic(self, names: Sequence[str]) -> str | None:
        """The geographic axis of a table; None if it has none."""
        base = self.attribute.name
        return next((name for name in names if self.schema.axis(name).base == base), None)

    def is_below(self, names: Sequence[str]) -> bool:
        """Whether a table shows areas finer than the parts; SchemaError where they do not nest."""
        name = self.geographic(names)
        if name is None or name == self.parts:
            return False
        axis = self.schema.axis(name)
        try:
            self._axis.map_from(axis)
        except SchemaError:
            pass
        else:
            return axis.size > len(self.labels)
        try:
            axis.map_from(self._axis)
        except SchemaError:
            raise SchemaError(
                f"{name!r} and {self.parts!r} cross: a {name} lies in two of {self.parts!r}, and "
                f"a {self.parts} in two of {name!r}.",
                remedy="Give every area one parent, or choose other parts.",
            ) from None
        return False

    def chain(self, tables: Sequence[Sequence[str]]) -> tuple[str, ...]:
        """The geographic names of the tables and the parts, fine to coarse; refused if some cross.

        A county that lies in two states is such a crossing.
        """
        names = {self.attribute.name, self.parts}
        names |= {name for one in tables if (name := self.geographic(one)) is not None}
        ordered = sorted(names, key=lambda name: -self.schema.axis(name).size)
        for fine, coarse in pairwise(ordered):
            try:
                self.schema.axis(coarse).map_from(self.schema.axis(fine))
            except SchemaError:
                raise SchemaError(
                    f"the geography is not nested: some {fine} lies in two of {coarse!r}.",
                    remedy=(
                        "Give every area one parent, and make names unique, for example with the "
                        "parent's code in front."
                    ),
                ) from None
        return tuple(ordered)

    # ---- schemas -----------------------------------------------------------------------------

    def schema_of(self, part: int) -> Schema:
        """The schema of one part: its areas, with all of their coarser names."""
        at = self.areas(part)
        one = self.attribute
        levels = tuple(one.levels[i] for i in at)
        coarser = {name: tuple(parents[i] for i in at) for name, parents in one.coarser.items()}
        made = Attribute(
            one.name, "categorical", levels=levels, coarser=coarser, from_file=one.from_file
        )
        return self._with(made)

    @cached_property
    def upper(self) -> Schema:
        """The schema above the parts: the parts are the finest geography."""
        first = np.array([self.areas(part)[0] for part in range(len(self.labels))])
        coarser = {}
        for name, parents in self.attribute.coarser.items():
            axis = self.schema.axis(name)
            if name != self.parts and axis.size <= len(self.labels) and not self.is_below((name,)):
                coarser[name] = tuple(parents[i] for i in first)
        return self._with(Attribute(self.parts, "categorical", levels=self.labels, coarser=coarser))

    def _with(self, geography: Attribute) -> Schema:
        """The schema with another geography in the same place."""
        return Schema(
            tuple(
                geography if one.name == self.attribute.name else one
                for one in self.schema.attributes
            )
        )
