"""What can be asked of a release, such as ``share(sex = 'female' | age >= 65) by county``.

    request     := expression ["by" name ("," name)*]
    expression  := term (("+" | "-") term)*
    term        := factor (("*" | "/") factor)*
    factor      := number | "-" factor | "(" expression ")" | call
    call        := "count" "(" [condition] ")"
                 | "share" "(" condition ["|" condition] ")"
                 | ("sum" | "mean") "(" column ["|" condition] ")"
                 | "rate" "(" [condition] "," column ["," number] ")"
                 | "median" "(" name ["|" condition] ")"
                 | "quantile" "(" name "," number ["|" condition] ")"
                 | "gini" "(" name ["," number] ["|" condition] ")"
                 | "entropy" "(" name ["|" condition] ")"
                 | "dissimilarity" "(" name "by" name ["|" condition] ")"
                 | ("change" | "growth") "(" expression ")"

Conditions are those of plans (`data.predicate`); `|` reads "among". The text is never executed, and
its length and depth are limited.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from congenial.data.predicate import Tokens
from congenial.errors import InferenceError

MAX_NESTED = 50
MAX_CHARACTERS = 20_000
EXAMPLE = "Write for example count(age >= 65) or share(sex = 'female' | age >= 65) by county."


@dataclass(frozen=True)
class Constant:
    """A number."""

    value: float


@dataclass(frozen=True)
class CountOf:
    """The number of people who meet a condition; all of them where it is empty."""

    condition: str


@dataclass(frozen=True)
class ShareOf:
    """Among people who meet `whole`, the share of those who meet `part`."""

    part: str
    whole: str


@dataclass(frozen=True)
class NumberOf:
    """The sum or the mean of a number over people who meet a condition."""

    column: str
    mean: bool
    condition: str


@dataclass(frozen=True)
class RateOf:
    """People who meet a condition per `per` of an outside file's column."""

    condition: str
    column: str
    per: float


@dataclass(frozen=True)
class QuantileOf:
    """The quantile of an ordered attribute among people who meet a condition."""

    name: str
    probability: float
    condition: str


@dataclass(frozen=True)
class IndexOf:
    """An index of a distribution: gini, entropy, dissimilarity."""

    index: Literal["gini", "entropy", "dissimilarity"]
    name: str
    over: str  # of a dissimilarity, the areas
    top: float | None  # of a gini, the value of an open bin
    condition: str


@dataclass(frozen=True)
class BetweenOf:
    """How an expression changes from the first bundle to the second."""

    growth: bool  # relative to the first
    inner: Expression


@dataclass(frozen=True)
class ArithmeticOf:
    """Two expressions joined by + - * /."""

    operator: Literal["+", "-", "*", "/"]
    left: Expression
    right: Expression


Expression = (
    Constant
    | CountOf
    | ShareOf
    | NumberOf
    | RateOf
    | QuantileOf
    | IndexOf
    | BetweenOf
    | ArithmeticOf
)


@dataclass(frozen=True)
class Question:
    """An expression, and the axes for whose cells it is asked."""

    text: str
    expression: Expression
    by: tuple[str, ...]

    @property
    def compares(self) -> bool:
        """Whether it is about two bundles."""
        return _compares(self.expression)


def _compares(node: Expression) -> bool:
    if isinstance(node, ArithmeticOf):
        return _compares(node.left) or _compares(node.right)
    return isinstance(node, BetweenOf)


def parse_question(text: str) -> Question:
    """Read a question; InferenceError says what is wrong and what would do.

    >>> parse_question("share(sex = 'f' | age >= 65) by county")
    ... # doctest: +NORMALIZE_WHITESPACE
    Question(text="share(sex = 'f' | age >= 65) by county",
      expression=ShareOf(part="sex = 'f'", whole='age >= 65'), by=('county',))
    """
    parser = _Parser(text, EXAMPLE)
    expression = parser.expression(0)
    by = parser.names_after_by()
    if parser.peek().kind != "end":
        parser.fail("an operator, 'by' or the end")
    return Question(text.strip(), expression, by)


