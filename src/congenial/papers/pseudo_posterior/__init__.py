"""Savitsky, Williams and Hu, Bayesian pseudo posterior mechanism: tables and figures.

The paper's epsilon is a local estimate, not a guarantee, and every item says so; section 5 has the
certified mode beside it at the same epsilon.
"""

from __future__ import annotations

from congenial.papers.item import Item
from congenial.papers.pseudo_posterior import expenditure, simulation
from congenial.papers.pseudo_posterior.expenditure import FILE

DATASETS = "40 datasets per n instead of 400, none of the largest n (6,400)"
FITS = "every 12th record, 3 components instead of 10, 100 draws of 2 short chains instead of 1,000"
UTILITY = f"{FITS}; with so few records EMweighted may be ahead of DPweighted, which the full run "
UTILITY += "and the paper reverse"
ITEMS: dict[str, Item] = {
    "figure-1": Item(
        "Local Lipschitz bounds of Poisson samples",
        "Figure 1, section 4.4",
        simulation.figure1,
        reduced=DATASETS,
    ),
    "figure-2": Item(
        "Posterior means of Poisson samples",
        "Figure 2, section 4.4",
        simulation.figure2,
        reduced=DATASETS,
    ),
    "theorem-2": Item(
        "How weighted posteriors contract",
        "Theorem 2 and Assumption 4, measured",
        simulation.theorem2,
        reduced="20 datasets per n instead of 100, none of the largest n (6,400)",
    ),
    "definition-4": Item(
        "Datasets beyond epsilon, with factors of safety",
        "Definition 4 and section 4.5, measured",
        simulation.definition4,
        reduced=DATASETS,
    ),
    "one-record": Item(
        "Replacing one record exceeds the paper's epsilon",
        "our study of section 4.4's Weighted-M",
        simulation.one_record,
        reduced="4 datasets per n instead of 50",
    ),
    "figure-3": Item("Family income", "Figure 3, another quarter", expenditure.figure3, (FILE,)),
    "figure-4": Item(
        "Lipschitz bounds by record, four synthesizers",
        "Figure 4, another quarter",
        expenditure.figure4,
        (FILE,),
        FITS,
    ),
    "figure-5": Item(
        "Mean income of synthetic data",
        "Figure 5, another quarter",
        expenditure.figure5,
        (FILE,),
        UTILITY,
    ),
    "figure-6": Item(
        "90th percentile of synthetic income",
        "Figure 6, another quarter",
        expenditure.figure6,
        (FILE,),
        UTILITY,
    ),
    "figure-7": Item(
        "90th percentile against the weights' scale and shift",
        "Figure 7, another quarter",
        expenditure.figure7,
        (FILE,),
        f"2 settings (c, g) instead of 6, {UTILITY}",
    ),
    "table-2": Item(
        "Delta against the weights' scale and shift",
        "Table 2, another quarter",
        expenditure.table2,
        (FILE,),
        f"2 settings (c, g) instead of 6, {UTILITY}",
    ),
}
