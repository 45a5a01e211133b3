"""Conditions over the schema, such as ``age >= 18 and sex = 'female'``.

    condition   := all ("or" all)*
    all         := one ("and" one)*
    one         := "not" one | "(" condition ")" | comparison
    comparison  := name ("=" | "!=" | "<>" | "<" | "<=" | ">" | ">=") value
                 | name ["not"] "in" "(" value ("," value)* ")"
                 | name ["not"] "between" number "and" number

A name is an attribute or a coarser name, bare or in "double quotes" (`""` stands for one quote);
a value is a number or 'text' (`''` stands for one quote). Keywords are in any case. `Tokens` also
reads what `congenial estimate` is asked, in which conditions stand.

- Text names a level by its label: ``sex = 'female'``, ``age = '0-4'``, ``age = 'unknown'``.
- A number is compared with the numbers behind bins and integer ranges, exactly. A condition that
  splits a bin is refused: it has no answer on the table. Attributes with whole edges hold whole
  numbers, so ``age <= 9`` is ``age < 10``; with other edges ``x <= 9`` splits the bin that
  starts at 9.
- Levels without a number (such as "unknown") satisfy no numeric comparison, ``!=`` included.
- ``not`` is the plain complement over all levels: ``not age >= 18`` holds for "unknown" as well.

The text is never executed. Its length, depth and number of comparisons are limited, so hostile
text ends in a PredicateError and in nothing else.
"""

from __future__ import annotations

import math
import operator
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from congenial.data.attribute import Attribute, Axis
from congenial.data.rational import Number, written
from congenial.data.schema import Schema, near
from congenial.errors import CongenialError, PredicateError, SchemaError

Mask = NDArray[np.bool_]

MAX_LENGTH = 200_000
MAX_DEPTH = 50
MAX_COMPARISONS = 500
MAX_CELLS = 2**27

