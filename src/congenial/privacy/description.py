"""Description of a mechanism's law: what ledger, bundle and analyst read instead of code.

It says what was asked (phi, the released table), the raw law before any post-processing, its
rational parameter, the set it lives on, and what its numerics cost. Nothing in it depends on
confidential data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal

from congenial.data.magnitude import Magnitude
from congenial.data.rational import fraction, written
from congenial.data.schema import Schema
from congenial.errors import BundleError, GuaranteeError, some_of
from congenial.figures.figures import Figures
from congenial.figures.limits import limits

Family = Literal[
    "double_geometric",
    "discrete_gaussian",
    "laplace",
    "gaussian",
    "k_norm_2",
    "k_norm_3",
    "l2_norm",
    "linf_norm",
]

Norm = Literal["l1", "l2", "gauge", "length", "linf"]  # l2: squares add up; length: their root

VERSION = 1
# The rate of a law: promises are at most 500, and exp(-700) is a number yet; noise of 1e15 fits no
# 64 bits with its tails, and 1 - exp(-1e-15) is a number yet.
STEEPEST, FLATTEST = Fraction(700), Fraction(1, 10**15)
SQUARES: tuple[Norm, ...] = ("l2", "length")  # whose parameter is a square

LAWS: dict[Family, str] = {
    "double_geometric": "p(u) ~ exp(-eps_cell * ||u||_1) on the integers",
    "discrete_gaussian": "p(u) ~ exp(-||u||_2^2 / (2 sigma^2)) on the integers",
    "laplace": "p(u) ~ exp(-eps_cell * ||u||_1) on the reals",
    "gaussian": "p(u) ~ exp(-||u||_2^2 / (2 sigma^2)) on the reals",
    "k_norm_2": "p(u) ~ exp(-epsilon * gauge(u)) on the integers, gauge of the hull of swaps",
    "k_norm_3": "p(u) ~ exp(-epsilon * gauge(u)) on the integers, gauge of the hull of swaps and "
    "hexagons",
    "l2_norm": "p(u) ~ exp(-rate * ||u||_2) on the integers",
    "linf_norm": "p(u) ~ exp(-rate * max |u|) on the integers",
}
NORMS: dict[str, Norm] = {
    "double_geometric": "l1",
    "discrete_gaussian": "l2",
    "laplace": "l1",
    "gaussian": "l2",
    "k_norm_2": "gauge",
    "k_norm_3": "gauge",
    "l2_norm": "length",
    "linf_norm": "linf",
}
HULLS: dict[str, int] = {"k_norm_2": 2, "k_norm_3": 3}  # records the hull's tables are apart


_PARAMETER: dict[Norm, str] = {
    "l1": "eps_cell",
    "l2": "sigma_squared",
    "gauge": "epsilon",
    "length": "rate_squared",
    "linf": "rate",
}


def _norm(family: str) -> Norm:
    """The norm of a family's law; a family without one is refused, never taken for another."""
    if family not in NORMS:
        raise BundleError(
            f"noise of the family '{family}' is not known.",
            remedy=f"Known are {', '.join(NORMS)}; a newer version may know more.",
        )
    return NORMS[family]


def named_mechanism(data: Mapping[str, Any]) -> str:
    """The registered name of the mechanism, as written."""
    name = data["mechanism"]
    if not isinstance(name, str):
        raise BundleError(
            "the name of the mechanism is not text.",
            remedy="Do not use this bundle; get it from its publisher.",
        )
    return name


def _scale(data: Mapping[str, Any]) -> Fraction:
    """The parameter of a law; refused where no promise that can be meant has such noise."""
    norm, scale = _norm(data["family"]), fraction(_parameter(data))
    rate = 1 / scale if scale and norm == "l2" else scale
    _refuse_useless(rate, squared=norm in SQUARES)
    return scale


def _refuse_useless(rate: Fraction, squared: bool = False) -> None:
    power = 2 if squared else 1
    if rate > STEEPEST**power or 0 < rate < FLATTEST**power:
        raise BundleError(
            f"noise with a rate above {STEEPEST} hides nothing."
            if rate > 1
            else f"noise with a rate below {float(FLATTEST):g} leaves no information.",
            remedy="Do not use this bundle; get it from its publisher.",
        )


