"""Cho and Awan, Formal privacy guarantees with invariant statistics: figures, examples, numbers.

Where the paper errs (docs/errata) the corrected statement is computed, and what it prints is shown
beside it under its name.
"""

from __future__ import annotations

from congenial.papers.item import Item
from congenial.papers.semi_dp import (
    census,
    examples,
    propositions,
    semi_figures,
)

SHAPES = "tables up to 3 x 3 instead of 4 x 4"
ITEMS: dict[str, Item] = {
    "figure-1": Item(
        "A swap that keeps both margins", "Figure 1, caption corrected", semi_figures.figure1
    ),
    "figure-2": Item(
        "Gaussian noise on the kernel against group privacy",
        "Figure 2, corrected",
        semi_figures.figure2,
        reduced="k = 2 to 4 instead of 2 to 10",
    ),
    "figure-3": Item(
        "K-norm noise against l1, l2 and l_infinity noise",
        "Figure 3, corrected, and larger tables",
        semi_figures.figure3,
        reduced="k = 2 and 3 instead of 2 to 6, epsilon = 1 instead of 0.1, 0.5 and 1",
    ),
    "example-1": Item(
        "Distances that count single steps", "Example 1 and Definition 1", examples.example1
    ),
    "example-2": Item("What an invariant leaves of three bits", "Example 2", examples.example2),
    "example-3": Item("The semi-adjacent parameter of three bits", "Example 3", examples.example3),
    "example-4": Item("One-way margins of a 2 x 2 table", "Example 4", examples.example4),
    "example-5": Item(
        "The semi-adjacent parameter of a 2 x 2 table, two readings",
        "Example 5",
        examples.example5,
        reduced="2 and 3 people instead of 2 to 5",
    ),
    "example-6": Item("Group privacy against Semi-DP: which pairs", "Example 6", examples.example6),
    "example-7": Item(
        "Sensitivity sets of two-way tables given both margins",
        "Example 7 and Proposition 32, corrected",
        examples.example7,
        reduced=SHAPES,
    ),
    "example-8": Item("The projection of a 2 x 2 table", "Example 8", examples.example8),
    "remark-14": Item(
        "Other choices of the semi-adjacent parameter",
        "Remark 14, with erratum",
        examples.remark14,
    ),
    "definition-10": Item(
        "Subspace privacy beside Semi-DP",
        "Definition 10, corrected, and Remark 27",
        propositions.definition10,
    ),
    "lemma-42": Item(
        "What is orthogonal to the sensitivity space",
        "Lemma 42, with erratum",
        propositions.lemma42,
    ),
    "proposition-21": Item(
        "Semi-DP first and composition first",
        "Proposition 21 and Lemma 41",
        propositions.proposition21,
    ),
    "proposition-25": Item(
        "What linear figures leave of the sensitivity space",
        "Proposition 25",
        propositions.proposition25,
    ),
    "proposition-26": Item(
        "l1, l2 and l_infinity noise, projected",
        "Proposition 26, beyond Gaussian noise",
        propositions.proposition26,
        reduced="epsilon = 1 instead of three values",
    ),
    "proposition-30": Item(
        "The K-norm sensitivity in several coordinates",
        "Proposition 30, corrected for S = {0}",
        propositions.proposition30,
        reduced="tables up to 3 x 3 instead of 3 x 4",
    ),
    "algorithm-3": Item(
        "Acceptance of the cube around the hull",
        "Algorithm 3, on the printed and the true set",
        semi_figures.algorithm3,
        reduced="20,000 proposals instead of 100,000, tables up to 3 x 3 instead of 4 x 4",
    ),
    "norm-balls": Item(
        "Volumes and noise of K-norm, as printed and true",
        "Section 4.2, corrected",
        examples.balls,
        reduced=SHAPES,
    ),
    "odds-ratio": Item(
        "Power of the private test of the odds ratio",
        "Theorem 37, corrected",
        examples.power,
        reduced="3 odds ratios up to 8 instead of 9 up to 16",
    ),
    "section-7": Item(
        "What someone who knows other records is left with",
        "Section 7",
        examples.section7,
        reduced="3 people instead of 4",
    ),
    "section-6": Item("The 2020 Census, advertised and effective", "Section 6", census.section6),
    "census-allocation": Item(
        "The 2020 allocation by level and query, given what is published exactly",
        "our study on the production settings",
        census.allocation,
        (census.ALLOCATION,),
    ),
}
