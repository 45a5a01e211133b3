"""Seeman, Reimherr and Slavkovic, Formal privacy for partially private data.

The Pennsylvania case study with exact draws, and the paper's statements where they can be computed.
Where the paper errs (docs/errata) the corrected statement is computed, and what it prints is shown
beside it under its name.
"""

from __future__ import annotations

from congenial.papers.item import Item
from congenial.papers.partially_private_data import (
    pennsylvania,
    theory,
)
from congenial.papers.partially_private_data.pennsylvania import FILE

RUNS = "5 replicates instead of 100, 3 months instead of 23"
DRAWS = "20,000 draws instead of 400,000"
ITEMS: dict[str, Item] = {
    "figure-1": Item(
        "Released case rates of three counties",
        "Figure 1, l1 and l2 loss",
        pennsylvania.figure1,
        (FILE,),
        RUNS,
    ),
    "figure-2": Item(
        "Relative errors of released cases",
        "Figure 2, l1 and l2 loss",
        pennsylvania.figure2,
        (FILE,),
        RUNS,
    ),
    "figure-3": Item(
        "What post-processing contracts",
        "Figure 3, l1 and l2 loss",
        pennsylvania.figure3,
        (FILE,),
        RUNS,
    ),
    "prior-sweep": Item(
        "The prior's strength and smoothing, which the paper leaves open",
        "Section 4.2; our study, l1 loss",
        pennsylvania.sweep,
        (FILE,),
        "3 replicates instead of 10, 3 months instead of 23, two alphas and one kappa instead of "
        "four and three",
    ),
    "figure-4": Item(
        "How far a count moves with one person's answer",
        "Figure 4, corrected",
        theory.figure4,
        reduced="three n up to 50 instead of seven up to 200",
    ),
    "corollary-13": Item(
        "Errors of projected and of intrinsic noise",
        "Corollary 13, exact",
        theory.corollary13,
        reduced=DRAWS,
    ),
    "manifold": Item(
        "Noise on a circle and a sphere, and projected on them",
        "Remark after Corollary 13",
        theory.manifold,
        reduced="20,000 draws instead of 200,000",
    ),
    "example-1": Item(
        "A mean given several public figures",
        "Example 1 and Eq 16, corrected",
        theory.example1,
        reduced="101 covariances of the mean instead of 801",
    ),
    "factor-2": Item(
        "The normaliser under signs: with and without the factor 2",
        "Theorem 9, with erratum",
        theory.factor2,
        reduced="two tables instead of four",
    ),
    "prior-pmf": Item(
        "The Dirichlet-multinomial pmf, printed and correct",
        "Section 4.2, with erratum",
        theory.prior_pmf,
    ),
    "gradient-rate": Item(
        "Errors of the gradient mechanism as n grows",
        "Theorem 11; our study",
        theory.gradient,
        reduced="200 draws instead of 2,000, n up to 400 instead of 6,400, a coarser grid for the "
        "logistic regression",
    ),
    "algorithms": Item(
        "Posterior means by Algorithms 1 and 2, printed and corrected",
        "Algorithms 1 and 2, with errata",
        theory.posterior_means,
        reduced=DRAWS,
    ),
}