EXAMPLE = "Write for example age >= 18 and sex = 'female'."

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>[0-9]{1,30}(?:\.[0-9]{0,30})?(?![\w.])|\.[0-9]{1,30}(?![\w.]))
    | (?P<word>[^\W\d]\w*)
    | "(?P<quoted>(?:[^"]|"")+)"
    | '(?P<text>(?:[^']|'')*)'
    | (?P<symbol><=|>=|<>|!=|[-+*/|=<>(),.])
    )""",
    re.VERBOSE,
)
_KEYWORDS = {"and", "or", "not", "in", "between"}


@dataclass(frozen=True)
class Predicate:
    """A condition, decided for every combination of levels of the attributes it mentions.

    `bases` are those attributes' names in schema order, whichever resolution the text used.
    """

    text: str
    bases: tuple[str, ...]
    _mask: Mask = field(repr=False, compare=False)

    def mask(self) -> Mask:
        """Where the condition holds: read-only, one dimension per name in `bases`."""
        return self._mask


def parse(text: str, schema: Schema) -> Predicate:
    """Read a condition over `schema`; PredicateError says what is wrong and what would do.

    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]},
    ...                            "age": {"edges": [0, 5, 18], "top": "18+"}})
    >>> parse("age >= 5 and sex = 'f'", schema).mask().astype(int).tolist()
    [[0, 1, 1], [0, 0, 0]]
    """
    parser = _Parser(text, schema)
    node = parser.condition(0)
    if parser.peek().kind != "end":
        parser.fail("'and', 'or' or the end")
    used = set(_bases(node))
    attributes = [attribute for attribute in schema.attributes if attribute.name in used]
    shape = tuple(attribute.size for attribute in attributes)
    if math.prod(shape) > MAX_CELLS:
        raise PredicateError(
            f"the condition covers {math.prod(shape)} cells, more than {MAX_CELLS}.",
            remedy="Use fewer attributes in one condition.",
        )
    dimension = {attribute.name: at for at, attribute in enumerate(attributes)}
    # A copy: a broadcast view would share memory between cells.
    mask = np.broadcast_to(_evaluate(node, dimension), shape).copy()
    mask.flags.writeable = False
    return Predicate(text, tuple(dimension), mask)


class Token(NamedTuple):
    """A piece of a text, and where it stands."""

    kind: str  # number, word, quoted, text, symbol, end
    value: str
    start: int
    stop: int


class Tokens:
    """A text in pieces, and what may come next.

    A refusal names the text by `what`, a noun, and ends with `example`; where the text is longer
    than `longest`, with `shorter`.
    """

    def __init__(
        self,
        text: str,
        what: str,
        example: str,
        error: type[CongenialError],
        longest: int,
        shorter: str,
    ) -> None:
        if not isinstance(text, str):
            kind = type(text).__name__
            raise error(f"the {what} is not text but has type {kind}.", remedy=example)
        if len(text) > longest:
            raise error(
                f"the {what} has {len(text)} characters, more than {longest}.", remedy=shorter
            )
        self.text, self.what, self.example, self.error = text, what, example, error
        self.tokens = tuple(self._tokens())
        self.position = 0

    def _tokens(self) -> Iterator[Token]:
        text, at = self.text, 0
        end = len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None:
                raise self.error(
                    f"the {self.what} cannot be read from {text[at : at + 20].strip()!r} "
                    f"(character {at + 1}).",
                    remedy="Quote text with ' and unusual names with \".",
                )
            kind = match.lastgroup or ""
            quote = {"quoted": '"', "text": "'"}.get(kind)
            value = match[kind].replace(quote * 2, quote) if quote else match[kind]
            at = match.end()
            yield Token(kind, value, at - len(match[0].lstrip()), at)
        yield Token("end", "the end", end, end)

    def peek(self) -> Token:
        """The next piece."""
        return self.tokens[self.position]

    def take(self, kind: str, *values: str) -> Token | None:
        """The next piece if it is of a kind (and has one of these values), which it then leaves."""
        token = self.peek()
        value = token.value.lower() if kind == "word" else token.value
        if token.kind != kind or (values and value not in values):
            return None
        self.position += 1
        return token

    def need(self, expected: str, kind: str, *values: str) -> Token:
        """The next piece, which must be of a kind."""
        return self.take(kind, *values) or self.fail(expected)

    def name(self, expected: str) -> str:
        """A name, bare or in double quotes."""
        token = self.take("word") or self.take("quoted") or self.fail(expected)
        return token.value

    def fail(self, expected: str) -> NoReturn:
        """Refuse the next piece."""
        token = self.peek()
        found = "ends" if token.kind == "end" else f"has {token.value[:40]!r}"
        raise self.error(
            f"the {self.what} {found} at character {token.start + 1} where {expected} is expected.",
            remedy=self.example,
        )


class _Leaf(NamedTuple):
    """One comparison: which levels of one attribute satisfy it."""

    base: str
    holds: Mask


class _Not(NamedTuple):
    part: _Node


class _Join(NamedTuple):
    combine: Callable[[Mask, Mask], Mask]
    parts: tuple[_Node, ...]


_Node = _Leaf | _Not | _Join


def _bases(node: _Node) -> Iterator[str]:
    if isinstance(node, _Leaf):
        yield node.base
    elif isinstance(node, _Not):
        yield from _bases(node.part)
    else:
        for part in node.parts:
            yield from _bases(part)


def _evaluate(node: _Node, dimension: dict[str, int]) -> Mask:
    """The node's mask with one dimension per base, of length 1 where it does not matter."""
    if isinstance(node, _Leaf):
        shape = [1] * len(dimension)
        shape[dimension[node.base]] = -1
        return node.holds.reshape(shape)
    if isinstance(node, _Not):
        return ~_evaluate(node.part, dimension)
    return reduce(node.combine, (_evaluate(part, dimension) for part in node.parts))


