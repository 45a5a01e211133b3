"""Chen and Ohrimenko, Protecting global properties of datasets with distribution privacy.

Tables 2 and 3 and Figures 1 to 5 by the paper's protocol, exact expectations beside what is drawn,
and two studies of ours. Errata: docs/errata.
"""

from __future__ import annotations

from congenial.papers.distribution_privacy import (
    distribution_tables,
    studies,
)
from congenial.papers.distribution_privacy.adult import FILE
from congenial.papers.item import Item

LAWS = "laws fitted to 200 subsets instead of 1,000"
ATTACK = f"{LAWS}, the attack repeated 4 times instead of 50"
ITEMS: dict[str, Item] = {
    "table-2": Item(
        "L2 errors, income gap 0.1", "Table 2", distribution_tables.table2, (FILE,), LAWS
    ),
    "table-3": Item(
        "Accuracy of the attack on income", "Table 3", distribution_tables.table3, (FILE,), ATTACK
    ),
    "figure-1": Item("W_inf against (W, delta)-closeness", "Figure 1", distribution_tables.figure1),
    "figure-2": Item(
        "L2 error against epsilon", "Figure 2", distribution_tables.figure2, (FILE,), LAWS
    ),
    "figure-3": Item(
        "L2 error against the gap",
        "Figure 3",
        distribution_tables.figure3,
        (FILE,),
        f"{LAWS}, 4 gaps instead of 20",
    ),
    "figure-4": Item(
        "Accuracy of the attack against epsilon",
        "Figure 4",
        distribution_tables.figure4,
        (FILE,),
        ATTACK,
    ),
    "figure-5": Item(
        "Sampled statistics and Gaussian fits, with tests",
        "Figure 5",
        distribution_tables.figure5,
        (FILE,),
        LAWS,
    ),
    "example-2.1": Item(
        "Hiding a share to within an absolute error", "Example 2.1", studies.example21
    ),
    "example-4.3": Item(
        "Noise of every mechanism in the worked example",
        "Section 4.3, corrected",
        studies.example,
    ),
    "grid": Item(
        "Noise along one direction, stripped from statistics on a grid",
        "our study",
        studies.grid,
        (FILE,),
        ATTACK,
    ),
}