def _parameter(data: Mapping[str, Any]) -> Any:
    """The one parameter of a law as written, under the name that law gives it."""
    name = _PARAMETER[_norm(data["family"])]
    if set(data["parameter"]) != {name}:
        raise BundleError(
            f"noise of the family '{data['family']}' has exactly one parameter, '{name}'.",
            remedy="Do not use this bundle; get it from its publisher.",
        )
    return data["parameter"][name]


@dataclass(frozen=True, repr=False)
class Description:
    """The law of one release: y = phi(x) + u, u given the support.

    `table`: axes of the released table (phi). `scale`: eps per cell for the l1 families, sigma
    squared for the Gaussian ones, epsilon per unit of gauge for K-norm or of the largest entry, the
    square of epsilon per unit of length for the l2 norm, exactly as used by the sampler. `support`:
    the figures on which u is conditioned (none: every cell is free). `nonnegative`: conditioned on
    y >= 0 too, and on every bound in `support` that the table can show, which makes the law of u
    depend on x and has a price. `log_ratio_error` (H) bounds |log p~/p| of a whole draw; it
    is 0 for exact samplers. `units`: the table counts units that own several rows. `magnitude`: the
    number that is summed, in steps of which everything here is; None: people are counted.
    """

    mechanism: str
    table: tuple[str, ...]
    family: Family
    scale: Fraction
    support: Figures
    nonnegative: bool = False
    log_ratio_error: Fraction = Fraction(0)
    units: bool = False
    magnitude: Magnitude | None = None

    columns: ClassVar[int] = 2  # numbers of a cell: as published and as drawn

    def __repr__(self) -> str:
        return f"Description({self.mechanism}: {some_of(self.table)[:120]}; scale {self.scale})"

    def __post_init__(self) -> None:
        if self.family not in LAWS:
            raise GuaranteeError(
                f"family '{self.family}' is not known.", remedy=f"Known: {', '.join(LAWS)}."
            )
        if self.scale <= 0:
            raise GuaranteeError(
                f"the noise scale of '{self.mechanism}' is {self.scale}; it must be positive."
            )
        if self.nonnegative and self.family != "double_geometric":
            raise GuaranteeError(
                f"no cost is proved for {self.family} noise with nonnegative = 'condition'.",
                remedy="Use nonnegative = 'project', which is free, or give epsilon without delta.",
            )
        if self.log_ratio_error < 0:
            raise GuaranteeError(
                f"'{self.mechanism}' states a negative sampling error; H must be 0 or more."
            )
        self.support.schema.axes(self.table)  # raises when an axis is unknown
        if self.magnitude is not None:
            self._refuse_unfit_sum()

    def _refuse_unfit_sum(self) -> None:
        """No figure restricts a sum: its noise is independent, of whole numbers of steps."""
        if self.support.equalities or self.support.bounds or self.nonnegative or self.units:
            raise GuaranteeError(
                "noise in sums of numbers is drawn without exact figures, signs or units.",
                remedy="Do not use this bundle; get it from its publisher.",
            )
        if self.family not in ("double_geometric", "discrete_gaussian"):
            raise GuaranteeError(
                f"no cost is proved for {self.family} noise in sums of numbers.",
                remedy="Give epsilon, rho, or epsilon with delta.",
            )

    @property
    def rate(self) -> Fraction:
        """eps per cell, per unit of gauge or of the largest entry; of laws that have one."""
        assert self.norm not in ("l2", "length")
        return self.scale

    @property
    def variance(self) -> Fraction:
        """sigma squared; of Gaussian laws."""
        assert self.norm == "l2"
        return self.scale

    @property
    def law(self) -> str:
        """The density before conditioning on the support, as a formula with what its letters are.

        >>> from congenial.data.schema import Schema
        >>> none = Figures(Schema.from_dict({"a": {"levels": ["p", "q"]}}))
        >>> Description("m", ("a",), "double_geometric", Fraction(1, 10), none).law
        'p(u) ~ exp(-eps_cell * ||u||_1) on the integers'
        """
        law, grid = LAWS[self.family], ""
        if self.grid:
            grid = f"; then values are rounded to multiples of 2^{math.frexp(self.grid)[1] - 1}"
        if self.magnitude is not None:
            grid = f", u in steps of {written(self.magnitude.step)}"
        return law + grid + (f", given that {self.conditions}" if self.nonnegative else "")

    @property
    def bounded(self) -> bool:
        """Whether the table can show some public bound."""
        bounds = limits(self.support, self.table)
        return bounds.boxed or bounds.sums > 0

    @property
    def conditions(self) -> str:
        """What counts are drawn given, besides the published figures, as a clause."""
        return "no count is negative" + (" and the public bounds hold" if self.bounded else "")

    @property
    def signs_and_bounds(self) -> str:
        """The same as what is paid for."""
        return "counts >= 0" + (" and public bounds" if self.bounded else "")

    @property
    def grid(self) -> float:
        """Step that values on the reals are rounded to, 0 for whole numbers: a power of two, 2^-11
        to 2^-10 of the noise's standard deviation and at most 1.

        Rounding is free, and what it removes are the low-order bits, from which one could see
        which sums of a count and a draw exist in double precision. Steps between draws grow beyond
        the grid with probability below 2^-40 only.
        """
        if not self.continuous:
            return 0.0
        laplace = self.family == "laplace"
        deviation = 2**0.5 / float(self.scale) if laplace else float(self.scale) ** 0.5
        return float(2.0 ** min(0, math.floor(math.log2(deviation)) - 10))

    @property
    def laws(self) -> tuple[Description, ...]:
        """What is drawn independently: one law."""
        return (self,)

    @property
    def printed(self) -> tuple[tuple[str, ...], ...]:
        """Axes of every table that the release shows."""
        return (self.table,)

    @property
    def terms(self) -> tuple[tuple[tuple[str, ...], Fraction], ...]:
        """Every table whose norm weighs in the law, with its scale: the released one last."""
        return ((self.table, self.scale),)

    @property
    def norm(self) -> Norm:
        """Which norm of the change in phi the loss is counted in."""
        return _norm(self.family)

    @property
    def continuous(self) -> bool:
        """Whether the law is on the reals, where numerics are idealised."""
        return self.family in ("laplace", "gaussian")

    def to_dict(self) -> dict[str, Any]:
        """Plain data; the schema is written beside it, once."""
        return {
            "version": VERSION,
            "kind": "table",
            "mechanism": self.mechanism,
            "table": list(self.table),
            "family": self.family,
            "law": self.law,
            "parameter": {_PARAMETER[self.norm]: str(self.scale)},
            "support": self.support.to_dict(),
            "nonnegative": self.nonnegative,
            "base_measure": "uniform",
            **({"units": True} if self.units else {}),
            **({} if self.magnitude is None else {"sum": self.magnitude.to_dict()}),
            "numerics": {"H": str(self.log_ratio_error)},
        }

    @classmethod
    def from_dict(cls, schema: Schema, data: Mapping[str, Any]) -> Description:
        """Inverse of `to_dict`; refuses versions it does not know."""
        check_version(data)
        return cls(
            mechanism=named_mechanism(data),
            table=tuple(data["table"]),
            family=data["family"],
            scale=_scale(data),
            support=_support(schema, json.dumps(data["support"])),
            nonnegative=bool(data.get("nonnegative", False)),
            log_ratio_error=fraction(data["numerics"]["H"]),
            units=bool(data.get("units", False)),
            magnitude=Magnitude.from_dict(data["sum"]) if "sum" in data else None,
        )


@lru_cache(maxsize=8)
def _support(schema: Schema, text: str) -> Figures:
    """Figures as written; the releases of a ledger mostly share theirs, which are checked once."""
    return Figures.from_dict(schema, json.loads(text))


def check_version(data: Mapping[str, Any]) -> None:
    """Refuse a description that this software does not know how to read."""
    if data.get("version") != VERSION:
        raise BundleError(
            f"mechanism description has version {data.get('version')!r}; this software reads "
            f"version {VERSION}.",
            remedy="Use the version of congenial named in the bundle.",
        )
