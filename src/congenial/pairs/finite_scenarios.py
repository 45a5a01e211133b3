"""Finite scenario tables: a list of databases, and for each scenario how likely each one is.

Everything is worked out by enumeration in rational numbers, so these tables also check the closed
forms of the other classes. partially-private-data, Definition 3.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product
from math import prod
from numbers import Integral
from typing import Any, ClassVar

from congenial.data.arguments import (
    CALL,
    EXACT_NUMBER,
    INTEGER,
    NAMES,
    SEQUENCE,
    TEXT,
    Rule,
    check_arguments,
    check_fields,
    listed,
    optional,
    pairs_of,
    takes,
)
from congenial.errors import GuaranteeError
from congenial.pairs.scenarios import (
    Conditionals,
    Independence,
    Level,
    Query,
    Scenarios,
    Secrets,
    check_secrets,
)
from congenial.pairs.stated_laws import Law, pmf, rational

ABSENT = -1  # a person who is not in the data
MOST = 2**20  # databases of independent people that are written out
Database = tuple[int, ...]
Table = dict[Database, Fraction]
ROWS = listed(listed(INTEGER))
LABELLED = Rule(
    "a dict of labels and lists of masses",
    lambda one: isinstance(one, Mapping) and pairs_of(TEXT, SEQUENCE).holds(list(one.items())),
)
PEOPLE = Rule(
    "a dict of labels and, for each person, a list of masses",
    lambda one: (
        isinstance(one, Mapping) and pairs_of(TEXT, listed(SEQUENCE)).holds(list(one.items()))
    ),
)


@dataclass(frozen=True)
class FiniteScenarios(Scenarios):
    """Databases (one answer per person, ABSENT if there is none) and a pmf over them per scenario.

    Build with `of` or `independent`, and add public figures with `given`.

    >>> bits = FiniteScenarios.independent({"fair": [[1, 1], [1, 1]]})
    >>> len(bits.given("the sum is 1", lambda x: sum(x) == 1).databases)
    2
    """

    databases: tuple[Database, ...]
    tables: tuple[tuple[str, tuple[Fraction, ...]], ...]
    secrets: Secrets = "replace-one"
    facts: tuple[str, ...] = ()

    kind: ClassVar[str] = "finite table"
    conditioned: ClassVar[bool] = True

    def __post_init__(self) -> None:
        labelled = pairs_of(TEXT, listed(EXACT_NUMBER))
        check_fields(self, GuaranteeError, databases=ROWS, tables=labelled, facts=NAMES)
        check_secrets(self.secrets)
        if not self.databases or len({len(database) for database in self.databases}) != 1:
            raise GuaranteeError(
                "all databases of a scenario table must have the same number of people.",
                remedy="Write ABSENT for a person who is not in the data.",
            )
        if len(set(self.databases)) != len(self.databases):
            raise GuaranteeError("a scenario table lists a database twice.", remedy="Merge them.")
        for label, masses in self.tables:
            if len(masses) != len(self.databases) or min(masses) < 0 or sum(masses) != 1:
                raise GuaranteeError(
                    f"scenario '{label}': its {len(masses)} masses do not add up to exactly one "
                    f"over {len(self.databases)} databases.",
                    remedy="Give fractions, or integers as weights.",
                )

    @classmethod
    def of(
        cls,
        databases: Iterable[Sequence[int]],
        tables: Mapping[str, Sequence[Any]],
        secrets: Secrets = "replace-one",
    ) -> FiniteScenarios:
        """From databases and masses; integers are weights, everything else must add up to one."""
        listing = tuple(databases) if isinstance(databases, Iterable) else databases
        arguments = {"databases": listing, "tables": tables}
        check_arguments("of", arguments, {"databases": ROWS, "tables": LABELLED}, GuaranteeError)
        rows = tuple(tuple(int(v) for v in row) for row in listing)
        return cls(rows, tuple((k, _shares(v)) for k, v in tables.items()), secrets)

    @classmethod
    @takes(GuaranteeError, records=PEOPLE, answers=optional(listed(INTEGER)))
    def independent(
        cls,
        records: Mapping[str, Sequence[Sequence[Any]]],
        secrets: Secrets = "replace-one",
        answers: Sequence[int] | None = None,
    ) -> FiniteScenarios:
        """Independent people: for each scenario one pmf per person over the same answers.

        The answers are 0, 1, ... unless named; name ABSENT among them for presence secrets.
        """
        people = {len(laws) for laws in records.values()}
        levels = {len(law) for laws in records.values() for law in laws}
        if len(people) != 1 or len(levels) != 1:
            raise GuaranteeError(
                "the scenarios differ in the number of people or of answers.",
                remedy="Give every person in every scenario the same list of answers.",
            )
        if levels != {0} and max(levels) ** max(people) > MOST:
            raise GuaranteeError(
                f"{max(people)} people with {max(levels)} answers each have more than {MOST:,} "
                "databases, too many to write out.",
                remedy="Use IndependentRecords, which needs no list.",
            )
        codes = tuple(answers) if answers is not None else tuple(range(levels.pop()))
        tables = {}
        for label, laws in records.items():
            shares = [_shares(law) for law in laws]
            tables[label] = [prod(choice, start=Fraction(1)) for choice in product(*shares)]
        return cls.of(product(codes, repeat=people.pop()), tables, secrets)

    @takes(GuaranteeError, fact=TEXT, holds=CALL)
    def given(self, fact: str, holds: Callable[[Database], bool]) -> FiniteScenarios:
        """The same scenarios once `fact` is public; each must give it a chance."""
        keep = [i for i, database in enumerate(self.databases) if holds(database)]
        tables = []
        for label, masses in self.tables:
            total = sum((masses[i] for i in keep), Fraction(0))
            if not total:
                raise GuaranteeError(
                    f"scenario '{label}' gives '{fact}' probability 0, yet it is public.",
                    remedy="Leave out the scenario, or correct the public figure.",
                )
            tables.append((label, tuple(masses[i] / total for i in keep)))
        rows = tuple(self.databases[i] for i in keep)
        return replace(self, databases=rows, tables=tuple(tables), facts=(*self.facts, fact))

    @property
    def people(self) -> int:
        """Number of people."""
        return len(self.databases[0])

    @property
    def possible(self) -> tuple[Database, ...]:
        """Databases that some scenario gives a chance."""
        masses = zip(*(table for _, table in self.tables), strict=True)
        return tuple(row for row, many in zip(self.databases, masses, strict=True) if any(many))

    @property
    def belief(self) -> str:
        """In words."""
        labels = ", ".join(label for label, _ in self.tables)
        return f"one of these scenarios holds: {labels}"

    @property
    def excluded(self) -> tuple[str, ...]:
        """Pairs of which a secret has probability 0 or 1 under a scenario."""
        return tuple(
            f"{label}: {_words(person, pair)}"
            for label, table in self._laws()
            for person, pair in self._pairs()
            if not _undecided(table, person, pair)
        )

    def conditionals(self, level: Level, query: Query | None = None) -> Iterator[Conditionals]:
        """Every secret pair of every scenario that leaves it open."""
        if (query is None) == (level == "query"):
            raise GuaranteeError(
                f"a finite table at level '{level}' "
                + ("needs a query." if query is None else "needs no query."),
                remedy="Give the query for level 'query', none for level 'database'.",
            )
        for label, table in self._laws():
            for person, pair in self._pairs():
                if _undecided(table, person, pair):
                    left, right = (_law(_where(table, person, v), query) for v in pair)
                    yield Conditionals(
                        _words(person, pair), label, left, right, databases=query is None
                    )

    def independence(self, blocks: Sequence[Collection[int]]) -> Independence:
        """By enumeration: P(a, b, rest) = P(a) P(b) P(rest), or P(a, b | s) = P(a | s) P(b | s)."""
        rest = set(range(self.people)).difference(*blocks)
        whole = [*blocks, rest] if rest else list(blocks)
        if all(_factorises(table, whole) for _, table in self._laws()):
            return "blocks"
        given_secret = all(
            _factorises(_where(table, person, value), blocks)
            for _, table in self._laws()
            for person, pair in self._pairs()
            if _undecided(table, person, pair)
            for value in pair
        )
        return "given the secret" if given_secret else "none"

    def _laws(self) -> Iterator[tuple[str, Table]]:
        for label, masses in self.tables:
            rows = zip(self.databases, masses, strict=True)
            yield label, {row: mass for row, mass in rows if mass}

    def _pairs(self) -> Iterator[tuple[int, tuple[int, int]]]:
        """Person and the two answers; for presence secrets the second is ABSENT."""
        for person in range(self.people):
            answers = sorted({database[person] for database in self.databases} - {ABSENT})
            if self.secrets == "presence":
                yield from ((person, (value, ABSENT)) for value in answers)
            else:
                yield from ((person, pair) for pair in combinations(answers, 2))

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "kind": self.kind,
            "secrets": self.secrets,
            "facts": list(self.facts),
            "databases": [list(database) for database in self.databases],
            "tables": {label: [str(m) for m in masses] for label, masses in self.tables},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FiniteScenarios:
        """Inverse of `to_dict`."""
        scenarios = cls.of(data["databases"], data["tables"], data["secrets"])
        return replace(scenarios, facts=tuple(data["facts"]))


def _shares(masses: Sequence[Any]) -> tuple[Fraction, ...]:
    """Masses as rationals; integers are weights out of their sum."""
    shares = [rational(value) for value in masses]
    total = sum(shares, Fraction(0))
    if total and all(isinstance(value, Integral) for value in masses):
        return tuple(value / total for value in shares)
    return tuple(shares)


def _words(person: int, pair: tuple[int, int]) -> str:
    first, second = ("absent" if value == ABSENT else str(value) for value in pair)
    return f"person {person + 1} is {first} or {second}"


def _where(table: Table, person: int, value: int) -> Table:
    return {row: mass for row, mass in table.items() if row[person] == value}


def _undecided(table: Table, person: int, pair: tuple[int, int]) -> bool:
    """Whether both secrets have a probability strictly between 0 and 1 (Eq 10, per scenario)."""
    chances = [sum(_where(table, person, value).values(), Fraction(0)) for value in pair]
    return all(0 < chance < 1 for chance in chances)


def _law(table: Table, query: Query | None) -> Law:
    """The conditional law of the database, or of the query."""
    total = sum(table.values(), Fraction(0))
    masses: dict[Any, Fraction] = defaultdict(Fraction)
    for row, mass in table.items():
        masses[row if query is None else _point(query(row))] += mass / total
    return pmf(list(masses), list(masses.values()))


def _point(value: Any) -> tuple[Any, ...]:
    """A value of the query as a point."""
    try:
        return tuple(value)
    except TypeError:
        return (value,)


def _factorises(table: Table, blocks: Sequence[Collection[int]]) -> bool:
    """Whether the answers of the blocks are independent under the (unnormalised) table."""
    parts = [sorted(block) for block in blocks]
    joint: dict[tuple[Database, ...], Fraction] = defaultdict(Fraction)
    single: list[dict[Database, Fraction]] = [defaultdict(Fraction) for _ in parts]
    for row, mass in table.items():
        parts_of_row = tuple(tuple(row[person] for person in part) for part in parts)
        joint[parts_of_row] += mass
        for law, value in zip(single, parts_of_row, strict=True):
            law[value] += mass
    total = sum(table.values(), Fraction(0))
    if len(joint) != prod(len(law) for law in single):
        return False  # some combination of possible parts is impossible
    return all(
        mass * total ** (len(parts) - 1)
        == prod(
            (law[value] for law, value in zip(single, parts_of_row, strict=True)), start=Fraction(1)
        )
        for parts_of_row, mass in joint.items()
    )
