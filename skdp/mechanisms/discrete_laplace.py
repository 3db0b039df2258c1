"""Discrete Laplace (two-sided geometric) noise on the integers, drawn with exact probabilities."""

from __future__ import annotations

from fractions import Fraction

from skdp.mechanisms.random_stream import RandomStream

_WORDS_AT_ONCE = 512


def discrete_laplaces(stream: RandomStream, scale: int | Fraction, count: int) -> list[int]:
    """Return integers x, each with probability exactly proportional to ``e^(-|x| / scale)``.

    Canonne, Kamath and Steinke (2020), Algorithms 1 and 2, in integers alone.
    """
    integers, exact = UniformIntegers(stream), Fraction(scale)
    return [discrete_laplace(integers, exact.numerator, exact.denominator) for _ in range(count)]


class UniformIntegers:
    """Uniform integers by rejection, from a stream's bytes that are drawn many at a time."""

    def __init__(self, stream: RandomStream) -> None:
        self._stream = stream
        self._bytes, self._place = b"", 0

    def below(self, bound: int) -> int:
        """Return one of 0, 1, ..., `bound` - 1, all equally likely."""
        bits = (bound - 1).bit_length()
        size = (bits + 7) // 8
        while True:
            end = self._place + size
            if end > len(self._bytes):
                self._bytes, end = self._stream.words(_WORDS_AT_ONCE).tobytes(), size
            number = int.from_bytes(self._bytes[end - size : end], "little") >> (8 * size - bits)
            self._place = end
            if number < bound:
                return number


def bernoulli_exp(integers: UniformIntegers, above: int, below: int) -> bool:
    """Return True with probability ``e^(-above / below)``, exactly (Algorithm 1)."""
    while above > below:
        if not bernoulli_exp(integers, 1, 1):
            return False
        above -= below
    # Coins of probability above / (k below) fall until one shows tails: an alternating series.
    k = 1
    while integers.below(k * below) < above:
        k += 1
    return k % 2 == 1


def discrete_laplace(integers: UniformIntegers, above: int, below: int) -> int:
    """Return x with probability proportional to ``e^(-|x| below / above)`` (Algorithm 2)."""
    while True:
        rest = integers.below(above)
        if not bernoulli_exp(integers, rest, above):
            continue
        turns = 0
        while bernoulli_exp(integers, 1, 1):
            turns += 1
        # A geometric number of steps of 1 / above, of which whole ones of below / above count.
        size = (rest + above * turns) // below
        if integers.below(2) == 0:
            return size
        if size > 0:  # else zero would come up twice as often
            return -size
