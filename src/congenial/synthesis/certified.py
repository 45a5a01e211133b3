"""Certified synthesis: synthetic records whose privacy is proved (Theory, section 3).

Family: weighted posterior (Savitsky, Williams, Hu), with the weights made a function of the record
alone and Theta fixed in advance. Per copy, with M the range of a record's score (`scores`):

    eps = M            one row added or removed, if the number of synthetic records does not tell n;
                       k M for k rows
    eps = 2 M          one record replaced; n is public, so n records may be published
    eps = 2 M a*       given mandated figures: a* records differ (`SemiAdjacent`)
    eps = 2 M          partial synthesis: one person's sensitive values replaced, the public columns
                       of everybody fixed (`SensitiveValues`)

m copies are m draws of theta and cost m times that; any number of records from one draw cost once,
because they are drawn from theta alone. Several columns share M: a record's scores add up. A first
column that published totals settle has no theta and no part of M. A model per context costs no
more, since a record is in one context; a replaced one leaves one context and enters another, which
is the same 2 M.

The draw of theta is exact (`drawing`), so nothing is added for numerics: H = 0. Assumed is
what the proof assumes: Theta, prior, models and M were fixed without looking at the data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain, compress
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from congenial.data.arguments import EXACT, NUMBER, VECTOR, WHOLE, expect, takes, texts
from congenial.data.arrays import Floats, Ints
from congenial.data.engines.checked_parquet import as_parquet
from congenial.data.rational import fraction
from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.data.tabulate import Microdata
from congenial.data.text_files import table_csv
from congenial.errors import BudgetError, BundleError, DataError, GuaranteeError
from congenial.figures.cells import Cells
from congenial.figures.figures import Figures
from congenial.pairs.pairs import Adjacency
from congenial.pairs.sensitive_values import SensitiveValues, refuse_unpublished
from congenial.privacy.descriptions import RecordDescription
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.tradeoff import Pure
from congenial.sampling.randomness import Randomness, SystemRandomness
from congenial.synthesis.column_kernels import ColumnKernel, SettledKernel
from congenial.synthesis.columns import (
    Codes,
    Column,
    FixedTotals,
    build_kernels,
    check_order,
    contexts_of,
    draw_levels,
    fixed_totals,
    shown,
)
from congenial.synthesis.combine import Combined, Rule, combine
from congenial.synthesis.record_files import (
    DICTIONARY,
    RecordCopies,
    dictionary,
    dictionary_rows,
    expected_copy,
    records_table,
)
from congenial.synthesis.record_model import LevelModel, generator_of
from congenial.synthesis.record_scores import FULL, record_totals
from congenial.synthesis.weighted_posterior import Finite

Records = Adjacency | SensitiveValues

CITATION = (
    "Savitsky, Williams and Hu, Bayesian pseudo posterior mechanism; weights by oscillation: "
    "this project's theory, section 3"
)
FIXED = "Theta, prior, models and M were fixed without looking at the data"
UTILITY = "parameters chosen by looking at the confidential data or at reports made from them"


MOST_COPIES = 1_000_000


@dataclass(frozen=True, eq=False, repr=False)
class CertifiedFit:
    """CONFIDENTIAL: what a release is drawn from; all checks of the data are behind it.

    laws: the exact law of every parameter, by column and block. n: people. known: public columns.
    """

    laws: list[list[Any]]
    n: int
    known: Codes

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise DataError(
            "fitted distributions are confidential and cannot be pickled or copied.",
            remedy="Fit them again where the data are.",
        )


@dataclass(frozen=True)
class Synthesizer:
    """Certified synthesis of some columns, from public parameters alone.

    bound: M, the range of one record's score, for one copy. copies: m. records: how many records a
    copy has; None means n, which then is public. public: columns copied from the data as they are
    (partial synthesis); their table must be among the published figures.
    """

    adjacency: Records
    columns: tuple[Column, ...]
    bound: Fraction
    copies: int = 1
    records: int | None = None
    public: tuple[str, ...] = ()

    name: ClassVar[str] = "pseudo-posterior"

    def __post_init__(self) -> None:
        for field in ("columns", "public"):
            object.__setattr__(self, field, tuple(getattr(self, field)))
        object.__setattr__(self, "bound", Fraction(self.bound))
        if self.bound <= 0 or self.copies < 1 or (self.records is not None and self.records < 1):
            raise GuaranteeError(
                f"M = {self.bound}, copies = {self.copies} and records = {self.records} must be "
                "positive.",
                remedy="Give M > 0 and at least one copy and one record.",
            )
        check_order(self.columns, self.public, self.schema)
        self._check_size()
        _ = self.totals
        _ = self.kernels

    def _check_size(self) -> None:
        figures = self.adjacency.figures
        refuse_unpublished(figures, self.public)
        if not isinstance(self.adjacency, (Adjacency, SensitiveValues)):
            raise GuaranteeError(
                f"'{self.name}' protects records, not {self.adjacency.metric}.",
                remedy="Use ReplaceOne, SemiAdjacent, SensitiveValues or AddRemove.",
            )
        if self.adds and figures.equalities:
            raise GuaranteeError(
                "synthetic records with published figures need a public number of people.",
                remedy="Use one row per person (unit without max_rows), or publish nothing.",
            )
        if self.adds and self.records is None:
            raise GuaranteeError(
                "as many records as the data have would publish their number, which is protected "
                "when rows are added or removed.",
                remedy="Give `records` a public number, or use one row per person (unit without "
                "max_rows).",
            )
        public_names = self.shown.bases or self.public
        if self.records is not None and public_names:
            raise GuaranteeError(
                f"{self.records} records cannot agree with figures published of all people.",
                remedy="Leave out `records`: a copy then has as many as there are people.",
            )

    @classmethod
    def calibrate(
        cls,
        target: Guarantee,
        columns: Sequence[Column],
        *,
        copies: int = 1,
        records: int | None = None,
        public: Sequence[str] = (),
        bound: Fraction | None = None,
    ) -> Synthesizer:
        """The synthesizer that just meets a pure target, or BudgetError if M and m do not fit it.

        M = epsilon / (2 a* m), or epsilon / (rows m) when rows are added or removed.
        """
        expect(target, Guarantee, "the target", "Give for example Guarantee.pure(8, under=...).")
        public = texts(public, "the public columns", GuaranteeError)
        if not isinstance(target.tradeoff, Pure):
            raise GuaranteeError(
                f"'{cls.name}' cannot be calibrated to {target.tradeoff.words}.",
                remedy="Give epsilon without delta.",
            )
        adjacency: Records = target.adjacency  # type: ignore[assignment]  # checked when built
        _refuse_other_kinds(columns, copies, records, bound)
        per_bound = price(adjacency)
        epsilon = Fraction(target.tradeoff.eps)
        if bound is None:
            bound = epsilon / (per_bound * copies)
        elif bound * per_bound * copies > epsilon:
            fitting = int(epsilon / (bound * per_bound))
            raise BudgetError(
                f"{copies} copies at M = {bound} cost epsilon = {bound * per_bound * copies}, more "
                f"than {epsilon}.",
                remedy=f"Publish at most {fitting} copies." if fitting else "Use a smaller M.",
            )
        return cls(adjacency, tuple(columns), bound, copies, records, tuple(public))

    # ---- what is public ----------------------------------------------------------------------

    @property
    def schema(self) -> Schema:
        """What a record is."""
        return self.adjacency.schema

    @property
    def adds(self) -> bool:
        """Whether adjacent databases differ in rows added or removed, so that n is protected."""
        return self.adjacency.metric == "symmetric difference"

    @property
    def epsilon(self) -> Fraction:
        """Pure epsilon of all copies together, over the adjacent pairs."""
        return price(self.adjacency) * self.bound * self.copies

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, from public parameters alone."""
        return Guarantee(
            self.adjacency,
            Pure(self.epsilon),
            "theorem",
            (FIXED,),
            (UTILITY,),
            CITATION,
        )

    @property
    def description(self) -> RecordDescription:
        """The law, and what replacing (2 M per copy) or adding (M) one record does to it."""
        return RecordDescription(
            mechanism=self.name,
            schema=self.schema,
            law=self.to_dict(),
            epsilon=2 * self.bound * self.copies,
            added=None if self.records is None else self.bound * self.copies,
            given=self.given,
        )

    @cached_property
    def shown(self) -> Figures:
        """Published figures about columns that the files have, which their records keep."""
        return shown(self.adjacency.figures, self.names)

    @property
    def given(self) -> Figures | None:
        """Figures of which the files show something and rules they keep; None if there is none."""
        figures, labels = self.adjacency.figures, {s.label for s in self.shown.statements}
        figures_kept = [
            not set(Cells(self.schema, (s,)).bases).isdisjoint(self.names)
            if s.relation == "zero"
            else self.records is None and s.label in labels
            for s in figures.statements
        ]
        if not any(figures_kept):
            return None
        statements = tuple(compress(figures.statements, figures_kept))
        values = None if figures.values is None else tuple(compress(figures.values, figures_kept))
        return Figures(self.schema, statements, values)

    @cached_property
    def kernels(self) -> list[ColumnKernel]:
        """One kernel per column."""
        figures = self.adjacency.figures
        return build_kernels(self.columns, self.public, figures, self.bound, self.totals)

    @property
    def settled(self) -> tuple[str, ...]:
        """Columns whose records follow from published totals; they have no part of M."""
        return tuple(
            column.name
            for column, kernel in zip(self.columns, self.kernels, strict=True)
            if isinstance(kernel, SettledKernel)
        )

    @cached_property
    def totals(self) -> FixedTotals | None:
        """Published totals the first column is drawn given."""
        return fixed_totals(self.columns, self.public, self.adjacency.figures)

    @property
    def names(self) -> tuple[str, ...]:
        """Columns of a synthetic file, in the order of the schema."""
        names = {*self.public, *(column.name for column in self.columns)}
        return tuple(name for name in self.schema.names if name in names)

    def to_dict(self) -> dict[str, Any]:
        """The law as plain data: models with their Theta, M, copies, records."""
        return {
            "family": "weighted posterior on a finite Theta",
            "weights": "alpha(x) ~ min(1, M / osc(x)); scores are whole numbers in 0 .. 2^30",
            "M": str(self.bound),
            "copies": self.copies,
            "records": self.records,
            "public": list(self.public),
            "columns": [column.to_dict() for column in self.columns],
            "numerics": {"H": "0"},
        }

    @classmethod
    def from_dict(cls, adjacency: Records, data: Mapping[str, Any]) -> Synthesizer:
        """Inverse of `to_dict`, given the adjacency; only columns and M must be there."""
        return cls(
            adjacency,
            tuple(Column.from_dict(column) for column in data["columns"]),
            fraction(str(data["M"])),
            data.get("copies", 1),
            data.get("records"),
            tuple(data.get("public", ())),
        )

    # ---- confidential in, synthetic out ------------------------------------------------------

    def fit(self, data: Table | Microdata) -> CertifiedFit:
        """CONFIDENTIAL: read and check the data; what is left is to draw, which refuses nothing."""
        counts, n = self.fetch(data)
        fitted = CertifiedFit(self.laws(counts), n, self.public_codes(data))
        for law in chain.from_iterable(fitted.laws):
            law.prepare()
        return fitted

    def release(
        self,
        data: Table | Microdata | CertifiedFit,
        randomness: Randomness | None = None,
        name: str = "synthetic",
    ) -> SyntheticRelease:
        """Draw the parameters once per copy and records from them: the only call that spends."""
        randomness = SystemRandomness() if randomness is None else randomness
        expect(randomness, Randomness, "randomness", "Leave it out.")
        fitted = data if isinstance(data, CertifiedFit) else self.fit(data)
        copies = []
        for _ in range(self.copies):
            thetas = [[law.draw(randomness) for law in some] for some in fitted.laws]
            generator = generator_of(randomness)
            size = self.records or fitted.n
            codes = self.records_from(thetas, generator, size, fitted.known)
            copies.append(records_table(self.schema, self.names, codes, generator))
        return SyntheticRelease(
            name=name,
            description=self.description,
            guarantee=self.guarantee,
            randomness=randomness.label,
            publishable=randomness.publishable,
            copies=tuple(copies),
        )

    def fetch(self, data: Table | Microdata) -> tuple[list[Ints], int]:
        """CONFIDENTIAL: each column's counts (contexts, levels), and n; checks the figures."""
        expect(data, (Table, Microdata), "the data", "Give a Table or Microdata.", DataError)
        figures = self.adjacency.figures
        if figures.statements:
            figures.refuse_other_data(_margin(data, figures.bases))
        counts = [
            _margin(data, column.table).counts.reshape(-1, self.schema.attribute(column.name).size)
            for column in self.columns
        ]
        return counts, int(counts[0].sum())

    def laws(self, counts: Sequence[Ints]) -> list[list[Any]]:
        """CONFIDENTIAL: the exact laws of all parameters, by column and block."""
        return [kernel.laws(count) for kernel, count in zip(self.kernels, counts, strict=True)]

    def draw(self, counts: Sequence[Ints], randomness: Randomness) -> list[list[Any]]:
        """Parameters of one copy, drawn exactly; from here on nothing is confidential."""
        return [[law.draw(randomness) for law in laws] for laws in self.laws(counts)]

    def records_from(
        self, thetas: list[list[Any]], generator: np.random.Generator, n: int, known: Codes
    ) -> Codes:
        """Level numbers of n new records, from drawn parameters and public things alone."""
        laws = [
            kernel.probabilities(theta) for kernel, theta in zip(self.kernels, thetas, strict=True)
        ]
        return self.records_given(laws, generator, n, known)

    def records_given(
        self, laws: Sequence[Floats], generator: np.random.Generator, n: int, known: Codes
    ) -> Codes:
        """Level numbers of n new records, column by column, from laws (contexts, levels)."""
        codes = dict(known)
        for at, (column, law) in enumerate(zip(self.columns, laws, strict=True)):
            contexts = contexts_of(column, codes, self.schema, n)
            totals = self.totals if at == 0 else None
            codes[column.name] = draw_levels(law, contexts, generator, totals, n)
        return codes

    def weightless(self, data: Table | Microdata) -> int:
        """CONFIDENTIAL, for the curator only: records that have weight 0 in some column's model.

        A bound where columns overlap: their numbers are added.
        """
        counts, _ = self.fetch(data)
        pairs = zip(self.kernels, counts, strict=True)
        return sum(int(count[kernel.weights == 0].sum()) for kernel, count in pairs)

    def public_codes(self, data: Table | Microdata) -> Codes:
        """The public columns, one row per person, sorted; they are published figures."""
        if not self.public:
            return {}
        table = _margin(data, self.public)
        cells = np.repeat(np.arange(table.counts.size), table.counts.reshape(-1))
        return dict(zip(self.public, np.unravel_index(cells, table.shape), strict=True))


