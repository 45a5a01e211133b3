"""Gong and Meng, Congenial differential privacy under mandated disclosure: tables and figures.

Where the paper errs (docs/errata) the corrected statement is computed; the misprints are kept as
demonstrations of what they do.
"""

from __future__ import annotations

from congenial.papers.congenial_dp import counties, defects, figures, gamma, tables, trade
from congenial.papers.item import Item

ITEMS: dict[str, Item] = {
    "table-1": Item(
        "A confidential table and an exact draw with its figures", "Table 1", tables.table1
    ),
    "table-2": Item(
        "Two bins with a fixed total, three methods", "Table 2, corrected", tables.table2
    ),
    "figure-1": Item("Distance from the truth, four methods", "Figure 1", figures.figure1),
    "figure-2": Item(
        "Acceptance of Algorithm 1 against its proposal",
        "Figure 2, and index sets",
        figures.figure2,
    ),
    "figure-3": Item("Traces of Algorithm 1 and of exact draws", "Figure 3", figures.figure3),
    "attained": Item(
        "The epsilon that projecting two bins attains", "Theorem A.1, Appendix A", tables.attained
    ),
    "densities": Item("Noise of the first of two bins", "(4.6), (A.1), (A.2)", tables.densities),
    "gamma": Item("What conditioning really costs", "Theorem 2.1, section 5.1", gamma.run),
    "rejection": Item("Proposals for one exact draw", "Section 2.3", defects.rejection),
    "stopped-chain": Item(
        "A chain that is stopped leaks",
        "Algorithm 1, section 5.4; our study",
        defects.stopped_chain,
    ),
    "quantile": Item(
        "The printed quantile never draws +1", "Appendix B, with erratum", defects.quantile
    ),
    "condition-or-project": Item(
        "Every method at one promise", "Section 4; our study on Table 1", trade.run
    ),
    "counties": Item(
        "Errors by size of cell, all counties of 2010",
        "our study",
        counties.by_cell,
        (counties.SF1,),
    ),
    "counties-by-size": Item(
        "Errors by size of county, all counties of 2010",
        "our study",
        counties.by_county,
        (counties.SF1,),
    ),
    "counties-topdown": Item(
        "California: the Census Bureau's TopDown output, and ours",
        "our study",
        counties.beside_topdown,
        (counties.SF1, counties.TOPDOWN, counties.ALLOCATION),
    ),
}
