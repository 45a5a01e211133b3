"""Parameters of a promise that nobody can mean: one place for the limits of plans, calls, bundles.

Beyond 500 an epsilon, rho, mu or M promises nothing that differs from publishing the data; a
positive parameter below 1e-100 asks for noise that drowns every count. The upper limit leaves
numerics room: exp(-epsilon) is 0 in double precision from 745 on, where the logarithm of a weight
is no number any more, and from 1e8 on noise is drawn with more digits than anybody waits for.
"""

from __future__ import annotations

from fractions import Fraction

from congenial.errors import GuaranteeError

LARGEST = 500
SMALLEST = Fraction(1, 10**100)
LIMITED = ("epsilon", "rho", "mu", "delta", "M")
# fields of the families of trade-off functions -> what they are called
_FIELDS = {"eps": "epsilon", "rho": "rho", "mu": "mu", "dlt": "delta"}


def absurd(name: str, value: Fraction | float) -> str:
    """Why a parameter cannot be meant, as the end of a sentence; empty if it can.

    >>> absurd("epsilon", Fraction(10**8))
    'epsilon is above 500, which protects nobody; publish the table exactly, or use 0.1 to 10'
    >>> absurd("epsilon", Fraction(3)), absurd("epsilon", 0)
    ('', '')
    """
    if name not in LIMITED:
        return ""
    if value > LARGEST:
        return (
            f"{name} is above {LARGEST}, which protects nobody; publish the table exactly, or "
            "use 0.1 to 10"
        )
    if 0 < value < SMALLEST:
        return f"{name} is below 1e-100, which no data can bear; use 1e-12 or more"
    return ""


def absurd_promise(tradeoff: object) -> str:
    """Why the parameters of a promise cannot be meant; empty if they can."""
    found = (
        absurd(name, getattr(tradeoff, field))
        for field, name in _FIELDS.items()
        if hasattr(tradeoff, field)
    )
    return next(filter(None, found), "")


def refuse_absurd(tradeoff: object) -> None:
    """Raise GuaranteeError for a target that nobody can mean."""
    why = absurd_promise(tradeoff)
    if why:
        what, _, remedy = why.partition("; ")
        raise GuaranteeError(f"{what}.", remedy=f"{remedy[0].upper()}{remedy[1:]}.")
