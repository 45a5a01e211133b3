"""The pieces of an expression: numbers, names, 'text', symbols; conditions as they were written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from congenial.data.arguments import expect
from congenial.errors import InferenceError

MAX_CHARACTERS = 20_000

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


class Token(NamedTuple):
    """A piece of an expression, and where it stands."""

    kind: str  # number, word, quoted, text, symbol, end
    value: str
    start: int
    stop: int


def _tokens(text: str) -> Iterator[Token]:
    end, at = len(text.rstrip()), 0
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise InferenceError(
                f"the expression cannot be read from {text[at : at + 20].strip()!r} "
                f"(character {at + 1}).",
                remedy="Quote text with ' and unusual names with \".",
            )
        kind = match.lastgroup or ""
        value = match[kind].replace('""', '"') if kind == "quoted" else match[kind]
        start = match.end() - len(match[0].lstrip())
        yield Token(kind, value, start, match.end())
        at = match.end()
    yield Token("end", "the end", end, end)


class Tokens:
    """A text in pieces, and what may come next; `example` ends every refusal."""

    def __init__(self, text: str, example: str) -> None:
        expect(text, str, "what is asked", example, InferenceError)
        if len(text) > MAX_CHARACTERS:
            raise InferenceError(
                f"the expression has {len(text)} characters, more than {MAX_CHARACTERS}.",
                remedy="Ask for several expressions instead.",
            )
        self.text, self.example = text, example
        self.tokens = tuple(_tokens(text))
        self.position = 0

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

    def fail(self, expected: str) -> NoReturn:
        """Refuse the next piece."""
        token = self.peek()
        raise InferenceError(
            f"the expression has {token.value[:40]!r} at character {token.start + 1} where "
            f"{expected} is expected.",
            remedy=self.example,
        )

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

    def name(self, expected: str) -> str:
        """A name, bare or in double quotes."""
        token = self.take("word") or self.take("quoted") or self.fail(expected)
        return token.value

    def number(self) -> float:
        """A number."""
        return float(self.need("a number", "number").value)