def price(adjacency: Records) -> int:
    """epsilon of one copy in units of M: a row added or removed costs 1, a record replaced 2."""
    records = getattr(adjacency, "records", 1)
    return records if adjacency.metric == "symmetric difference" else 2 * records


def _margin(data: Table | Microdata, names: Sequence[str]) -> Table:
    return data.marginal(names) if isinstance(data, Table) else data.tabulate(names)


def _refuse_other_kinds(columns: object, copies: object, records: object, bound: object) -> None:
    """Refuse arguments of `calibrate` that are of the wrong type."""
    remedy = "Give a list of columns, such as [Column('age')]."
    expect(columns, (list, tuple), "the columns", remedy, GuaranteeError)
    for column in columns:  # type: ignore[attr-defined]
        expect(column, Column, "a column", remedy, GuaranteeError)
    expect(copies, WHOLE, "copies", "Give how many.", GuaranteeError)
    expect(records, (*WHOLE, type(None)), "records", "Give how many.", GuaranteeError)
    expect(bound, (*NUMBER, type(None)), "the bound M", "Give a number.", GuaranteeError)
    if not 1 <= copies <= MOST_COPIES:  # type: ignore[operator]
        raise GuaranteeError(
            f"copies is not between 1 and {MOST_COPIES:,}.", remedy="Give for example 5."
        )


