from __future__ import annotations

import copy
import ctypes
import os
import pickle

import numpy as np
import pytest

from congenial.data.schema import Schema
from congenial.errors import RandomnessError
from congenial.mechanisms.plain import PlainGaussian, PlainLaplace
from congenial.pairs.adjacency import ReplaceOne
from congenial.privacy.guarantee import Guarantee
from congenial.sampling import RecordedRandomness, SeededRandomness, SystemRandomness, uniform_below
from congenial.sampling.randomness import open_uniform

SEED = 20260701


def test_words_do_not_depend_on_how_they_are_asked_for():
    a, b = SeededRandomness(SEED), SeededRandomness(SEED)
    pieces = [a.words(3), a.words(5000), [a.word()], a.words(0), a.words(11)]
    assert np.array_equal(np.concatenate(pieces).astype(np.uint64), b.words(5015))


def test_only_the_system_source_is_publishable():
    assert SystemRandomness().publishable
    assert not SeededRandomness(3).publishable
    assert not RecordedRandomness([1]).publishable
    assert SeededRandomness(3).label == "seeded with 3: not for publication"


def test_system_words_are_fresh_and_read_only():
    source = SystemRandomness()
    words = source.words(9000)
    assert len(np.unique(words)) == 9000
    with pytest.raises(ValueError, match="read-only"):
        words[0] = 1


def test_exhausted_tape_raises():
    source = RecordedRandomness([7, 8])
    assert source.word() == 7
    with pytest.raises(RandomnessError, match="used up"):
        source.words(2)


def test_system_words_are_aes_256_in_counter_mode(monkeypatch):
    """Known answer: AES-256 of the zero block under the zero key (NIST)."""
    monkeypatch.setattr(os, "urandom", bytes)
    first = SystemRandomness().words(2)
    assert first.astype("<u8").tobytes().hex() == "dc95c078a2408989ad48a21492842087"


def test_every_block_has_a_key_of_its_own(monkeypatch):
    asked, real = [], os.urandom
    monkeypatch.setattr(os, "urandom", lambda n: asked.append(real(n)) or asked[-1])
    source = SystemRandomness()
    for n in (1, 5000, 9000, 3):
        source.words(n)
    assert [len(key) for key in asked] == [32] * len(asked)
    assert len(set(asked)) == len(asked) >= 3


@pytest.mark.parametrize("failure", [OSError("no entropy"), b"short"])
def test_failing_system_generator(monkeypatch, failure):
    def broken(n: int) -> bytes:
        if isinstance(failure, Exception):
            raise failure
        return failure

    monkeypatch.setattr(os, "urandom", broken)
    with pytest.raises(RandomnessError, match="nothing was released"):
        SystemRandomness().word()


@pytest.mark.parametrize("seed", [-1, 1.5, True])
def test_bad_seed(seed):
    with pytest.raises(RandomnessError, match="seed"):
        SeededRandomness(seed)


@pytest.mark.parametrize(
    "source", [SystemRandomness(), SeededRandomness(1), RecordedRandomness([1])]
)
def test_no_copies(source):
    for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="repeats its words"):
            duplicate(source)


def fork_by_libc() -> int:
    """A fork that Python is not told of, as other code in the process may make one."""
    return ctypes.PyDLL(None).fork()


def in_child(action, fork=None) -> bytes:
    """Run action in a forked child and return what it wrote."""
    read, write = os.pipe()
    pid = (fork or os.fork)()
    if pid == 0:  # pragma: no cover - another process
        try:
            os.write(write, action())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        out = pipe.read()
    os.waitpid(pid, 0)
    return out


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("fork", [None, fork_by_libc], ids=["Python", "libc"])
def test_a_forked_child_shares_no_word(fork):
    source = SystemRandomness()
    source.word()  # a block is now buffered
    child = in_child(lambda: source.words(16).tobytes(), fork)
    assert len(child) == 128
    assert not set(np.frombuffer(child, np.uint64).tolist()) & set(source.words(4000).tolist())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("fork", [None, fork_by_libc], ids=["Python", "libc"])
def test_a_seeded_stream_refuses_to_repeat_itself_in_a_child(fork):
    source = SeededRandomness(SEED)
    source.word()

    def action() -> bytes:
        try:
            source.words(4)
        except RandomnessError as error:
            return str(error).encode()
        return b"drew"

    assert b"forked" in in_child(action, fork)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 2**63 + 1, 2**64, 2**64 + 1, 3**100])
def test_uniform_below_range(n):
    source = SeededRandomness(SEED)
    draws = [uniform_below(n, source) for _ in range(50)]
    assert all(0 <= d < n for d in draws)
    if n > 2**60:
        assert max(draws) > n // 2 > min(draws)


def test_uniform_below_rejects_exactly_the_surplus():
    # 2^64 mod 3 = 1: only x with (3 x mod 2^64) < 1, i.e. x = 0, is drawn again
    assert uniform_below(3, RecordedRandomness([0, 2**64 - 1])) == 2
    assert uniform_below(3, RecordedRandomness([1])) == 0
    # a power of two never rejects
    assert uniform_below(4, RecordedRandomness([0])) == 0


def test_uniform_below_is_uniform(fits):
    source = SeededRandomness(SEED)
    counts = np.bincount([uniform_below(7, source) for _ in range(7000)], minlength=7)
    assert fits(counts, np.full(7, 1 / 7))
    assert not fits(counts, np.array([1.2, 0.8, 1, 1, 1, 1, 1]) / 7)


def test_uniform_below_needs_a_value():
    with pytest.raises(RandomnessError, match="n >= 1"):
        uniform_below(0, SeededRandomness(1))


def test_a_uniform_is_never_zero_or_one():
    ends = np.array([0, 2**64 - 1], dtype=np.uint64)
    assert open_uniform(ends).tolist() == [2.0**-54, 1 - 2.0**-53]


@pytest.mark.parametrize("mechanism", [PlainLaplace, PlainGaussian])
def test_continuous_noise_is_finite_for_every_word(mechanism):
    schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    pairs = ReplaceOne(schema)
    pure = mechanism is PlainLaplace
    target = Guarantee.pure(1, pairs) if pure else Guarantee.gaussian(1, pairs)
    made = mechanism.calibrate(target, ["sex"])
    assert np.isfinite(made.noise(RecordedRandomness([0, 2**64 - 1]), 1)).all()
