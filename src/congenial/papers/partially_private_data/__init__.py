"""Seeman, Reimherr and Slavkovic, Formal privacy for partially private data.

The Pennsylvania case study with exact draws, and the paper's statements where they can be computed.
Where the paper errs (docs/errata) the corrected statement is computed, and what it prints is shown
beside it under its name.
"""

from __future__ import annotations

from congenial.papers.item import Item
from congenial.papers.partially_private_data import algorithms, figures, theory
from congenial.papers.partially_private_data.pennsylvania import FILE

ITEMS: dict[str, Item] = {
    "figure-1": Item(
        "Released case rates of three counties", "Figure 1, l1 loss", figures.figure1, (FILE,)
    ),
    "figure-2": Item(
        "Relative errors of released cases", "Figure 2, l1 loss", figures.figure2, (FILE,)
    ),
    "figure-3": Item(
        "What post-processing contracts", "Figure 3, l1 loss", figures.figure3, (FILE,)
    ),
    "prior-sweep": Item(
        "The prior's strength and smoothing, which the paper leaves open",
        "Section 4.2; our study, l1 loss",
        figures.sweep,
        (FILE,),
    ),
    "figure-4": Item(
        "How far a count moves with one person's answer", "Figure 4, corrected", theory.figure4
    ),
    "corollary-13": Item(
        "Errors of projected and of intrinsic noise", "Corollary 13, exact", theory.corollary13
    ),
    "factor-2": Item(
        "The normaliser under signs: with and without the factor 2",
        "Theorem 9, with erratum",
        theory.factor2,
    ),
    "prior-pmf": Item(
        "The Dirichlet-multinomial pmf, printed and correct",
        "Section 4.2, with erratum",
        theory.prior_pmf,
    ),
    "gradient-rate": Item(
        "Errors of the gradient mechanism as n grows", "Theorem 11; our study", theory.gradient
    ),
    "algorithms": Item(
        "Posterior means by Algorithms 1 and 2, printed and corrected",
        "Algorithms 1 and 2, with errata",
        algorithms.run,
    ),
}
