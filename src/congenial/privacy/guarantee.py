"""Guarantee: what is promised, among which databases, on what footing, and in words.

Five building blocks (domain, universe, adjacency, trade-off function, parameters) plus basis,
assumptions, what is not covered, and the source. Two guarantees are compared by the partial order
of semi-dp (Definition 20) and added only over the same universe and adjacency.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from congenial.data.arguments import expect
from congenial.errors import GuaranteeError
from congenial.pairs.pairs import Pairs
from congenial.pairs.stored_pairs import read_pairs
from congenial.pairs.universe import Universe
from congenial.privacy.accounting import tensor
from congenial.privacy.numbers import number, odds, refuse_absurd, small, times_in_100
from congenial.privacy.tradeoff import (
    Approximate,
    Gaussian,
    GaussianDraw,
    Pure,
    Tradeoff,
    ZeroConcentrated,
)

Basis = Literal["theorem", "numerical bound", "estimate", "asymptotic", "uncertified chain"]
BASES: tuple[Basis, ...] = (
    "theorem",
    "numerical bound",
    "estimate",
    "asymptotic",
    "uncertified chain",
)

BASIS_WORDS: dict[Basis, str] = {
    "theorem": "proved, and checked by enumeration on small universes",
    "numerical bound": "a proved bound, evaluated numerically and rounded towards less privacy",
    "estimate": "an estimate, not a guarantee",
    "asymptotic": "holds only in the limit of large data",
    "uncertified chain": "not certified: the sample comes from a Markov chain",
}

IDEALISED = "real numbers are drawn without rounding (numerics are idealised)"
ROUNDED = ", and values are rounded afterwards, which is free"
STATED_DELTA = 1e-9
EXACT_IS_OPEN = "the exact figures themselves and what follows from them"


@dataclass(frozen=True)
class Guarantee:
    """A promise over pairs of databases.

    Build a target with `Guarantee.pure(1, under=adjacency)` and its siblings; a calibrated
    mechanism returns one with its basis and assumptions filled in.

    Formally: for every ordered pair (x, x') of `adjacency` and every test of x against x' from what
    is released, errors of the two kinds lie on or above the curve `tradeoff`. `basis` says on what
    it rests (theorem, numerical bound, estimate); what is assumed and what is not covered belongs
    to it. `explain()` writes all of this as a paragraph.

    Source: Dong, Roth and Su (2022) for trade-offs; semi-dp, Definition 13 for pairs.

    >>> from congenial import ReplaceOne, Schema
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    >>> target = Guarantee.pure("1/2", under=ReplaceOne(schema))
    >>> target.tradeoff.words, target.basis
    ('epsilon = 0.5', 'theorem')
    """

    adjacency: Pairs
    tradeoff: Tradeoff
    basis: Basis = "theorem"
    assumptions: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    citation: str = ""
    stated_delta: float = (
        STATED_DELTA  # where the words of others than pure and approximate quote epsilon
    )

    def __post_init__(self) -> None:
        if self.basis not in BASES:
            raise GuaranteeError(
                f"basis '{self.basis}' is not known.", remedy=f"Use one of {', '.join(BASES)}."
            )
        if not (isinstance(self.stated_delta, float) and 0 < self.stated_delta < 1):
            raise GuaranteeError(
                f"delta {str(self.stated_delta)[:40]!r} is not a probability above 0 and below 1.",
                remedy="State epsilon for example at delta = 1e-9.",
            )
        if isinstance(
            self.tradeoff, Pure | Approximate
        ):  # their words quote no delta but their own
            object.__setattr__(self, "stated_delta", STATED_DELTA)

    @classmethod
    def pure(cls, epsilon: Fraction | int | str | float, under: Pairs) -> Guarantee:
        """Pure epsilon per person."""
        return cls._target(under, Pure(epsilon))

    @classmethod
    def approximate(
        cls, epsilon: Fraction | int | str | float, delta: float, under: Pairs
    ) -> Guarantee:
        """(epsilon, delta) per person."""
        return cls._target(under, Approximate(epsilon, delta))

    @classmethod
    def zero_concentrated(cls, rho: Fraction | int | str | float, under: Pairs) -> Guarantee:
        """rho-zCDP per person."""
        return cls._target(under, ZeroConcentrated(rho))

    @classmethod
    def gaussian(cls, mu: Fraction | int | str | float, under: Pairs) -> Guarantee:
        """mu-Gaussian differential privacy per person."""
        return cls._target(under, Gaussian(mu))

    @classmethod
    def _target(cls, under: Pairs, tradeoff: Tradeoff) -> Guarantee:
        if not isinstance(under, Pairs):
            raise GuaranteeError(
                f"{str(under)[:40]!r} does not say which datasets the promise compares.",
                remedy="Give for example under=ReplaceOne(schema).",
            )
        refuse_absurd(tradeoff)
        if not any(vars(tradeoff).values()):
            raise GuaranteeError(
                f"{tradeoff.words}: nothing could be released, however much noise is drawn.",
                remedy="Give a number above 0, such as 0.5.",
            )
        return cls(under, tradeoff)

    # ---- the building blocks -----------------------------------------------------------------

    @property
    def domain(self) -> str:
        """What a record is."""
        schema = self.adjacency.schema
        answers = schema.size(schema.names)
        return f"records with {', '.join(schema.names)} ({answers:,} possible answers)"

    @property
    def universe(self) -> Universe:
        """The databases among which the promise holds."""
        return Universe(self.adjacency.figures)

    def __le__(self, other: Guarantee) -> bool:
        """Weaker than or equal to `other` in the partial order of semi-dp, Definition 20."""
        return other.adjacency.covers(self.adjacency) and self.tradeoff <= other.tradeoff

    def follows_from(self, other: Guarantee) -> bool:
        """The same bound on the same footing, from the same source; a plan may assume more and
        cover less, and say so.
        """
        return (
            self.tradeoff == other.tradeoff
            and self.basis == other.basis
            and self.citation == other.citation
            and set(other.assumptions) <= set(self.assumptions)
            and set(other.left_open) <= set(self.left_open)
        )

    def compose(self, other: Guarantee) -> Guarantee:
        """Both releases together, over the same pairs; refused with the reason otherwise."""
        expect(other, Guarantee, "the other promise", "Give a Guarantee.", GuaranteeError)
        if not (self.adjacency.composes and other.adjacency.composes):
            raise GuaranteeError(
                f"promises about {self.adjacency.metric} cannot simply be added up.",
                remedy="Calibrate them together, as one release.",
            )
        if not self.adjacency.same(other.adjacency):
            raise GuaranteeError(
                "two promises that compare different datasets cannot be added: "
                f"{self.adjacency.words}, against {other.adjacency.words}.",
                remedy="Work out both again with all published figures.",
            )
        return replace(
            self,
            tradeoff=tensor(self.tradeoff, other.tradeoff),
            basis=max(self.basis, other.basis, key=BASES.index),
            assumptions=tuple(dict.fromkeys(self.assumptions + other.assumptions)),
            not_covered=tuple(dict.fromkeys(self.not_covered + other.not_covered)),
            citation="; ".join(dict.fromkeys(filter(None, (self.citation, other.citation)))),
        )

    # ---- words -------------------------------------------------------------------------------

    @property
    def in_short(self) -> dict[str, str]:
        """What is exact, what is protected, what is not covered: a sentence each, for everybody.

        The bound on a guess names what the guesser knows. Shorter it would be false wherever exact
        figures tie people together (docs/explanation/what-is-promised).

        >>> from congenial import ReplaceOne, Schema
        >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
        >>> Guarantee.pure(1, under=ReplaceOne(schema)).in_short["Exact"]
        'The number of people. It has no noise and is not protected.'
        """
        exact = self._exact_figures_by
        text = "; ".join(exact) or "nothing"
        if exact:
            has = "They have no noise and are" if len(exact) > 1 else "It has no noise and is"
            text = f"{text}. {has} not protected"
        bounds = self._bounds_clause()
        protected = self._guess_clause() or (
            f"The protection compares {self.adjacency.words}. {self.likelihood_clause()}"
        )
        if self.basis != "theorem":
            protected += f" Basis: {self.basis} ({BASIS_WORDS[self.basis]})."
        return {
            "Exact": f"{_capital(text)}.{bounds}",
            "Protected": protected,
            "Not covered": f"{_capital('; '.join(self.left_open))}.",
        }

    def explain(self, spent: str = "") -> str:
        """The promise as one paragraph; every clause comes from a field, or from the ledger."""
        expect(spent, str, "what was spent", "Give text.", GuaranteeError)
        clauses = [
            self.published_clause(),
            f"For the rest: {self.protection_clause()}",
            f"Basis: {self.basis} ({BASIS_WORDS[self.basis]}).",
        ]
        if self.assumptions:
            clauses.append(f"Assumed: {self.assumed}.")
        clauses.append(f"Not covered: {'; '.join(self.left_open)}.")
        if spent:
            clauses.append(f"Spent: {spent}.")
        return " ".join(clauses)

    def protection_clause(self) -> str:
        """Which sides are compared, how far apart they can be, and whose guess that bounds.

        Odds of e^epsilon and the guess say the same only where delta is 0. Elsewhere a sentence
        says why 13.6 times and 59 in 100 are one promise.
        """
        compared = f"the protection compares {self.adjacency.words}. {self.likelihood_clause()}"
        guess = self._guess_clause()
        if guess and not isinstance(self.tradeoff, Pure):
            guess += (
                " Both bounds are one promise. A rare result may tell more than most: the first "
                "bound covers even that, the second counts all results together."
            )
        return " ".join(filter(None, (compared, guess)))

    def _guess_clause(self) -> str:
        """Whose guess is bounded, and by how much; empty where the pairs name nobody."""
        if not self.adjacency.guesser:
            return ""
        times = times_in_100((1 + self.tradeoff.total_variation) / 2)
        return (
            f"Suppose someone {self.adjacency.guesser}. This release alone lets them guess right "
            f"at most {times} times in 100; without it, 50."
        )

    @property
    def assumed(self) -> str:
        """What the promise rests on, as a list; an assumption that is a sentence loses its stop."""
        return "; ".join(text.removesuffix(".") for text in self.assumptions)

    @property
    def left_open(self) -> tuple[str, ...]:
        """What the promise says nothing about."""
        own = dict.fromkeys((*self.adjacency.not_covered, *self.not_covered))
        if self.adjacency.side != "dataset":
            return tuple(own)
        public = [
            statement
            for statement in self.adjacency.everything.told
            if statement.relation != "zero"
        ]
        known_sums = self._counts_people or bool(public)
        return (*((EXACT_IS_OPEN,) if known_sums else ()), self._groups_are_open, *own)

    @property
    def _groups_are_open(self) -> str:
        """Facts about groups, with an example from the data's own first and last columns."""
        schema = self.adjacency.schema
        first, last = schema.shown(schema.names[0]), schema.shown(schema.names[-1])
        by = f" by {first}" if first != last else ""
        example = f"the distribution of {last}{by}"
        return f"facts about groups, such as {example}, which the release is there to show"

    @property
    def _counts_people(self) -> bool:
        """Whether n is public: records are replaced, never added or removed."""
        return self.adjacency.metric == "replace-one"

    def published_clause(self) -> str:
        """What is out, exactly, and so not protected."""
        figures, bounds = self._exact_figures, self._bounds_clause()
        published = f"Published exactly: {'; '.join(figures) or 'nothing'}.{bounds}"
        if figures or bounds:
            published += " Neither these nor what follows from them is protected."
        return published

    @property
    def _exact_figures(self) -> list[str]:
        """The figures by name, with the number of people where the promise leaves it public."""
        figures = [s.told for s in self.adjacency.everything.told if s.relation == "="]
        if self._counts_people and not self.adjacency.figures.tells_total:
            figures.append("the number of people")
        return figures

    @property
    def _exact_figures_by(self) -> list[str]:
        """The same with the groups for which each is known: "Population (by county, statute)"."""
        figures = [s for s in self.adjacency.everything.told if s.relation == "="]
        label = self.adjacency.schema.shown
        by = [f"by {', '.join(map(label, s.by))}" if s.by else "" for s in figures]
        notes = [", ".join(filter(None, (b, s.because))) for s, b in zip(figures, by, strict=True)]
        named = [f"{s.label} ({n})" if n else s.label for s, n in zip(figures, notes, strict=True)]
        return [*named, *self._exact_figures[len(figures) :]]

    def _bounds_clause(self) -> str:
        """Public bounds, and what is impossible, where a plan states any."""
        public = self.adjacency.everything.told
        bounds = "; ".join(s.told for s in public if s.limit)
        impossible = "; ".join(s.label for s in public if s.relation == "zero")
        clause = f" Public bounds: {bounds}." if bounds else ""
        return clause + (f" Impossible by definition: {impossible}." if impossible else "")

    def likelihood_clause(self) -> str:
        """How far apart the releases of the two datasets can be, as odds where possible."""
        f = self.tradeoff
        if isinstance(f, Pure):
            if f.eps == 0:
                return "Every result of this release is exactly as likely under one as the other."
            return (
                f"No result of this release is more than {odds(f.eps)} times as likely under one "
                f"as under the other (epsilon = {number(f.eps)} {self.adjacency.subject})."
            )
        if isinstance(f, Approximate):
            words = self._slack_words(f.eps, float(f.dlt))
            return words[0].upper() + words[1:]
        epsilon = f.epsilon(self.stated_delta)
        basis = ""
        if isinstance(f, GaussianDraw):
            basis = f" This epsilon follows from {f.basis_at(self.stated_delta)}."
        return (
            f"The promise is {f.words}; in particular, "
            f"{self._slack_words(epsilon, self.stated_delta)}{basis}"
        )

    def _slack_words(self, epsilon: Fraction | float, delta: float) -> str:
        return (
            f"the probability of any event under one {self.adjacency.side} is at most "
            f"{odds(epsilon)} times its probability under the other, plus {small(delta)} "
            f"(epsilon = {number(epsilon)}, delta = {small(delta)} {self.adjacency.subject})."
        )

    def _repr_html_(self) -> str:
        from congenial._notebook import facts  # for notebooks alone

        return facts("", self.summary(), self.explain()) + self._picture()

    def _picture(self) -> str:
        """The trade-off curve as SVG: errors of anybody who tells two neighbours apart."""
        from congenial._notebook import curve_picture  # for notebooks alone

        wrong = [i / 240 for i in range(241)]
        missed = self.tradeoff([1 - share for share in wrong])
        return curve_picture(
            "lowest rate of false negatives at each rate of false positives, for anybody who "
            "tries to distinguish the two datasets; dashed: guessing",
            "false positives",
            "false negatives",
            zip(wrong, missed.tolist(), strict=True),
        )

    def __repr__(self) -> str:
        return f"Guarantee({self.tradeoff.words}; {self.adjacency!r})"

    def summary(self) -> tuple[tuple[str, str], ...]:
        """What is promised to whom, item by item."""
        return (
            ("Domain", self.domain),
            ("Universe", self.universe.words),
            ("Adjacent", self.adjacency.words),
            ("Promise", self.tradeoff.words),
            ("Basis", f"{self.basis}: {BASIS_WORDS[self.basis]}"),
        )

    # ---- plain data --------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a bundle or a ledger; schema and figures are written beside it."""
        return {
            "domain": self.domain,
            "universe": self.universe.words,
            "adjacency": self.adjacency.to_dict(),
            "tradeoff": self.tradeoff.to_dict(),
            "basis": self.basis,
            "assumptions": list(self.assumptions),
            "not_covered": list(self.left_open),
            "citation": self.citation,
            "stated_delta": self.stated_delta,
        }

    @classmethod
    def from_dict(cls, figures: Any, data: dict[str, Any]) -> Guarantee:
        """Inverse of `to_dict`, given the figures (with their schema) written beside it."""
        guarantee = cls(
            read_pairs(figures, data["adjacency"]),
            Tradeoff.from_dict(data["tradeoff"]),
            data["basis"],
            tuple(data["assumptions"]),
            (),
            data["citation"],
            data["stated_delta"],
        )
        always = guarantee.left_open
        own = tuple(words for words in data["not_covered"] if words not in always)
        return replace(guarantee, not_covered=own)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