# ---- What is released ----


@dataclass(frozen=True)
class SyntheticRelease(RecordCopies):
    """Synthetic records: `copies` Arrow tables, each drawn with parameters of its own.

    The promise covers all copies together. Analyse each copy and put the results together with
    `congenial.synthesis.combine`: one copy alone hides how uncertain the models are. Rows are
    nobody's; columns the plan copied because they are published are everybody's.
    """

    kind: ClassVar[str] = "synthetic records"
    contents: ClassVar[tuple[tuple[str, str], ...]] = (
        (
            "synthetic-1.parquet, .csv",
            "synthetic records, one file of each format per copy; no row is a real person's",
        ),
        (DICTIONARY, "every column and level: type, interval, and how it is written"),
    )
    usage: ClassVar[tuple[str, ...]] = (
        "release.to_pandas(1)",
        "release.combine(lambda frame: (estimate, its_variance))   # from all copies",
    )

    def instead(self) -> str:
        """Models and weights leave a bias that no interval covers: so it is said by the analyst."""
        if len(self.copies) < 2:
            return "Estimate from to_pandas(1); one copy gives no interval."
        return "Use release.combine(lambda frame: (estimate, its_variance)) on all copies."

    def combine(
        self,
        estimate: Callable[[Any], tuple[Any, Any]],
        rule: Rule = "partial",
        ratio: float = 1.0,
    ) -> Combined:
        """One estimate with an interval from all copies, two or more (rules: `combine`).

        estimate: gives a value and its variance for a copy (a pandas frame) as if it were real.
        """
        estimates = [estimate(self.to_pandas(at)) for at in range(1, len(self.copies) + 1)]
        return combine([q for q, _ in estimates], [u for _, u in estimates], rule, ratio)

    def payload(self) -> dict[str, bytes]:
        """Files for the bundle: each copy as Parquet and CSV, and the data dictionary."""
        rows = dictionary_rows(self.schema, self.copies[0].column_names)
        files = {DICTIONARY: dictionary(rows, self.schema)}
        for at, table in enumerate(self.copies, start=1):
            files[f"synthetic-{at}.parquet"] = as_parquet(table)
            files[f"synthetic-{at}.csv"] = table_csv(table)
        return files

    @classmethod
    def from_payload(cls, *, payload: Mapping[str, bytes], **common: Any) -> Self:
        """Read what `payload` wrote; BundleError when a copy is missing or damaged."""
        law, pairs = common["description"].law, common["guarantee"].adjacency
        names, copies = Synthesizer.from_dict(pairs, law).names, []
        for at in range(1, int(law["copies"]) + 1):
            file = f"synthetic-{at}.parquet"
            if file not in payload:
                raise BundleError(f"{file} is missing.", remedy="Get a new copy of the bundle.")
            expected = expected_copy(file, pairs.schema, names, law["records"])
            copies.append(expected.read(payload[file]))
        if not copies:
            raise BundleError(
                "the bundle has no copies of the records.", remedy="Get a new copy of the bundle."
            )
        return cls(**common, copies=tuple(copies))

    @property
    def synthesizer(self) -> Synthesizer:
        """What drew it, from its public description."""
        pairs: Any = self.guarantee.adjacency
        return Synthesizer.from_dict(pairs, self.description.law)

    def __repr__(self) -> str:
        columns = ", ".join(self.copies[0].column_names)
        promise = self.guarantee.tradeoff.words
        return f"SyntheticRelease({self.name!r}: {len(self.copies)} x ({columns}); {promise})"


# ---- Raw ----
# Certified parameters from raw numbers, without a schema's levels: any size of number is allowed.
#
# A release uses levels, because what it publishes has them. This is for parameters of one's own
# models, and for checking the certificate on records as hostile as one likes.


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
