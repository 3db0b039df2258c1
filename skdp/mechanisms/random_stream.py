"""Streams of random bytes, uniforms and normals for mechanisms and samplers.

A stream is the output of ChaCha20 (RFC 8439), a cryptographic generator. BLAKE2b derives its keys
from a 256-bit key and a counter. Without a seed the key comes from the operating system.
"""

from __future__ import annotations

import glob
import hashlib
import itertools
import math
import numbers
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from skdp.threads import share_out

_KEY_BYTES = 32
# Numbers per nonce and thread, and the least number of parts for several threads.
_PART, _SHARED_PARTS = 2**14, 4
# Numbers drawn at once for single use: a group of the generator.
_AT_ONCE = 128
_process, _entropy = 0, b""


def _renew_entropy() -> None:
    """Give this process entropy that its parent does not have."""
    global _process, _entropy
    _entropy, _process = os.urandom(_KEY_BYTES), os.getpid()


# Cost of a draw without compiled loops (in numbers), words per cost of a normal, and the cost after
# which a process loads or compiles the loops.
_A_DRAW, _WORDS = 2**10, 8
_TO_LOAD, _FEW = 2**14, 2**18
_loading = threading.RLock()
_compiled: list[Any] = []
_drawn = 0


def load_generator(count: int = _FEW) -> Any:
    """Return the module that fills arrays, for `count` more numbers in this process.

    Forks wait until it is imported and compiled.
    """
    global _drawn
    if not _compiled:
        with _loading:
            from skdp.mechanisms import _chacha, _uncompiled, _ziggurat

            _drawn += count + _A_DRAW
            if _drawn < _TO_LOAD or (_drawn < _FEW and not _are_on_disk(_ziggurat)):
                return _uncompiled
            block = _chacha.first_block(bytes(_KEY_BYTES), 0)
            _chacha.fill_words(block, np.empty(_chacha.GROUP, dtype=np.uint64))
            _ziggurat.fill_normals(block, np.empty(1))
            _compiled[:] = [_ziggurat]
    return _compiled[0]


def _are_on_disk(module: Any) -> bool:
    """Return whether loops were compiled before, possibly by another version of numba."""
    folder = glob.escape(str(module.resolve_words.stats.cache_path))
    return bool(glob.glob(f"{folder}/_ziggurat.resolve_words-*.nbi"))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_entropy)
    os.register_at_fork(
        before=_loading.acquire, after_in_parent=_loading.release, after_in_child=_loading.release
    )