class _Parser(Tokens):
    """Recursive descent, one method per line of the grammar."""

    def __init__(self, text: str, schema: Schema) -> None:
        shorter = "Declare a coarser name in the schema and use that."
        super().__init__(text, "condition", EXAMPLE, PredicateError, MAX_LENGTH, shorter)
        self.schema = schema
        self.comparisons = 0
        self.subjects: dict[str, _Subject] = {}

    def condition(self, depth: int) -> _Node:
        if depth > MAX_DEPTH:
            raise PredicateError(
                f"the condition is nested more than {MAX_DEPTH} deep.", remedy="Simplify it."
            )
        return self.joined("or", operator.or_, lambda: self.all_of(depth))

    def all_of(self, depth: int) -> _Node:
        return self.joined("and", operator.and_, lambda: self.one(depth))

    def joined(
        self, word: str, combine: Callable[[Mask, Mask], Mask], part: Callable[[], _Node]
    ) -> _Node:
        parts = [part()]
        while self.take("word", word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else _Join(combine, tuple(parts))

    def one(self, depth: int) -> _Node:
        negate = False
        while self.take("word", "not"):
            negate = not negate
        if self.take("symbol", "("):
            node = self.condition(depth + 1)
            self.need("')'", "symbol", ")")
        else:
            node = self.comparison()
        return _Not(node) if negate else node

    def comparison(self) -> _Node:
        self.comparisons += 1
        if self.comparisons > MAX_COMPARISONS:
            raise PredicateError(
                f"the condition has more than {MAX_COMPARISONS} comparisons.",
                remedy="Use 'in', or declare a coarser name in the schema.",
            )
        if self.peek().kind == "word" and self.peek().value.lower() in _KEYWORDS:
            self.fail("a name")
        name = self.name("a name")
        subject = self.subjects.get(name) or _Subject(self.schema, name)
        self.subjects[name] = subject
        negate = self.take("word", "not") is not None
        if self.take("word", "in"):
            node = _Leaf(subject.base, self.members(subject))
        elif self.take("word", "between"):
            node = _Leaf(subject.base, self.between(subject))
        elif negate:
            self.fail("'in' or 'between'")
        else:
            symbol = self.need(
                "a comparison", "symbol", "=", "!=", "<>", "<", "<=", ">", ">="
            ).value
            if symbol == "=" and self.take("symbol", "="):
                raise PredicateError(
                    "== is not a comparison of conditions.",
                    remedy=f"Use one =, as in {name[:40]} = 'A'.",
                )
            return _Leaf(subject.base, subject.compare(symbol, self.value()))
        return _Not(node) if negate else node

    def value(self) -> Number | str:
        token = self.take("text")
        return token.value if token else self.number("a number or 'text'")

    def number(self, expected: str) -> Number:
        sign = self.take("symbol", "+", "-")
        number = Fraction(self.need(expected, "number").value)
        number = -number if sign and sign.value == "-" else number
        return number.numerator if number.denominator == 1 else number

    def members(self, subject: _Subject) -> Mask:
        self.need("'('", "symbol", "(")
        values = [self.value()]
        while self.take("symbol", ","):
            values.append(self.value())
        self.need("',' or ')'", "symbol", ")")
        return subject.any_of(values)

    def between(self, subject: _Subject) -> Mask:
        low = self.number("a number")
        self.need("'and'", "word", "and")
        high = self.number("a number")
        if low > high:
            raise PredicateError(
                f"between {written(low)} and {written(high)} is never true.",
                remedy="Write the smaller number first.",
            )
        return subject.compare(">=", low) & subject.compare("<=", high)


class _Subject:
    """The left side of a comparison: an axis of the schema and the numbers behind it, if any."""

    def __init__(self, schema: Schema, name: str) -> None:
        try:
            self.axis: Axis = schema.axis(name)
        except SchemaError as error:
            raise PredicateError(f"the condition uses {name[:80]!r}: {error}") from None
        self.name = name
        self.base = self.axis.base
        self.attribute: Attribute = schema.attribute(self.base)
        self.codes = {label: code for code, label in enumerate(self.axis.levels)}
        # The intervals are adjacent and increasing, so a number is placed by bisection.
        intervals = self.attribute.intervals if name == self.base else ()
        self.lowers = [-math.inf if low is None else low for low, _ in intervals]
        self.uppers = [math.inf if high is None else high for _, high in intervals]

    def compare(self, symbol: str, value: Number | str) -> Mask:
        """The base levels for which ``name symbol value`` holds."""
        if symbol == "=":
            return self.any_of([value])
        if symbol in ("!=", "<>"):
            return self._unequal(value)
        if isinstance(value, str):
            raise PredicateError(
                f"{self.name} {symbol} {value[:80]!r}: text categories have no order.",
                remedy="Use =, != or in, or compare with a number.",
            )
        cut = self._place(symbol, value)
        holds = np.zeros(self.attribute.size, dtype=np.bool_)
        if symbol in ("<", "<="):
            holds[:cut] = True
        else:
            holds[cut : len(self.uppers)] = True
        return holds

    def any_of(self, values: Sequence[Number | str]) -> Mask:
        """The base levels equal to one of `values`."""
        labelled = np.zeros(self.axis.size, dtype=np.bool_)
        numbered = np.zeros(self.attribute.size, dtype=np.bool_)
        for value in values:
            if isinstance(value, str):
                labelled[self._code(value)] = True
            else:
                numbered[self._place(">=", value) : self._place("<=", value)] = True
        return numbered | labelled[self.axis.of_base]

    def _unequal(self, value: Number | str) -> Mask:
        holds = ~self.any_of([value])
        if not isinstance(value, str):
            holds[len(self.uppers) :] = False  # levels without a number
        return holds

    def _code(self, label: str) -> int:
        if label not in self.codes:
            file = f"Use one of its {self.axis.size} categories, which are listed in a file."
            remedy = file if self.attribute.from_file else near(label, self.axis.levels)
            raise PredicateError(f"{self.name!r} has no category {label[:80]!r}.", remedy=remedy)
        return self.codes[label]

    def _place(self, symbol: str, value: Number) -> int:
        """How many intervals lie below `value` (up to and including it for <= and >).

        Raises PredicateError when an interval lies on both sides.
        """
        comparison = f"{self.name} {symbol} {written(value)}"
        if not self.uppers:
            raise PredicateError(
                f"{comparison}: the categories of {self.name!r} are text, not numbers.",
                remedy=f"Write {self.name} = '{written(value)}' if that is a category.",
            )
        if self.attribute.whole and not isinstance(value, int):
            raise PredicateError(
                f"{comparison}: {self.name!r} has whole numbers only.",
                remedy=f"Use {math.floor(value)} or {math.ceil(value)}.",
            )
        included = symbol in ("<=", ">")
        if included and self.attribute.whole:
            value, included = value + 1, False
        below = bisect_right(self.uppers, value)
        if below < len(self.uppers):
            lower = self.lowers[below]
            if lower < value or (included and lower == value):
                self._refuse_cut(comparison, below)
        return below

    def _refuse_cut(self, comparison: str, code: int) -> NoReturn:
        lower, upper = self.attribute.intervals[code]
        ends = [written(end) for end in (lower, upper) if end is not None]
        below = "has no lower edge" if lower is None else f"starts at {written(lower)}"
        above = "has no upper edge" if upper is None else f"ends before {written(upper)}"
        raise PredicateError(
            f"{comparison} cuts the class {self.attribute.levels[code]!r} of {self.name!r}, which "
            f"{below} and {above}.",
            remedy=f"Compare with < or >= at the edge {' or '.join(ends)}, or add an edge.",
        )
