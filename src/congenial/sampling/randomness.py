"""Where the random bits come from, and exact uniform integers made of them.

Everything random in Congenial is a function of a stream of 64-bit words. For a release they are
keyed by the operating system; a seeded stream is for tests and studies and says so; a recorded
stream replays a test. A word is handed out once: never again to another draw, another thread or a
forked process.

A release that is drawn part by part, by several processes, again after an interruption, must draw
the same noise for a part whoever draws it and however often: two different draws around the same
counts would tell more than one. So the words of a part are a function of a secret, drawn once from
the operating system, and of the part's name (`key_of`, `KeyedRandomness`): a key of its own, which
is all that whoever draws the part is given.
"""

from __future__ import annotations

import hmac
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Sequence
from hashlib import sha256
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from congenial.errors import RandomnessError

Words = npt.NDArray[np.uint64]

_BLOCK = 4096  # words fetched at once for small requests (32 KiB)


class Randomness(ABC):
    """A stream of independent uniform 64-bit words.

    `publishable` says whether a release drawn from it may be published, `label` names it in a
    bundle. Small requests are served from a block fetched in advance; the order of the words does
    not depend on how they are asked for. A fork drops the block in the child; pickling is refused,
    since a copy would hand out the same words again.
    """

    publishable: bool = False
    label: str = ""

    def __init__(self) -> None:
        self._block: Words = np.empty(0, dtype=np.uint64)
        self._lock = threading.Lock()
        self._process = os.getpid()
        _live.add(self)

    @abstractmethod
    def _fetch(self, n: int) -> Words:
        """Return the next n words of the source."""

    def words(self, n: int) -> Words:
        """Return the next n words as a read-only array. Raises RandomnessError if the source
        fails.
        """
        if os.getpid() != self._process:  # forked by other code than Python's, which tells nobody
            self._in_child()
        with self._lock:
            if n <= self._block.size:
                out, self._block = self._block[:n], self._block[n:]
                return out
            missing = n - self._block.size
            fresh = self._fetch(missing if missing >= _BLOCK else _BLOCK)
            fresh.flags.writeable = False
            out = np.concatenate([self._block, fresh[:missing]])
            out.flags.writeable = False
            self._block = fresh[missing:]
            return out

    def word(self) -> int:
        """Return the next word as an integer in 0 .. 2**64 - 1."""
        return int(self.words(1)[0])

    def _in_child(self) -> None:
        """Begin anew in a forked child; its lock may be held by a thread that is not in it."""
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._after_fork()

    def _after_fork(self) -> None:
        """Forget the block in a forked child: the parent hands out what is left of it."""
        self._block = np.empty(0, dtype=np.uint64)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} cannot be copied or pickled: a copy repeats its words."
        )


_live: weakref.WeakSet[Randomness] = weakref.WeakSet()


def _forked() -> None:
    for source in list(_live):
        source._in_child()


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_forked)


class SystemRandomness(Randomness):
    """The only source for a release that is published: the operating system's generator
    (`os.urandom`), expanded by AES-256 in counter mode.

    Every block of words has a key of its own, 256 bits from the system, used once and forgotten:
    nothing is carried from block to block, so a later look into memory tells nothing about
    earlier words. Expanding is some ten times as fast as asking the system for every byte.

    Assumed: the system's generator is sound, and AES-256 is a pseudo-random permutation (NIST SP
    800-38A). A block of b bytes then differs from ideal bits by at most (b / 16)^2 / 2^129 against
    any feasible observer, beyond what breaking AES would give: 2^-77 for 1 GB.
    """

    publishable = True
    label = "operating system, expanded by AES-256-CTR"

    def _fetch(self, n: int) -> Words:
        # imported here: a process that draws nothing does not load it
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES256
        from cryptography.hazmat.primitives.ciphers.modes import CTR

        counter = bytes(16)  # starts at 0: the key is never used again
        stream = Cipher(AES256(system_key()), CTR(counter)).encryptor()
        return np.frombuffer(stream.update(bytes(8 * n)), dtype="<u8").astype(np.uint64, copy=False)


def system_key() -> bytes:
    """256 bits from the operating system, or RandomnessError."""
    try:
        key = os.urandom(32)
    except (OSError, NotImplementedError) as error:
        raise RandomnessError(
            "the operating system's random generator failed; nothing was released.",
            remedy="Try again once the system is healthy.",
        ) from error
    if len(key) != 32:
        raise RandomnessError(
            "the operating system returned too few random bytes; nothing was released.",
            remedy="Try again once the system is healthy.",
        )
    return key


