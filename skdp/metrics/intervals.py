"""Figures with intervals: sets of values that noisy counts and sampling do not rule out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import ndtri

from skdp.scores.bins import ScoreBins

Interval = tuple[float, float]
# Why a figure has no value.
_HIDDEN = "withheld: noise hides it"


class Figure(float):
    """A number that has an interval for its value in the population.

    Parameters
    ----------
    value : float
        The figure, NaN where the counts leave nothing to divide by.
    interval : tuple of two floats
        Values that sampling and noise do not rule out.
    name : str
        What it is the figure of.
    reason : str, default=""
        Why it is withheld, or wider than noise and sampling alone would make it.

    Examples
    --------
    >>> from skdp.metrics import Figure
    >>> accuracy = Figure(0.83, interval=(0.81, 0.85), name="accuracy")
    >>> accuracy, accuracy > 0.8
    (0.83 [0.81, 0.85], True)
    """

    name: str
    interval: Interval
    reason: str = ""

    def __new__(cls, value: float, interval: Interval, name: str, reason: str = "") -> Figure:
        """Make a float of it."""
        figure = super().__new__(cls, value)
        figure.name, figure.interval = name, (float(interval[0]), float(interval[1]))
        figure.reason = reason or (_HIDDEN if math.isnan(value) else "")
        return figure

    def __getnewargs__(self) -> tuple[float, Interval, str, str]:  # type: ignore[override]
        return float(self), self.interval, self.name, self.reason

    def __repr__(self) -> str:
        low, high = self.interval
        because = f" ({self.reason})" if self.reason else ""
        return f"{float(self):.4g} [{low:.4g}, {high:.4g}]{because}"

    @property
    def width(self) -> float:
        """How wide the interval is."""
        return self.interval[1] - self.interval[0]


def quantile(confidence: float) -> float:
    """Return how many deviations a two-sided interval reaches."""
    return float(ndtri(0.5 + 0.5 * confidence))


def not_ruled_out(
    statistic: Callable[[float], float],
    variance: Callable[[float], float],
    z: float,
    limits: Interval = (0.0, 1.0),
    least: float = 0.0,
) -> Interval:
    """Return the hull of the root, and of where ``statistic^2 <= z^2 max(variance, least)``.

    The statistic is a falling line, and the variance a parabola: three points determine each. What
    has no end within the limits ends there (Fieller), and so does what has its root beyond.
    """
    low, high = limits
    points = np.array([low, 0.5 * (low + high), high])
    line = np.array([statistic(point) for point in points])
    parabola = np.array([variance(point) for point in points])
    fall = line[0] - line[2]
    if not fall > 0.0:  # noise leaves nothing to divide by
        return limits
    # The root agrees with the statistic whatever the variance: the set is never empty.
    ends = [low + float(np.clip(line[0] / fall, 0.0, 1.0)) * (high - low)]
    for spread in (parabola, np.full(3, least)) if least > 0.0 else (parabola,):
        ends += _where_negative(line**2 - z**2 * spread, low, high)
    return min(ends), max(ends)


def _where_negative(values: np.ndarray, low: float, high: float) -> list[float]:
    """Return the ends of where a parabola, given at both ends and halfway, is at most 0."""
    at_low, middle, at_high = values.tolist()
    second = 2.0 * (at_low - 2.0 * middle + at_high)
    first = at_high - at_low - second
    root = first**2 - 4.0 * second * at_low
    found = [0.0] * (at_low <= 0.0) + [1.0] * (at_high <= 0.0)
    if root >= 0.0:
        # The form without cancellation.
        half = -0.5 * (first + math.copysign(math.sqrt(root), first))
        pairs = ((half, second), (at_low, half))
        found += [up / down for up, down in pairs if 0.0 <= up * down <= down * down > 0.0]
    return [low + place * (high - low) for place in found]


def ratio(
    name: str,
    counts: np.ndarray,
    covariance: np.ndarray,
    inside: np.ndarray,
    within: np.ndarray,
    z: float,
) -> Figure:
    """Return the share of some counts in others, with the interval of Wilson and Fieller.

    Both are given by weights on the flat counts, of which those of `inside` are 0 or 1.
    """
    x, y = float(inside @ counts), float(within @ counts)
    noise = np.stack([inside, within]) @ covariance @ np.stack([inside, within]).T

    def variance(a: float) -> float:
        sampling = max(y, 0.0) * a * (1.0 - a)
        return sampling + noise[0, 0] - 2.0 * a * noise[0, 1] + a**2 * noise[1, 1]

    value = float(np.clip(x / y, 0.0, 1.0)) if y > 0.0 else math.nan
    return Figure(value, not_ruled_out(lambda a: x - a * y, variance, z), name)


def average(name: str, parts: Sequence[Figure]) -> Figure:
    """Return the mean of independent figures: squares of their reaches add up."""
    value = float(np.mean(parts))
    if math.isnan(value):
        return Figure(value, (0.0, 1.0), name)
    ends = np.array([part.interval for part in parts])
    reach = np.abs(np.array(parts)[:, None] - ends)
    # An end at a limit was cut off there, and tells less than it seems.
    cut = ((ends == 0.0) | (ends == 1.0)).any(axis=0)
    reach = np.where(cut, reach.sum(axis=0), np.linalg.norm(reach, axis=0)) / len(parts)
    return Figure(value, (max(0.0, value - reach[0]), min(1.0, value + reach[1])), name)


def widened(
    name: str,
    bins: ScoreBins,
    figure: Callable[[np.ndarray], tuple[float, Interval]],
    limits: Interval = (0.0, 1.0),
) -> Figure:
    """Return a figure whose interval covers half of what slopes within bins change of it."""
    (value, (low, high)), (flat, _) = map(figure, bins.spreads)
    slack = 0.5 * abs(value - flat) if math.isfinite(value + flat) else 0.0
    return Figure(value, (max(limits[0], low - slack), min(limits[1], high + slack)), name)
