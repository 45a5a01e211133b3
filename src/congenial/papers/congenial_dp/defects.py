"""What goes wrong if the paper is followed to the letter: three demonstrations.

The printed quantile never draws +1; a chain that is stopped leaks; and rejection, which is exact,
says how rare conforming proposals are.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from congenial.papers.congenial_dp.example import EPS_CELL, TABLE1
from congenial.papers.congenial_dp.gamma import normaliser
from congenial.papers.congenial_dp.printed_chain import PrintedChain
from congenial.papers.congenial_dp.stopped import StoppedChain
from congenial.papers.item import Study
from congenial.sampling.discrete import DoubleGeometric
from congenial.sampling.randomness import SeededRandomness


def quantile_value(v: float, eps: float, printed: bool = False) -> int:
    """F^{-1}(v) of the double geometric law; `printed`: as in Appendix B, without the -1.

    >>> quantile_value(0.63, 0.5), quantile_value(0.63, 0.5, printed=True)
    (1, 2)
    """
    a = math.exp(-eps)
    if v <= 1 / (1 + a):
        return math.ceil((-math.log(v) - math.log1p(a)) / math.log(a))
    above = math.ceil((math.log1p(-v) + math.log1p(a)) / math.log(a))
    return above if printed else above - 1


def printed_log_pmf(u: Any, eps: Fraction) -> Any:
    """log mass the printed quantile gives u: positive values are one too large, +1 is empty."""
    at = np.asarray(u)
    shifted = np.where(at > 1, at - 1, at)
    return np.where(at == 1, -np.inf, DoubleGeometric(eps).log_pmf(shifted))


def quantile(study: Study) -> dict[str, Any]:  # noqa: ARG001 - nothing is drawn
    """The law of the noise with the printed quantile, and the loss of one person's move."""
    eps, law = EPS_CELL, DoubleGeometric(EPS_CELL)
    u = np.arange(-6, 8)
    rows = []
    for words, logs in (("correct", law.log_pmf(u)), ("printed", printed_log_pmf(u, eps))):
        moved = law.log_pmf(u - 1) if words == "correct" else printed_log_pmf(u - 1, eps)
        with np.errstate(invalid="ignore"):
            loss = np.abs(moved - logs)
        for k, value in enumerate(u.tolist()):
            size = float(loss[k])
            rounded = "infinite" if math.isinf(size) else round(size, 6)
            rows.append([words, value, float(np.exp(logs[k])), rounded])
    return {
        "columns": ["quantile", "noise", "probability", "loss_of_one_cell"],
        "rows": rows,
        "notes": [
            "Appendix B prints ceil(...) for the upper branch where ceil(...) - 1 is right: +1 is "
            "never drawn. A released count of s + 1 then rules s out: no epsilon holds.",
            "The loss is |log p(u - 1) - log p(u)|: what one count more or less does to one cell.",
        ],
        "chart": {"kind": "bar", "x": "noise", "y": "probability", "by": "quantile"},
    }


def stopped_chain(study: Study) -> dict[str, Any]:
    """Loss of Algorithm 1 after t steps from the truth: four bins, five people."""
    steps = (1, 10, 50, 100) if study.quick else (1, 2, 5, 10, 20, 50, 100, 200, 500)
    chain = StoppedChain()
    limit = chain.loss(None)
    rows = [[t, "stopped chain", chain.loss(t)] for t in steps]
    rows += [[t, "exact draw", limit] for t in steps]
    return {
        "columns": ["steps", "sampler", "loss"],
        "rows": rows,
        "notes": [
            "eps_cell = 0.5, proposal 0.6; neighbours are one record apart; exact, by powers of "
            f"the transition matrices. The conditional mechanism loses {limit:.4f}.",
            "A chain that starts at the confidential table and is stopped publishes that table too "
            "often; how much it adds must be proved, or exact draws used.",
        ],
        "chart": {
            "kind": "line",
            "x": "steps",
            "y": "loss",
            "by": "sampler",
            "x_log": True,
            "x_title": "steps of the chain",
            "y_title": "loss (epsilon)",
        },
    }


def rejection(study: Study) -> dict[str, Any]:
    """Proposals per exact draw by rejection, for several proposals, predicted and counted."""
    randomness = SeededRandomness(study.seed)
    log_Z, rows = normaliser(TABLE1), []
    plain = 46 * math.log(math.tanh(float(EPS_CELL) / 2)) + log_Z
    rows.append(["the unconstrained mechanism", 0.5, math.exp(-plain), None])
    for percent in (50,) if study.quick else (50, 45):
        chain = PrintedChain(TABLE1, eps_proposal=Fraction(percent, 100))
        inside = 43 * math.log(math.tanh(percent / 200)) + log_Z
        draws = 20 if study.quick else 2_000 if percent == 50 else 100
        study.progress(f"rejection, proposal eps {percent / 100}")
        accepted = chain.reject(randomness, draws)[1] / draws
        rows.append(["43 cells proposed, 3 solved for", percent / 100, math.exp(-inside), accepted])
    return {
        "columns": ["proposal", "proposal_eps", "proposals_per_draw", "counted"],
        "rows": rows,
        "notes": [
            "Exact and independent draws, unlike the chain's. A proposal with eps above eps_cell "
            "has lighter tails than the law and cannot be used.",
            "The second column is 1 / (Z(s) q(s)), from the exact normaliser.",
        ],
    }