class SeededRandomness(Randomness):
    """A reproducible stream (Philox) for tests and studies; what is drawn from it is not for
    publication.

    After a fork parent and child would continue one stream, so the child refuses to draw: give each
    process a seed of its own.

    Who knows the seed can take the noise away: bundles drawn from it say NOT FOR PUBLICATION.

    >>> SeededRandomness(1).words(2).tolist() == SeededRandomness(1).words(2).tolist()
    True
    >>> SeededRandomness(1).label
    'seeded with 1: not for publication'
    """

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise RandomnessError(f"seed {seed!r} is not valid.", remedy="Give an integer >= 0.")
        super().__init__()
        self.seed = seed
        self.label = f"seeded with {seed}: not for publication"
        self._bits = np.random.Philox(seed)
        self._forked = False

    def __repr__(self) -> str:
        return f"SeededRandomness({self.seed})"

    def _fetch(self, n: int) -> Words:
        if self._forked:
            raise RandomnessError(
                "a forked process used its parent's seeded stream and would repeat its words.",
                remedy="Make a SeededRandomness with another seed in each process.",
            )
        return np.asarray(self._bits.random_raw(n), dtype=np.uint64)

    def _after_fork(self) -> None:
        super()._after_fork()
        self._forked = True


class RecordedRandomness(Randomness):
    """Replays given words, for tests; RandomnessError when they run out.

    >>> RecordedRandomness([3, 4]).words(2).tolist()
    [3, 4]
    """

    label = "recorded words: not for publication"

    def __init__(self, words: Sequence[int] | Words) -> None:
        super().__init__()
        self._block = np.array(words, dtype=np.uint64)
        self._block.flags.writeable = False

    @property
    def remaining(self) -> int:
        """How many words are left."""
        return int(self._block.size)

    def _fetch(self, n: int) -> Words:  # noqa: ARG002 - the tape has no more words
        raise RandomnessError("the recorded words are used up.", remedy="Record a longer stream.")

    def _after_fork(self) -> None:
        """Keep the tape: a replay is meant to repeat."""


def open_uniform(words: Words) -> npt.NDArray[np.float64]:
    """The first 53 bits of each word as a double strictly between 0 and 1.

    Each value is in the middle of its cell of width 2^-53, as far as doubles can tell. The middle
    of the last cell is nearest to 1.0, where quantiles are infinite, so that it is 1 - 2^-53.

    >>> open_uniform(np.array([2**64 - 1], dtype=np.uint64)).tolist() == [1 - 2**-53]
    True
    """
    middle = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return np.minimum(middle, 1 - 2.0**-53)


def uniform_below(n: int, randomness: Randomness) -> int:
    """Return an integer uniform on 0 .. n - 1, exactly, for any n >= 1.

    n = 1 takes no word. Otherwise a number x of b = 64 * ceil(bits/64) random bits (first word most
    significant) is mapped to floor(x n / 2^b); the x whose low part (x n mod 2^b) is below 2^b mod
    n are drawn again, which leaves equally many x for each result (Lemire's multiply-and-reject).

    >>> uniform_below(10, RecordedRandomness([2**63 + 1]))
    5
    """
    if n < 1:
        raise RandomnessError(f"no integer lies in 0 .. {n - 1}.", remedy="Give n >= 1.")
    if n == 1:
        return 0
    size = -(-(n - 1).bit_length() // 64)
    span = 1 << (64 * size)
    while True:
        x = 0
        for w in randomness.words(size):
            x = (x << 64) | int(w)
        high, low = divmod(x * n, span)
        if low >= span % n:
            return high


BYTES = 32  # of a secret, and of a key


def key_of(secret: bytes, name: str) -> bytes:
    """HMAC-SHA-256(secret, name): the key of one part, from which no other follows."""
    if len(secret) != BYTES:
        raise RandomnessError(
            f"a secret of {len(secret)} bytes.",
            remedy=f"Give {BYTES} bytes, such as system_key().",
        )
    return hmac.new(secret, name.encode(), sha256).digest()


class KeyedRandomness(Randomness):
    """AES-256 in counter mode under a key of its own, `key_of(secret, name)`.

    Assumed, beyond what `SystemRandomness` assumes: HMAC-SHA-256 is a pseudo-random function, so
    that keys of different names are as good as independent. Whoever knows the secret can take the
    noise away: it stays in the curator's private folder and is deleted with it.

    >>> secret = bytes(32)
    >>> one, again, other = (KeyedRandomness(key_of(secret, n)).word() for n in "aab")
    >>> one == again, one == other
    (True, False)
    """

    publishable = True
    label = "operating system, one key per part by HMAC-SHA-256, expanded by AES-256-CTR"

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES256
        from cryptography.hazmat.primitives.ciphers.modes import CTR

        super().__init__()
        self._stream = Cipher(AES256(key), CTR(bytes(16))).encryptor()
        self._forked = False

    def _fetch(self, n: int) -> Words:
        if self._forked:
            raise RandomnessError(
                "a forked process used its parent's stream and would repeat its words.",
                remedy="Make a KeyedRandomness in the process that draws.",
            )
        words = np.frombuffer(self._stream.update(bytes(8 * n)), dtype="<u8")
        return words.astype(np.uint64, copy=True)

    def _after_fork(self) -> None:
        super()._after_fork()
        self._forked = True
