"""Discrete Laplace (two-sided geometric) noise on the integers, drawn with exact probabilities."""

from __future__ import annotations

from skdp.mechanisms.discrete_gaussian import _discrete_laplace, _UniformIntegers
from skdp.mechanisms.random_stream import RandomStream


def discrete_laplaces(stream: RandomStream, scale: int, count: int) -> list[int]:
    """Return integers x, each with probability exactly proportional to ``e^(-|x| / scale)``."""
    integers = _UniformIntegers(stream)
    return [_discrete_laplace(integers, scale) for _ in range(count)]
