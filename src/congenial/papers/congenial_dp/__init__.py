"""Gong and Meng, Congenial differential privacy under mandated disclosure: tables and figures.

Where the paper errs (docs/errata) the corrected statement is computed; the misprints are kept as
demonstrations of what they do.
"""

from __future__ import annotations

from congenial.papers.congenial_dp import (
    congenial_statements,
    congenial_tables,
    counties,
)
from congenial.papers.item import Item

STATES = "the counties of Delaware, Hawaii and Rhode Island instead of all"
ITEMS: dict[str, Item] = {
    "table-1": Item(
        "A confidential table and an exact draw with its figures",
        "Table 1",
        congenial_tables.table1,
    ),
    "table-2": Item(
        "Two bins with a fixed total, three methods",
        "Table 2, corrected",
        congenial_tables.table2,
    ),
    "figure-1": Item(
        "Distance from the truth, four methods",
        "Figure 1",
        congenial_tables.figure1,
        reduced="4 tables with 10 releases each instead of 20 with 100",
    ),
    "figure-2": Item(
        "Acceptance of Algorithm 1 against its proposal",
        "Figure 2, and index sets",
        congenial_tables.figure2,
        reduced="5,000 draws instead of 400,000, proposals in steps of 0.2 instead of 0.05",
    ),
    "figure-3": Item(
        "Traces of Algorithm 1 and of exact draws",
        "Figure 3",
        congenial_tables.figure3,
        reduced="500 steps instead of 10,000",
    ),
    "attained": Item(
        "The epsilon that projecting two bins attains",
        "Theorem A.1, Appendix A",
        congenial_tables.attained,
        reduced="21 values of beta instead of 101",
    ),
    "densities": Item(
        "Noise of the first of two bins",
        "(4.6), (A.1), (A.2)",
        congenial_tables.densities,
        reduced="61 points of each curve instead of 241",
    ),
    "theorem-1.3": Item(
        "From prior to posterior, with and without independence",
        "Theorem 1.3, with its assumption",
        congenial_statements.theorem13,
    ),
    "definition-1.4": Item(
        "Towards epsilon = 0", "Definition 1.4, (1.6) and (5.2)", congenial_statements.definition14
    ),
    "posterior-to-posterior": Item(
        "One result, two databases: how far odds differ",
        "(5.1), section 5.2",
        congenial_statements.posterior_to_posterior,
    ),
    "example-5.2": Item(
        "A mandate that fixes the answer", "Example 5.2", congenial_statements.example52
    ),
    "gamma": Item(
        "What conditioning really costs",
        "Theorem 2.1, section 5.1",
        congenial_statements.run,
        reduced="the rows about Table 1 are left out",
    ),
    "rejection": Item(
        "Proposals for one exact draw",
        "Section 2.3",
        congenial_statements.rejection,
        reduced="20 draws with proposal eps 0.5 instead of 2,000, none with 0.45",
    ),
    "stopped-chain": Item(
        "A chain that is stopped leaks",
        "Algorithm 1, section 5.4; our study",
        congenial_statements.stopped_chain,
        reduced="4 lengths up to 100 steps instead of 9 up to 500",
    ),
    "quantile": Item(
        "The printed quantile never draws +1",
        "Appendix B, with erratum",
        congenial_statements.quantile,
    ),
    "condition-or-project": Item(
        "Every method at one promise",
        "Section 4; our study on Table 1",
        congenial_tables.condition_or_project,
        reduced="10 draws instead of 200",
    ),
    "counties": Item(
        "Errors by size of cell, counties of 2010",
        "our study",
        counties.by_cell,
        (counties.SF1,),
        STATES,
    ),
    "counties-by-size": Item(
        "Errors by size of county, counties of 2010",
        "our study",
        counties.by_county,
        (counties.SF1,),
        STATES,
    ),
    "counties-topdown": Item(
        "California: the Census Bureau's TopDown output, and ours",
        "our study",
        counties.beside_topdown,
        (counties.SF1, counties.TOPDOWN, counties.ALLOCATION),
        "epsilon = 1 and 4 instead of five values, one draw instead of 5",
    ),
}
