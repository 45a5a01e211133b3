"""Whether a release can be inferred from, and how long that takes: asked before anything is spent.

Public knowledge only: the mechanism's description, the published figures and bounds. Asked by
`congenial check`, by the report, and by `observe`, which refuses what does not work.

- Independent noise, conditioned on sums or not, with noise in sums or not: exact redraws, quick.
- Counts given their signs and the sums of disjoint groups: the same, with a normaliser, quick.
- Counts given more than that, where few tables conform: those are listed, quick.
- Any other law: the mechanism's density, one table at a time, which is slow; refused where bounds
  may cut the conforming tables into pieces.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

import numpy as np

from congenial.data.table import Table
from congenial.figures.limits import conforming_tables
from congenial.figures.support import Support, support
from congenial.inference.cell_noise import Noise
from congenial.inference.latent_tables import LatentTables, alternating, unproved_ties
from congenial.mechanisms.acceptance_pilot import made_up
from congenial.mechanisms.congenial import CongenialCounts, IntegerNoise
from congenial.mechanisms.mechanism import Mechanism
from congenial.mechanisms.plain import PlainContinuous
from congenial.mechanisms.wasserstein.base_measure import Base
from congenial.privacy.descriptions import TablesDescription
from congenial.sampling.tree_of_sums import nested_sums

Way = Literal["cells", "levels", "counts", "listed", "density", "none"]
Sampler = Literal["independent", "whole", "lines"]

PROJECT = "Release with nonnegative = 'project': the values before projection are used."
ESTIMATES = "congenial estimate has intervals for tables of any size and figures of any shape."
UNPROVED = "the published figures tie the cells in a way that no sampler is proved to handle"
MOST_CELLS = 50_000  # of several tables measured at once
NOT_YET = "; whether few enough are left to be listed is known once figures are published"
STEPS = 2000  # of each of 4 chains: what 4,000 draws take where nothing is added
CHAINS = 4
BEGIN, EACH_STEP, EACH_CELL = 2.0, 5e-4, 1.25e-5  # seconds: once, for a step, for a cell of it
EACH_INDEPENDENT = 4e-4  # seconds for a cell, all draws together
EACH_WHOLE, EACH_PAIR = 2e-3, 2e-6  # seconds for a cell, and for a pair of cells
MOST_WORK = 1e10  # products of weights in trees of sums: a few seconds
MOST_WHOLE = 3000  # cells of tables that are proposed as a whole: a matrix of them is factored
LEAST_MOVES = 10  # a step moves as many records as there are cells, at least these


@dataclass(frozen=True)
class Outlook:
    """How a release would be inferred from. `why`: what stands in the way, or makes it slow."""

    way: Way
    why: str = ""
    remedy: str = ""
    model: str = "multinomial"  # one that needs nothing but the release

    @property
    def works(self) -> bool:
        """Whether `infer` has a method for it."""
        return self.way != "none"

    @property
    def slow(self) -> bool:
        """Whether it may take minutes and more."""
        return self.way == "density"


def outlook(mechanism: Mechanism) -> Outlook:
    """Whether and how releases of this mechanism can be inferred from."""
    description = mechanism.description
    structure = support(mechanism.adjacency.figures, description.table)
    model = "poisson" if structure.loose else "multinomial"
    if unproved_ties(structure):
        return Outlook(
            "none",
            f"{UNPROVED} ({structure.structure})",
            "Release a table on which the figures are totals or margins, or a coarser one.",
        )
    if isinstance(mechanism, IntegerNoise | PlainContinuous):
        return Outlook("cells", model=model)
    if not isinstance(mechanism, CongenialCounts):
        why = f"the law of '{description.mechanism}' is worked out one table at a time"
        return Outlook("density", why, model=model)
    return _of_counts(mechanism, model)


def _of_counts(mechanism: CongenialCounts, model: str) -> Outlook:
    description, structure, bounds = mechanism.description, mechanism.support, mechanism.limits
    if not (structure.ties or structure.loose or bounds.boxed or bounds.sums):
        return Outlook("counts", model=model)
    if conforming_tables(description.support, description.table) is not None:
        return Outlook("listed", model=model)
    if not _connected(mechanism):
        determined = structure.totals is not None or not structure.groups
        return Outlook(
            "none",
            "the published bounds leave tables that no sampler is proved to reach"
            + (", and too many to be listed" if determined else NOT_YET),
            PROJECT,
        )
    beyond = [
        *(["figures that cross"] if structure.ties else []),
        *(["public bounds"] if bounds.boxed or bounds.sums else []),
        *(["cells in no published sum"] if structure.loose else []),
    ]
    why = (
        f"counts given that none is negative, together with {' and '.join(beyond)}, have a "
        "normaliser that is worked out one table at a time"
    )
    return Outlook("density", why, PROJECT, model)


def outlook_of_tables(description: TablesDescription) -> Outlook:
    """The same for several tables measured at once: their noise is in sums of the finest cells."""
    schema, cells = description.support.schema, _finest(description)
    if schema.size(cells) > MOST_CELLS:
        return Outlook(
            "none", f"chains over {schema.size(cells):,} cells would take hours", ESTIMATES
        )
    if unproved_ties(support(description.support, cells)):
        return Outlook("none", UNPROVED, ESTIMATES)
    return Outlook("levels")


def sampler_of_cells(mechanism: Mechanism) -> Sampler:
    """How a conjugate model is drawn where each cell has noise of its own (way "cells")."""
    description = mechanism.description
    structure = support(mechanism.adjacency.figures, description.table)
    ones = np.ones(int(np.count_nonzero(structure.labels >= 0)), dtype=np.int64)
    if not isinstance(mechanism, IntegerNoise | PlainContinuous) or not _two_by_two(structure):
        return "lines"
    noise = Noise.of_family(description.family, description.scale, ones)
    return "independent" if not len(ones) or noise.convolution_work <= MOST_WORK else "lines"


def sampler_of_tables(description: TablesDescription) -> Sampler:
    """The same where several tables are measured at once."""
    cells = _finest(description)
    if (
        description.family != "discrete_gaussian"
        or description.support.schema.size(cells) > MOST_WHOLE
    ):
        return "lines"
    return "whole" if _two_by_two(support(description.support, cells)) else "lines"


def _finest(description: TablesDescription) -> tuple[str, ...]:
    """The attributes that measured tables tell apart."""
    schema = description.support.schema
    bases = {axis.base for law in description.measured for axis in schema.axes(law.table)}
    return tuple(name for name in schema.names if name in bases)


def _two_by_two(known: Support) -> bool:
    """Whether figures fix disjoint sums, or margins of two by two groups, and nothing else."""
    return all(alternating(tie.pattern) is not None for tie in known.ties)


def usual_minutes(cells: int, sampler: Sampler = "lines") -> float:
    """About how long 4,000 draws take where the law is one of cells or sums (factor 3).

    sampler: "independent" draws, "whole" tables as proposals, or redraws along "lines". Measured on
    one core for one parameter per cell; benchmarks/posteriors.py measures it again.
    """
    seconds = {
        "independent": BEGIN + EACH_INDEPENDENT * cells,
        "whole": BEGIN + (EACH_WHOLE + EACH_PAIR * cells) * cells,
        "lines": BEGIN + STEPS * (EACH_STEP + EACH_CELL * cells),
    }
    return seconds[sampler] / 60


def outlook_of_values(loss: str, base: Base) -> Outlook:
    """The same for counts released given public information."""
    if loss == "l1" and not base.normaliser_known(loss):
        what = "parts of other counts" if base.parts else "cells in no public sum beside others"
        return Outlook(
            "none",
            f"the normaliser of counts with {what} is not worked out, and it changes with the true "
            "table",
            "Ask for a release with base_measure = 'naive', or of a table whose cells are all in "
            "public sums.",
        )
    if not base.normaliser_known(loss):
        return Outlook(
            "none",
            f"the normaliser of the {loss} loss under a {base.kind} base measure is not worked "
            "out, and it changes with the true table",
            "Ask for loss = 'l1', or base_measure = 'naive'.",
        )
    if loss == "l1" and (base.translation_invariant or base.totals):
        return Outlook("cells" if base.translation_invariant else "counts")
    return Outlook("density", f"the law of this {loss} loss is worked out one table at a time")


def _connected(mechanism: CongenialCounts) -> bool:
    """Whether moves are proved to connect all tables within the bounds.

    Units that move inside a group of known total connect all tables with bounded cells and nested
    bounded sums: these are the bases of a generalised polymatroid, which have the exchange
    property.
    """
    structure, bounds = mechanism.support, mechanism.limits
    others = bounds.sums > len(nested_sums(bounds, structure)[0])
    return not (others or (structure.ties and (bounds.boxed or bounds.sums)))


def expected_minutes(mechanism: Mechanism) -> float | None:
    """About how long chains take where each table's density is worked out, from one of them.

    Made-up tables that agree with everything published are used. None before figures are published.
    """
    structure = support(mechanism.adjacency.figures, mechanism.description.table)
    if structure.groups and structure.totals is None:
        return None
    if isinstance(mechanism, CongenialCounts) and structure.totals is not None:
        near, other = (made_up(mechanism) * 2)[:2]
    else:
        nothing = np.zeros(structure.labels.size)
        near = other = LatentTables.of_support(structure).start(nothing, nothing + np.inf)
    names, schema = mechanism.description.table, mechanism.adjacency.schema
    seconds = 0.0
    for x in (near, other):  # the first one may have to wait for code to be compiled
        counts = np.asarray(x).reshape(mechanism.shape)
        begun = time.perf_counter()
        mechanism.log_density(counts, Table(schema, names, counts))
        seconds = time.perf_counter() - begun
    return seconds * max(LEAST_MOVES, structure.labels.size) * CHAINS * STEPS / 60
