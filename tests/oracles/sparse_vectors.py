"""The sparse vector technique and its published variants: exact laws, and many runs at once.

Names and numbers are those of Lyu, Su and Li (2017), Section 3. All queries have sensitivity 1 and
threshold 0.
"""

from dataclasses import dataclass

import numpy as np

NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)


@dataclass(frozen=True)
class Variant:
    """Scale of the threshold's noise and of the queries', and after how many positives it ends."""

    threshold: float
    query: float
    most: float = np.inf


def right(epsilon, most, monotone=False):
    factor = most if monotone else 2 * most
    ratio = factor ** (2.0 / 3.0)
    first = epsilon / (1.0 + ratio)
    return Variant(1.0 / first, factor / (ratio * first), most)


def lee_clifton(epsilon, most):
    """Algorithm 4: the queries' noise knows nothing of how many answers there are."""
    return Variant(4.0 / epsilon, 4.0 / (3.0 * epsilon), most)


def stoddard(epsilon):
    """Algorithm 5: the threshold alone is noised, and there is no end."""
    return Variant(2.0 / epsilon, 0.0)


def chen(epsilon):
    """Algorithm 6: there is no end."""
    return Variant(2.0 / epsilon, 2.0 / epsilon)


def forgets_two(epsilon, most):
    """The noise for monotone queries, on queries that are not."""
    return right(epsilon, most, monotone=True)


def laplace_cdf(x):
    half = 0.5 * np.exp(-np.abs(x))
    return np.where(x < 0.0, half, 1.0 - half)


def chance(variant, values, answers):
    """Return the exact chance of answers to a stream of queries."""
    below = np.array([v for v, answer in zip(values, answers, strict=True) if not answer])
    above = np.array([v for v, answer in zip(values, answers, strict=True) if answer])
    ends = np.unique(np.concatenate([[0.0], values]))
    reach = 45.0 * variant.threshold
    ends = np.concatenate([[ends[0] - reach], ends, [ends[-1] + reach]])
    half = 0.5 * np.diff(ends)[:, None]
    at = (ends[:-1, None] + half + half * NODES).ravel()
    density = np.exp(-np.abs(at) / variant.threshold) / (2.0 * variant.threshold)
    if variant.query == 0.0:
        inside = np.all(below < at[:, None], axis=1) & np.all(above >= at[:, None], axis=1)
    else:
        inside = laplace_cdf((at[:, None] - below) / variant.query).prod(1)
        inside *= laplace_cdf((above - at[:, None]) / variant.query).prod(1)
    return float(np.sum(density * inside * (half * WEIGHTS).ravel()))
