"""The models that come with Congenial, and how a plan names them."""

from __future__ import annotations

from typing import Any

from congenial.data.schema import near
from congenial.errors import GuaranteeError
from congenial.synthesis.models.category_columns import MultinomialColumn, Spike
from congenial.synthesis.models.count_columns import BinomialColumn, PoissonColumn
from congenial.synthesis.models.normal_columns import LinearRegression, NormalColumn
from congenial.synthesis.record_model import LevelModel

__all__ = [
    "MODELS",
    "BinomialColumn",
    "LinearRegression",
    "MultinomialColumn",
    "NormalColumn",
    "PoissonColumn",
    "Spike",
]

MODELS: dict[str, type[LevelModel]] = {
    model.kind: model
    for model in (
        MultinomialColumn,
        PoissonColumn,
        BinomialColumn,
        NormalColumn,
        LinearRegression,
        Spike,
    )
}


def read_model(data: Any, where: str) -> LevelModel:
    """A model from plain data such as {"kind": "poisson", "mean": [1, 50, 200]}.

    >>> read_model({"kind": "binomial", "share": [0.1, 0.9, 81]}, "column 'vote'").points().shape
    (81, 1)
    """
    kind = data.get("kind") if isinstance(data, dict) else data
    if not isinstance(kind, str) or kind not in MODELS:
        raise GuaranteeError(
            f"{where}: model {kind!r} is not known.", remedy=near(str(kind), MODELS)
        )
    fields = dict(data) if isinstance(data, dict) else {}
    if "model" in fields:  # the model inside a spike
        fields["model"] = read_model(fields["model"], where)
    return MODELS[kind].from_dict(fields, where)
