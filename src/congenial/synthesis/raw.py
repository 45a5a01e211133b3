"""Certified parameters from raw numbers, without a schema's levels: any size of number is allowed.

A release uses levels, because what it publishes has them. This is for parameters of one's own
models, and for checking the certificate on records as hostile as one likes.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from congenial.data.argument_rules import EXACT, VECTOR, takes
from congenial.errors import GuaranteeError
from congenial.synthesis.record_model import LevelModel
from congenial.synthesis.record_scores import FULL, record_totals
from congenial.synthesis.weighted_posterior import Finite


@takes(GuaranteeError, model=LevelModel, records=VECTOR, bound=EXACT)
def certified_law(model: LevelModel, records: Any, bound: Fraction) -> Finite:
    """CONFIDENTIAL: the exact law of a certified draw of theta (a row number of model.points()).

    A draw is M-private when a record is added or removed and 2M-private when one is replaced, for
    all records there could be, NaN and infinities included. Each distinct record is scored by
    itself: a batch of them could round differently next to other records.

    >>> from congenial.synthesis.record_model import Grid
    >>> from congenial.synthesis.models import PoissonColumn
    >>> law = certified_law(PoissonColumn(Grid(1, 9, 3)), np.array([4.0, 1e300]), Fraction(1))
    >>> law.log_probabilities.shape
    (3,)
    """
    likelihood = getattr(model, "log_likelihood", None)
    if likelihood is None:
        raise GuaranteeError(
            f"model {model.kind!r} has no likelihood of raw numbers.",
            remedy="Use it on the levels of a schema.",
        )
    theta = model.points()
    total = np.zeros(len(theta), dtype=np.int64)
    distinct, counts = np.unique(np.asarray(records, dtype=float), axis=0, return_counts=True)
    for record, count in zip(distinct, counts, strict=True):
        with np.errstate(all="ignore"):
            column = likelihood(theta, record[None])
        total += record_totals(column, np.array([count]), bound)[0]
    return Finite(total, model.log_prior(theta), bound / FULL)