class QuestionTokens(Tokens):
    """What is asked in pieces; conditions as they were written."""

    def __init__(self, text: str, example: str) -> None:
        shorter = "Ask for several expressions instead."
        super().__init__(text, "expression", example, InferenceError, MAX_CHARACTERS, shorter)

    def among(self) -> str:
        """The condition after '|', if there is one."""
        return self.condition() if self.take("symbol", "|") else ""

    def condition(self, until: str = "") -> str:
        """The text up to the next '|', ',' or ')' (or a word) outside brackets."""
        first, depth = self.position, 0
        while self.peek().kind != "end":
            token = self.peek()
            if depth == 0 and token.kind == "word" and token.value.lower() == until:
                break
            if token.kind == "symbol":
                if depth == 0 and token.value in "|,)":
                    break
                depth += {"(": 1, ")": -1}.get(token.value, 0)
            self.position += 1
        if first == self.position:
            return ""
        return self.text[self.tokens[first].start : self.tokens[self.position - 1].stop]

    def number(self) -> float:
        """A number."""
        return float(self.need("a number", "number").value)


class _Parser(QuestionTokens):
    """Recursive descent, one method per line of the grammar."""

    # ---- arithmetic --------------------------------------------------------------------------

    def expression(self, depth: int) -> Expression:
        if depth > MAX_NESTED:
            raise InferenceError(
                f"the expression is nested more than {MAX_NESTED} deep.", remedy="Simplify it."
            )
        left = self.term(depth)
        while token := self.take("symbol", "+", "-"):
            left = _joined(token.value, left, self.term(depth))
        return left

    def term(self, depth: int) -> Expression:
        left = self.factor(depth)
        while token := self.take("symbol", "*", "/"):
            left = _joined(token.value, left, self.factor(depth))
        return left

    def factor(self, depth: int) -> Expression:
        if self.take("symbol", "-"):
            return _joined("*", Constant(-1.0), self.factor(depth + 1))
        if self.take("symbol", "("):
            inner = self.expression(depth + 1)
            self.need("')'", "symbol", ")")
            return inner
        number = self.take("number")
        return Constant(float(number.value)) if number else self.call(depth)

    # ---- calls -------------------------------------------------------------------------------

    def call(self, depth: int) -> Expression:
        word = self.need("a number, '(' or a function", "word")
        name = word.value.lower()
        if name not in _CALLS:
            self.position -= 1
            self.fail(f"one of {', '.join(_CALLS)}")
        self.need("'('", "symbol", "(")
        function = _CALLS[name](self, name, depth)
        self.need("')'", "symbol", ")")
        return function

    def between(self, called: str, depth: int) -> Expression:
        return BetweenOf(called == "growth", self.expression(depth + 1))

    def count(self, _: str, __: int) -> Expression:
        return CountOf(self.condition())

    def share(self, _: str, __: int) -> Expression:
        part = self.condition()
        if not part:
            self.fail("a condition")
        return ShareOf(part, self.among())

    def of_number(self, called: str, _: int) -> Expression:
        return NumberOf(self.name("the column that a release sums"), called == "mean", self.among())

    def rate(self, _: str, __: int) -> Expression:
        condition = self.condition()
        self.need("',' and a column of the outside file", "symbol", ",")
        column = self.name("a column of the outside file")
        per = self.number() if self.take("symbol", ",") else 1.0
        return RateOf(condition, column, per)

    def quantile(self, called: str, _: int) -> Expression:
        name, probability = self.name("an attribute"), 0.5
        if called == "quantile":
            self.need("',' and a number between 0 and 1", "symbol", ",")
            probability = self.number()
        if not 0 < probability < 1:
            raise InferenceError(
                f"quantile {probability:g} of {name!r} is not between 0 and 1.",
                remedy=f"Write for example quantile({name}, .9).",
            )
        return QuantileOf(name, probability, self.among())

    def index(self, called: Any, _: int) -> Expression:
        name, over, top = self.name("an attribute"), "", None
        if called == "dissimilarity":
            self.need("'by' and the areas", "word", "by")
            over = self.name("the areas")
        elif called == "gini" and self.take("symbol", ","):
            top = self.number()
        return IndexOf(called, name, over, top, self.among())

    def names_after_by(self) -> tuple[str, ...]:
        if not self.take("word", "by"):
            return ()
        names = [self.name("an axis")]
        while self.take("symbol", ","):
            names.append(self.name("an axis"))
        return tuple(names)


def _joined(operator: Any, left: Expression, right: Expression) -> Expression:
    return ArithmeticOf(operator, left, right)


_CALLS: dict[str, Callable[[_Parser, str, int], Expression]] = {
    "count": _Parser.count,
    "share": _Parser.share,
    "sum": _Parser.of_number,
    "mean": _Parser.of_number,
    "rate": _Parser.rate,
    "median": _Parser.quantile,
    "quantile": _Parser.quantile,
    "gini": _Parser.index,
    "entropy": _Parser.index,
    "dissimilarity": _Parser.index,
    "change": _Parser.between,
    "growth": _Parser.between,
}
