"""Exact audit: the worst that any conforming pair of a small universe can show, from densities.

Nothing here trusts the mechanism's own arithmetic but its density: databases are enumerated from
the schema and the published figures, adjacency is counted record by record (`universes`), and the
masses of all outputs in a window are compared. Outputs outside the window are pooled into one, as
an observer could, so whatever is found is real: a violation is never an artefact of the window.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from congenial.audit.universes import Pair, SmallUniverse
from congenial.audit.universes import adjacent_pairs as adjacent_pairs  # named from here too
from congenial.data.arguments import (
    ARRAY,
    COUNT,
    FLAG,
    NUMBERS,
    SEVERAL,
    either,
    optional,
    paired,
    takes,
)
from congenial.data.arrays import Floats, Ints
from congenial.data.table import Table
from congenial.mechanisms.mechanism import Mechanism
from congenial.privacy.composition import joint_loss
from congenial.privacy.tradeoff import Approximate, Gaussian, Tradeoff, ZeroConcentrated

EPSILONS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)  # where delta(epsilon) is compared
ALPHAS = tuple(round(0.05 * k, 2) for k in range(21))  # where the trade-off function is
ORDERS = (1.5, 2.0, 3.0, 4.0)  # of Renyi divergence; at whole orders lattice Gaussians attain rho
TOLERANCE = 1e-9
MOST_OUTPUTS = 20_000
WIDEST = 12  # of windows around the true answers

Parameter = Literal["epsilon", "delta", "rho", "mu"]
Verdict = Literal["attained", "holds", "not attained", "broken"]


@dataclass(frozen=True)
class ExactAudit:
    """The worst over all pairs, against the promise.

    `parameter` names what the promise states (epsilon, rho, mu, or delta at its own epsilon),
    `worst` is the largest value of it that a pair shows, `log_ratio` the largest log-likelihood
    ratio. `deltas` at `epsilons` and `tradeoff` at `alphas` are the curves of the worst pairs;
    empty where the density lacks its normaliser. `tight`: the guarantee is claimed to be attained.
    `missing`: the largest probability outside the window.
    """

    promised: Tradeoff
    parameter: Parameter
    worst: float
    log_ratio: float
    pairs: int
    outputs: int
    tight: bool = False
    epsilons: tuple[float, ...] = ()
    deltas: tuple[float, ...] = ()
    alphas: tuple[float, ...] = ()
    tradeoff: tuple[float, ...] = ()
    missing: float = 0.0

    @property
    def stated(self) -> float:
        """The value of the parameter that is promised."""
        return stated(self.promised)[1]

    @property
    def slack(self) -> float:
        """How much less than promised the worst pair shows; negative if the promise is broken."""
        return self.stated - self.worst

    @property
    def attained(self) -> bool:
        """Whether some pair shows all that is promised."""
        return self.slack <= 1e-6 * max(1.0, self.stated)

    @property
    def verdict(self) -> Verdict:
        """In a word; "not attained" is a claim of tightness that does not hold. A divergence that
        is summed over a window which leaves something out is a lower bound and decides nothing.
        """
        if self.violations():
            return "broken"
        if self.attained:
            return "attained"
        open_ = self.parameter == "rho" and self.missing > TOLERANCE
        return "not attained" if self.tight and not open_ else "holds"

    def violations(
        self, promised: Tradeoff | None = None, tolerance: float = TOLERANCE
    ) -> list[str]:
        """Where the promise (or another one) is exceeded, in words; empty when it holds."""
        promised = self.promised if promised is None else promised
        losses = []
        for epsilon, delta in zip(self.epsilons, self.deltas, strict=True):
            if delta > promised.delta(epsilon) + tolerance:
                losses.append(
                    f"delta({epsilon:g}) = {delta:.3g} exceeds the promised "
                    f"{promised.delta(epsilon):.3g}"
                )
        parameter, limit = stated(promised)
        if parameter == self.parameter and self.worst > limit + tolerance * max(1.0, limit):
            losses.append(f"{parameter} = {self.worst:.6g} exceeds the promised {limit:.6g}")
        pure = promised.epsilon(0.0)
        if self.log_ratio > pure + tolerance:
            losses.append(f"a log ratio of {self.log_ratio:.6g} exceeds the promised {pure:.6g}")
        return losses


def stated(promised: Tradeoff) -> tuple[Parameter, float]:
    """The parameter by which a promise is known, and its value."""
    if isinstance(promised, ZeroConcentrated):
        return "rho", float(promised.rho)
    if isinstance(promised, Gaussian):
        return "mu", float(promised.mu)
    if isinstance(promised, Approximate):
        return "delta", float(promised.dlt)
    return "epsilon", promised.epsilon(0.0)


# ---- tables --------------------------------------------------------------------------------------


@takes(
    mechanism=Mechanism,
    over=either(SmallUniverse, paired(Table)),
    radius=optional(COUNT),
    epsilons=NUMBERS,
    most=SEVERAL,
)
def exact_audit(
    mechanism: Mechanism,
    over: SmallUniverse | Sequence[Pair],
    radius: int | None = None,
    epsilons: Sequence[float] = EPSILONS,
    most: int = MOST_OUTPUTS,
) -> ExactAudit:
    """Audit a table mechanism over all pairs of a universe, or over given pairs of tables.

    `radius`: how far the window of outputs reaches beyond the true answers; as far as `most`
    outputs allow when it is left out. Laws on the reals are compared in closed form.
    """
    pairs = over.pairs() if isinstance(over, SmallUniverse) else list(over)
    promised, tight = mechanism.guarantee.tradeoff, claimed_tight(mechanism)
    if mechanism.description.continuous:
        return _audit_reals(mechanism, pairs, promised, tight, epsilons)
    tables = {table.counts.tobytes(): table for pair in pairs for table in pair}
    ys = _window(mechanism, list(tables.values()), radius, most)
    logs = {key: mechanism.log_density(ys, table) for key, table in tables.items()}
    return audit_laws(
        promised,
        ((logs[left.counts.tobytes()], logs[right.counts.tobytes()]) for left, right in pairs),
        tight=tight,
        epsilons=epsilons,
        normalised=mechanism.normalised,
    )


def claimed_tight(mechanism: Mechanism) -> bool:
    """Whether the promise says of itself that some pair attains it: its suprema are exact."""
    return joint_loss([mechanism.description], mechanism.adjacency).exact


def outputs(mechanism: Mechanism, tables: Sequence[Table], radius: int) -> Any:
    """All integer tables in the box around the true answers, widened by `radius`, that agree with
    what the mechanism conditions on; stacked.
    """
    outputs = _outputs(mechanism, tables, radius, most=None)
    assert outputs is not None
    return outputs


def _window(mechanism: Mechanism, tables: Sequence[Table], radius: int | None, most: int) -> Any:
    """The outputs within `radius`, or as many as there is room for."""
    if radius is not None:
        return outputs(mechanism, tables, radius)
    best = outputs(mechanism, tables, 0)
    for wider in range(1, WIDEST + 1):
        more = _outputs(mechanism, tables, wider, most)
        if more is None:
            break
        best = more
    return best


def _outputs(
    mechanism: Mechanism, tables: Sequence[Table], radius: int, most: int | None
) -> Any | None:
    """The same; None if there are more than `most`."""
    answers = np.stack([mechanism.query(table).reshape(-1) for table in tables])
    low, high = answers.min(axis=0) - radius, answers.max(axis=0) + radius
    if mechanism.description.nonnegative:
        low = np.maximum(low, 0)
    rows = _equations(mechanism, answers.shape[1])
    values: list[Any] = []
    # Look-alikes whose kept sums differ would be told apart: all their outputs must be here.
    for totals in np.unique(answers @ rows.T, axis=0):
        left = None if most is None else most - sum(map(len, values))
        part = _boxed(rows, totals, low, high, left)
        if part is None:
            return None
        values.append(part)
    return np.concatenate(values).reshape(-1, *mechanism.shape)


def _boxed(rows: Ints, totals: Ints, low: Ints, high: Ints, most: int | None) -> Any | None:
    """All whole vectors between `low` and `high` with these sums; None if more than `most`.

    They grow cell by cell; those that can no longer meet the equations are dropped.
    """
    ends = np.sort(np.stack([rows * low, rows * high]), axis=0)
    rest = np.concatenate([np.cumsum(ends[:, :, ::-1], axis=2)[:, :, ::-1], ends[:, :, :1] * 0], 2)
    partial: Any = np.zeros((1, 0), dtype=np.int64)
    sums: Any = np.zeros((1, len(rows)), dtype=np.int64)
    for j in range(len(low)):
        steps = np.arange(low[j], high[j] + 1)
        grown = sums[:, None, :] + steps[None, :, None] * rows[:, j]
        reach = (grown + rest[0, :, j + 1] <= totals) & (grown + rest[1, :, j + 1] >= totals)
        at, step = np.nonzero(np.all(reach, axis=2))
        if most is not None and len(at) > most:
            return None
        partial, sums = np.hstack([partial[at], steps[step][:, None]]), grown[at, step]
    return partial


def _equations(mechanism: Mechanism, cells: int) -> Ints:
    """The sums of released cells that the mechanism keeps, one per row."""
    table_support = getattr(mechanism, "support", None)
    if table_support is None:
        return np.zeros((0, cells), dtype=np.int64)
    flat = table_support.labels.reshape(-1)
    groups = (flat[None, :] == np.arange(table_support.groups)[:, None]).astype(np.int64)
    frozen = np.eye(cells, dtype=np.int64)[flat == -1]
    ties = [tie.equations @ groups[tie.groups] for tie in table_support.ties]
    return np.concatenate([groups[~table_support.tied], frozen, *ties])


def _audit_reals(
    mechanism: Mechanism,
    pairs: Sequence[Pair],
    promised: Tradeoff,
    tight: bool,
    epsilons: Sequence[float],
) -> ExactAudit:
    """Laws on the reals, in closed form from the density at the two answers.

    Laplace: the log ratio is largest at y = phi(x). Gaussian: there it is mu^2 / 2 of the pair,
    whose trade-off function is G_mu.
    """
    ratio = 0.0
    for left, right in pairs:
        for y in (mechanism.query(left).astype(float), mechanism.query(right).astype(float)):
            first, other = mechanism.log_density(y, left), mechanism.log_density(y, right)
            ratio = max(ratio, abs(float(first - other)))
    if not isinstance(promised, Gaussian):
        return ExactAudit(promised, "epsilon", ratio, ratio, len(pairs), 2, tight)
    mu = math.sqrt(2 * ratio)
    curve = Gaussian(mu)
    return ExactAudit(
        promised,
        "mu",
        mu,
        math.inf,
        len(pairs),
        2,
        tight,
        tuple(epsilons),
        tuple(curve.delta(e) for e in epsilons),
        ALPHAS,
        tuple(curve(ALPHAS).tolist()),
    )


# ---- any laws ------------------------------------------------------------------------------------


@takes(
    promised=Tradeoff,
    pairs=either(Iterator, paired(ARRAY)),
    tight=FLAG,
    epsilons=NUMBERS,
    normalised=FLAG,
)
def audit_laws(
    promised: Tradeoff,
    pairs: Iterable[tuple[Any, Any]],
    *,
    tight: bool = False,
    epsilons: Sequence[float] = EPSILONS,
    normalised: bool = True,
) -> ExactAudit:
    """Audit pairs of laws, each given by its log masses on the same outputs.

    `worst` is the largest parameter that any pair shows: max log p/q for a pure promise, max over
    orders a of D_a(P || Q) / a for rho, sup over events P(E) - e^eps Q(E) for (eps, delta). The
    verdict is "broken" where it passes what is promised. Give each pair in both orders, since only
    p against q is looked at. `normalised=False` is for masses that do not sum to one: then only
    ratios are compared, and no delta and no trade-off curve. `tight`: the promise is claimed to be
    attained by some pair; the verdict is "not attained" where none does.

    >>> import numpy as np
    >>> from congenial.privacy import Pure
    >>> logs = np.log([0.5, 0.3, 0.2])
    >>> found = audit_laws(Pure(1), [(logs, logs[::-1]), (logs[::-1], logs)])
    >>> found.verdict, round(found.worst, 4)
    ('holds', 0.9163)
    """
    parameter = stated(promised)[0]
    own = (float(promised.eps),) if isinstance(promised, Approximate) else ()
    at = (*epsilons, *own) if normalised else ()
    ratio = rho = missing = -math.inf
    deltas, curve, number, size = np.zeros(len(at)), np.ones(len(ALPHAS)), 0, 0
    for first, other in pairs:
        p, q = np.asarray(first, dtype=float), np.asarray(other, dtype=float)
        number, size = number + 1, p.size
        ratio = max(ratio, _largest_ratio(p, q))
        if parameter == "rho":
            rho = max(rho, _largest_rho(p, q))
        if normalised:
            left, right = _pooled(p), _pooled(q)
            missing = max(missing, float(left[-1]))
            gaps = left - np.exp(np.array(at))[:, None] * right
            deltas = np.maximum(deltas, np.maximum(gaps, 0).sum(axis=1))
            curve = np.minimum(curve, _tradeoff(left, right))
    worst = {"rho": rho, "delta": float(deltas[-1]) if own else 0.0}.get(parameter, ratio)
    return ExactAudit(
        promised=promised,
        parameter=parameter,
        worst=worst,
        log_ratio=ratio,
        pairs=number,
        outputs=size,
        tight=tight,
        epsilons=at,
        deltas=tuple(deltas.tolist()),
        alphas=ALPHAS if normalised else (),
        tradeoff=tuple(curve.tolist()) if normalised else (),
        missing=max(0.0, missing),
    )


def _largest_ratio(p: Floats, q: Floats) -> float:
    """max of log p - log q where p is positive."""
    possible = p > -np.inf
    return float((p[possible] - q[possible]).max(initial=-np.inf))


def _largest_rho(p: Floats, q: Floats) -> float:
    """max over orders of D_order(P || Q) / order, from below: what the window leaves out only
    adds.
    """
    possible = p > -np.inf
    p, q = p[possible], q[possible]
    if np.any(q == -np.inf):
        return math.inf
    losses = []
    for order in ORDERS:
        terms = order * p - (order - 1) * q
        top = float(terms.max())
        log_sum = top + math.log(float(np.exp(terms - top).sum()))
        losses.append(log_sum / (order - 1) / order)
    return max(losses)


def _pooled(logs: Floats) -> Floats:
    """Masses, all outputs outside the window as one more."""
    mass = np.exp(logs)
    rest = 1 - math.fsum(mass)
    return np.append(mass, rest if rest > 1e-13 else 0.0)  # less is rounding


def _tradeoff(p: Floats, q: Floats) -> Floats:
    """f(alpha) = min { 1 - Q(E) : P(E) <= 1 - alpha } by Neyman and Pearson, at `ALPHAS`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-np.where(p > 0, q / p, np.inf), kind="stable")
    size = np.concatenate([[0.0], np.cumsum(p[order])])
    power = np.concatenate([[0.0], np.cumsum(q[order])])
    # Outputs that only Q has come first, at size 0: the last of them counts.
    start = int(np.searchsorted(size, 0.0, side="right")) - 1
    return np.asarray(np.interp(1 - np.array(ALPHAS), size[start:], 1 - power[start:]))
