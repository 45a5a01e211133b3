"""One stream of words per part of a release, all keyed by one secret.

A release that is drawn part by part, by several processes, again after an interruption, must draw
the same noise for a part whoever draws it and however often: two different draws around the same
counts would tell more than one. So the words of a part are a function of a secret, drawn once from
the operating system, and of the part's name: a key of its own, which is all that whoever draws the
part is given.
"""

from __future__ import annotations

import hmac
from hashlib import sha256

import numpy as np

from congenial.errors import RandomnessError
from congenial.sampling.randomness import Randomness, Words

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
        found = np.frombuffer(self._stream.update(bytes(8 * n)), dtype="<u8")
        return found.astype(np.uint64, copy=True)

    def _after_fork(self) -> None:
        super()._after_fork()
        self._forked = True
