"""Every error Congenial raises on purpose. A message says what, which value, the rule, the remedy.

    CongenialError
    ├── SchemaError        the schema contradicts itself, or a name is not in it
    ├── PredicateError     a condition such as "age >= 18" cannot be read or cuts a bin
    ├── DataError          the data do not fit the schema or the unit of protection
    ├── FigureError       figures contradict each other, or the data do not satisfy them
    ├── StructureError     the figures have a structure for which nothing exact is built
    ├── GuaranteeError     two promises cannot be compared, added or converted
    ├── PlanError          the plan file is malformed
    ├── LedgerError        the ledger cannot be read, written, or is in the wrong state
    │   └── BudgetError    the release would spend more than the budget allows
    ├── BundleError        a published folder is missing, damaged, or already there
    ├── InferenceError     a release has no density, a model does not fit, a sampler got stuck
    │   └── UnansweredError  the law of a release gives no answer to what was asked
    └── RandomnessError    the source of randomness failed; nothing was released

No message carries a confidential value: not a count, not a record, not a level found in the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

MOST_NAMES = 8  # that a message lists


class CongenialError(Exception):
    """Base of all errors raised on purpose; `remedy` says what the reader can do about it.

    `exit_code` is what the command line ends with. No message holds a confidential value.

    >>> error = CongenialError("level 95 is not between 0 and 1.", remedy="Use 0.95.")
    >>> str(error), error.remedy
    ('level 95 is not between 0 and 1. Use 0.95.', 'Use 0.95.')
    """

    exit_code = 2

    def __init__(self, what: str, *, remedy: str = "") -> None:
        super().__init__(f"{what} {remedy}".rstrip())
        self.what = what
        self.remedy = remedy


def some_of(names: Iterable[object], between: str = ", ") -> str:
    """Names for a message: the first few, and how many more there are; long ones cut.

    >>> some_of("abcdefghijk"), some_of(["x" * 99, "y"])[60:]
    ('a, b, c, d, e, f, g, h, and 3 more', '..., y')
    """
    listed = [str(name) for name in names]
    short = [name if len(name) <= 60 else f"{name[:60]}..." for name in listed[:MOST_NAMES]]
    more = len(listed) - len(short)
    return between.join([*short, f"and {more} more"] if more else short)


class SpentNote(str):
    """A note on an error that came after a draw: what is spent, and how to finish.

    Unlike the text of an error nobody foresaw it quotes no data: it may be shown to anybody.
    """


def spent_words(error: BaseException) -> list[str]:
    """What an error, or an earlier one that it hides, says about a draw, beyond its own text."""
    sentence = str(error) if isinstance(error, CongenialError) else ""
    words: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        notes = [note for note in getattr(cause, "__notes__", ()) if isinstance(note, SpentNote)]
        words += [note for note in notes if note != sentence and note not in words]
        cause = cause.__context__
    return words


class SchemaError(CongenialError):
    """The schema contradicts itself, or a name is not in it."""


class PredicateError(CongenialError):
    """A condition such as "age >= 18" cannot be read, or cuts a bin of the schema."""


@contextmanager
def located(place: str) -> Iterator[None]:
    """A name or condition that the schema refuses is reported with its place in the plan.

    >>> with located("publish.Adults"):
    ...     raise PredicateError("age >= 17 cuts the class '0-17'.")
    Traceback (most recent call last):
    congenial.errors.PredicateError: publish.Adults: age >= 17 cuts the class '0-17'.
    """
    try:
        yield
    except (SchemaError, PredicateError) as error:
        raise type(error)(f"{place}: {error.what}", remedy=error.remedy) from error


class DataError(CongenialError):
    """The confidential data do not fit the schema or the unit of protection."""

    exit_code = 3


class FigureError(CongenialError):
    """Mandated statistics contradict each other, or the data do not satisfy them."""


class StructureError(CongenialError):
    """The figures have a structure for which nothing exact is built."""


class GuaranteeError(CongenialError):
    """Two promises cannot be compared, added or converted."""


class PlanError(CongenialError):
    """The plan file is malformed; the message names the key, the value, the rule, the remedy."""


class LedgerError(CongenialError):
    """The ledger cannot be read or written, or is in the wrong state for the request."""

    exit_code = 4


class BudgetError(LedgerError):
    """The release would spend more than the budget allows; nothing was drawn."""

    exit_code = 5


class BundleError(CongenialError):
    """A published folder is missing, damaged, or already there."""

    exit_code = 6


class InferenceError(CongenialError):
    """A release has no density, a model does not fit it, or a sampler did not get there.

    Raised by `infer`, `estimate` and the tests, from public numbers alone, so its text can be shown
    to anybody. The remedy names what can be asked instead.

    >>> error = InferenceError("chains disagree (R-hat 1.3).", remedy="Draw more.")
    >>> str(error), error.exit_code
    ('chains disagree (R-hat 1.3). Draw more.', 2)
    """


class UnansweredError(InferenceError, StructureError):
    """The law of a release gives no estimate or interval for what was asked.

    The remedy says what can be asked. (Also a `StructureError`, as which it was raised before.)
    """


class RandomnessError(CongenialError):
    """The source of randomness failed; nothing was released."""

    exit_code = 7
