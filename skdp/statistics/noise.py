"""Noise on vectors of integers, and records shared out among cells.

A record at place u in [0, 1] has one unit, which cells of a Bernstein basis share: ``1 - u`` and
``u``, or ``(1 - u)^2``, ``2 u (1 - u)`` and ``u^2``. Shares are at least 0 and sum to one unit, as
in a histogram, whose sensitivity they therefore have; and mean and variance follow from them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from skdp.accounting import Event, calibrate_event
from skdp.base.parameters import Adjacency
from skdp.mechanisms.release import Release, compose

# What one record weighs where it is shared out among cells, or counted in fractions.
UNIT = 2**30


# Releases, and the noise of each as a multiple of one scale.
Planned = Sequence[tuple[Release, float]]


class Plan(NamedTuple):
    """Some releases with their noise, and what all together cost."""

    releases: tuple[Release, ...]
    event: Event


def plan_noise(
    releases: Sequence[Release],
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    mechanism: str,
    failure: float,
) -> Plan:
    """Return noise of one scale, in records, with which all releases together cost the target.

    Of two mechanisms it is the one whose noise on the first release is narrower.
    """
    planned = [(release, 1) for release in releases]  # an integer keeps fractions exact
    if delta == 0.0:
        weight = sum(Fraction(release.l1) / release.unit for release in releases)
        return _plan("laplace", planned, weight / Fraction(epsilon))
    kinds = ("laplace", "gaussian") if mechanism == "auto" else (mechanism,)
    found = [share_noise(planned, epsilon, delta, adjacency, kind)[1] for kind in kinds]
    return min(found, key=lambda plan: plan.releases[0].half_width(failure))


def share_noise(
    planned: Planned, epsilon: float, delta: float, adjacency: Adjacency, kind: str = "gaussian"
) -> tuple[float, Plan]:
    """Return the least scale, in records, of which each release has its multiple as noise."""
    scale = calibrate_event(
        lambda scale: _plan(kind, planned, scale).event, epsilon, delta, adjacency=adjacency
    )
    return scale, _plan(kind, planned, scale)


def _plan(kind: str, planned: Planned, scale: float | Fraction) -> Plan:
    add = {"laplace": Release.laplace, "gaussian": Release.gaussian}[kind]
    noisy = tuple(add(release, scale * factor) for release, factor in planned)
    return Plan(noisy, compose(noisy))


_TRIED = np.linspace(0.0, 1.0, 257)


def shares(places: np.ndarray, degree: int) -> np.ndarray:
    """Return the shares of records as integers, one row each of degree + 1; zeros for NaN."""
    absent = np.isnan(places)
    place = np.where(absent, 0.0, places)
    last = np.floor(place**degree * UNIT).astype(np.int64)
    first = np.floor((1.0 - place) ** degree * UNIT).astype(np.int64)
    # Whatever floats do, the parts are at least 0 and have the sum of one unit.
    last = np.clip(last, 0, UNIT)
    if degree == 1:
        parts = [UNIT - last, last]
    else:
        first = np.clip(first, 0, UNIT - last)
        parts = [first, UNIT - first - last, last]
    table = np.column_stack(parts)
    table[absent] = 0
    return table


def vertices(low: np.ndarray, high: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the corners of a box of cells that are at least 0, never of nothing but zeros."""
    ends = zip(np.maximum(low, 0.0), np.maximum(high, 1.0), strict=True)
    return map(np.array, itertools.product(*ends))


def mean_of(cells: np.ndarray) -> float:
    """Return the mean place that cells stand for."""
    weights = np.arange(len(cells)) / (len(cells) - 1)
    return float(cells @ weights / cells.sum())


def variance_of(cells: np.ndarray) -> float:
    """Return the variance that three cells stand for."""
    first, middle, last = cells / cells.sum()
    return float(first * last - 0.25 * middle**2)


def square_about(cells: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Return the mean squares of distances to some places, of which the variance is the least."""
    first, middle, last = cells / cells.sum()
    rest = 1.0 - centre
    return first * centre**2 - middle * centre * rest + last * rest**2


def mean_bounds(corners: list[np.ndarray]) -> tuple[float, float]:
    """Return bounds on the mean place over a box: it is a quotient of linear functions."""
    found = np.clip([mean_of(corner) for corner in corners], 0.0, 1.0)
    return float(found.min()), float(found.max())


def variance_bounds(corners: list[np.ndarray]) -> tuple[float, float]:
    """Return bounds on the variance over a box: least at a corner, most below any square's."""
    squares = np.array([square_about(corner, _TRIED) for corner in corners])
    lowest = min(variance_of(corner) for corner in corners)
    low, high = np.clip([lowest, squares.max(axis=0).min()], 0.0, 0.25)
    return float(low), float(high)


def corners_of(noisy: np.ndarray, width: float, size: int | None) -> list[np.ndarray]:
    """Return corners of a box that holds the real cells, if no noise exceeds the width.

    With a `size`, the sum of all cells, the first cell follows from the others.
    """
    records = (size or np.maximum(noisy, 0.0).sum() + noisy.size * width) / UNIT
    # Rounding down takes less than two steps of a record's share away, and floats less than one.
    slack = width + 3.0 * max(records, 1.0)
    corners = vertices(noisy - slack, noisy + slack)
    if size is None:
        return [corner for corner in corners if corner.sum() > 0.0]
    return [with_first(corner, size) for corner in corners]


def with_first(cells: np.ndarray, size: int) -> np.ndarray:
    """Return cells with the first one, by their sum."""
    return np.concatenate([[size - cells.sum()], cells])