class RandomStream:
    """A cryptographic stream of random numbers, with independent children.

    Create one with :meth:`from_entropy` or :meth:`from_seed`.

    Parameters
    ----------
    key : bytes
        Secret of 32 bytes that determines the entire stream.
    seeded : bool
        Whether the key can be recomputed from a seed. Privacy statements report it, as a guarantee
        does not protect against anyone with the seed.

    Examples
    --------
    >>> from skdp.mechanisms import RandomStream
    >>> stream = RandomStream.from_entropy()
    >>> stream.seeded, stream.standard_normal(3).shape
    (False, (3,))
    >>> replayed = RandomStream.from_seed(0, b"a test"), RandomStream.from_seed(0, b"a test")
    >>> bool((replayed[0].words(4) == replayed[1].words(4)).all()), replayed[0].seeded
    (True, True)
    """

    __slots__ = ("_counter", "_key", "_waiting", "seeded")

    def __init__(self, key: bytes, *, seeded: bool) -> None:
        if len(key) != _KEY_BYTES:
            raise ValueError(f"key must hold {_KEY_BYTES} bytes, got {len(key)}.")
        self._key = key
        # Threads share it without a lock: a fork could catch that in another thread's hands.
        self._counter = itertools.count()
        self._waiting: dict[tuple[bytes, str], deque[Any]] = {}
        self.seeded = seeded

    @classmethod
    def from_entropy(cls) -> Self:
        """Return a stream with a fresh key from the operating system."""
        return cls(os.urandom(_KEY_BYTES), seeded=False)

    @classmethod
    def from_seed(cls, seed: int | bytes, context: bytes = b"") -> Self:
        """Return the stream that a seed and a context determine.

        Parameters
        ----------
        seed : int or bytes
            Seed.
        context : bytes, default=b""
            Purpose of the stream. Streams with one seed and different contexts are independent.
            Estimators use a digest of the training data and all parameters, so only identical fits
            share noise. A fit counter would not suffice, as clones in a grid search all count from
            zero.

        Returns
        -------
        RandomStream
            A stream with ``seeded=True``.
        """
        material = seed if isinstance(seed, bytes) else str(int(seed)).encode()
        digest = hashlib.blake2b(digest_size=_KEY_BYTES, person=b"skdp-seed")
        for part in (material, context):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
        return cls(digest.digest(), seeded=True)

    def spawn(self, label: str) -> Self:
        """Return an independent child stream; the same label gives the same child.

        Examples
        --------
        >>> from skdp.mechanisms import RandomStream
        >>> stream = RandomStream.from_entropy()
        >>> batches, noise = stream.spawn("batches"), stream.spawn("noise")
        >>> bool(batches.words(1)[0] == noise.words(1)[0]), stream.spawn("batches").seeded
        (False, False)
        """
        digest = hashlib.blake2b(
            self._own_entropy(), digest_size=_KEY_BYTES, key=self._key, person=b"skdp-spawn"
        )
        digest.update(label.encode())
        return type(self)(digest.digest(), seeded=self.seeded)

    def bound_to(self, context: bytes) -> Self:
        """Return the child for one use of a seed, such as one table; an unseeded stream itself."""
        return self.spawn(context.hex()) if self.seeded else self

    def _own_entropy(self) -> bytes:
        """Return bytes that distinguish a forked unseeded stream from its parent."""
        if _process != os.getpid():  # forked by something that runs no hooks
            _renew_entropy()
        return b"" if self.seeded else _entropy

    def words(self, count: int) -> np.ndarray:
        """Return `count` uniform 64-bit words, dtype uint64."""
        generator = load_generator(count // _WORDS)
        words = np.empty(-(-count // _AT_ONCE) * _AT_ONCE, dtype=np.uint64)
        self._fill(words, generator.fill_words)
        return words[:count]

    def _word(self) -> int:
        """Return one word."""
        return self._next("word", lambda: self.words(_AT_ONCE))

    def _next(self, kind: str, draw: Callable[[], np.ndarray]) -> Any:
        """Return one waiting number of this process, used only once."""
        entropy = self._own_entropy()
        while True:
            try:
                return self._waiting[entropy, kind].popleft()
            except LookupError:  # none is left, or they are the parent's
                others = {key: held for key, held in self._waiting.items() if key[0] == entropy}
                self._waiting = {**others, (entropy, kind): deque(draw().tolist())}

    def _fill(self, out: np.ndarray, fill: Callable[[np.ndarray, np.ndarray], None]) -> None:
        """Fill an array in parts; `fill` gets the first block and the part."""
        from skdp.mechanisms._chacha import first_block

        digest = hashlib.blake2b(
            self._own_entropy(), digest_size=_KEY_BYTES, key=self._key, person=b"skdp-draw"
        )
        digest.update(next(self._counter).to_bytes(16, "little"))
        key = digest.digest()

        def work(part: int) -> None:
            fill(first_block(key, part), out[part * _PART : (part + 1) * _PART])

        n_parts = -(-out.size // _PART)
        if n_parts >= _SHARED_PARTS:
            share_out(work, n_parts)
        else:
            for part in range(n_parts):
                work(part)

    def uniform(self, count: int) -> np.ndarray:
        """Return `count` uniforms on the open interval (0, 1), with 52 random bits or more."""
        # 52 bits and a half are exact in double precision, so that 1.0 cannot come out.
        return self._fractions(self.words(count) >> np.uint64(12), 52)

    def _fractions(self, leading: np.ndarray, bits: int) -> np.ndarray:
        """Return ``(leading + 1/2) / 2**bits``, with more bits if `leading` is small."""
        values = (leading.astype(np.float64) + 0.5) * 2.0**-bits
        for place in np.flatnonzero(leading < np.uint64(2**11)):
            number, length = int(leading[place]), bits
            while number < 2**52 and length < 960:
                number, length = (number << 64) + int(self.words(1)[0]), length + 64
            values[place] = math.ldexp(number + 0.5, -length)
        return values

    def standard_normal(self, shape: int | tuple[int, ...]) -> np.ndarray:
        """Return standard normals of the given shape, by a ziggurat on words of 64 bits.

        Up to rounding to a double they have the density ``phi(x) e^h(x)``, with the normal density
        phi and ``|h(x)| <= (2 + x^2) 2^-49``. This adds less than 2e-14 to epsilon per number. No
        tail is cut off. The proof is in ``docs/security.md``.
        """
        normals = np.empty(shape)
        if normals.size <= _AT_ONCE:
            # A draw costs as much as some hundreds of numbers, and many fits draw at every step.
            few = [self._next("normal", self._normals) for _ in range(normals.size)]
            return np.array(few, dtype=np.float64).reshape(shape)
        self._normals(normals.ravel())
        return normals

    def _normals(self, out: np.ndarray | None = None) -> np.ndarray:
        out = np.empty(4 * _AT_ONCE) if out is None else out
        self._fill(out, load_generator(out.size).fill_normals)
        return out

    def exponential(self, count: int) -> np.ndarray:
        """Return `count` standard exponentials by inversion of the distribution function.

        One bit selects the side of the median and at least 63 bits the place, so values reach from
        below 1e-280 to above 660.
        """
        words = self.words(count)
        tail = self._fractions(words >> np.uint64(1), 64)
        upper = (words & np.uint64(1)).astype(bool)
        return np.where(upper, -np.log(tail), -np.log1p(-tail))

    def laplace(self, shape: int | tuple[int, ...]) -> np.ndarray:
        """Return Laplace variables of scale 1 of the given shape; see :meth:`exponential`."""
        count = int(np.prod(shape))
        signs = (self.words(count) & np.uint64(1)).astype(np.float64)
        return ((2.0 * signs - 1.0) * self.exponential(count)).reshape(shape)

    def gumbel(self, count: int) -> np.ndarray:
        """Return `count` standard Gumbel variables, with distribution ``exp(-exp(-x))``."""
        return -np.log(self.exponential(count))

    def integer(self, bound: int) -> int:
        """Return one of 0, 1, ..., `bound` - 1, all equally likely; `bound` is at most 2**63."""
        # Words beyond the last whole multiple of the bound are drawn again.
        limit = (2**64 // bound) * bound
        while (word := self._word()) >= limit:
            pass
        return word % bound

    def bernoulli_exp(self, exponent: float) -> bool:
        """Return True with probability ``e^-exponent``, for any exponent of at least 0.

        Multiplies factors ``e^-1`` as Canonne, Kamath and Steinke (2020), Algorithm 1. Each factor
        is at least 1/4, so exactly its share of words is below the rounded factor.
        """
        if not exponent < 2.0**53:
            return False
        whole = int(exponent)
        for part in itertools.chain(itertools.repeat(1.0, whole), [exponent - whole]):
            if self._word() >= math.exp(-part) * 2.0**64:
                return False
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            "A RandomStream cannot be pickled: two processes would draw the same noise. "
            "Spawn one child stream for each process instead."
        )


def is_seeded(random_state: Any) -> bool:
    """Return whether a `random_state` has a seed."""
    if isinstance(random_state, RandomStream):
        return random_state.seeded
    if random_state is None:
        return False
    is_integer = isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool)
    if is_integer or isinstance(random_state, np.random.RandomState):
        return True
    raise ValueError(
        "random_state must be None (noise from the operating system), an integer seed, a "
        f"numpy.random.RandomState or a RandomStream, got {type(random_state).__name__}."
    )


def resolve_random_state(random_state: Any, context: bytes = b"") -> RandomStream:
    """Return the stream for scikit-learn's `random_state`.

    Parameters
    ----------
    random_state : None, int, numpy.random.RandomState or RandomStream
        ``None`` uses a fresh key from the operating system. An integer, or the next 32 bytes of a
        ``RandomState``, is a seed. The next 32 bytes of a stream are the key of a new stream, so
        two uses share nothing, even in forked processes.
    context : bytes
        Part of the key of seeded streams; see :meth:`RandomStream.from_seed`.

    Raises
    ------
    ValueError
        If `random_state` is of another kind.

    Examples
    --------
    >>> from skdp.mechanisms import resolve_random_state
    >>> resolve_random_state(None).seeded, resolve_random_state(42).seeded
    (False, True)
    """
    if not is_seeded(random_state) and not isinstance(random_state, RandomStream):
        return RandomStream.from_entropy()
    if isinstance(random_state, RandomStream):
        key = random_state.words(4).tobytes()
        return type(random_state)(key, seeded=random_state.seeded).bound_to(context)
    if isinstance(random_state, np.random.RandomState):
        return RandomStream.from_seed(random_state.bytes(_KEY_BYTES), context)
    return RandomStream.from_seed(int(random_state), context)
