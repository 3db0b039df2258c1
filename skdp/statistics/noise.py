"""Noise on vectors of integers, and records split among cells.

A record at position u in [0, 1] is split among cells of a Bernstein basis: ``1 - u`` and ``u``, or
``(1 - u)^2``, ``2 u (1 - u)`` and ``u^2``. Shares are at least 0 and sum to one unit, so they have
the sensitivity of a histogram. Mean and variance follow from them.
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

# Integer weight of one record that is split among cells, or counted in fractions.
UNIT = 2**30


# Releases, and the noise of each as a multiple of one scale.
Planned = Sequence[tuple[Release, float]]


class Plan(NamedTuple):
    """Releases with their noise, and the event of all together."""

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
    """Return releases with noise of one scale, in records, at the target cost.

    With two mechanisms, the one with the narrower noise on the first release is selected.
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
    """Return the least scale, in records, and the plan with multiples of it as noise."""
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
    """Return the shares of records as integers, degree + 1 per row; zeros for NaN."""
    absent = np.isnan(places)
    place = np.where(absent, 0.0, places)
    last = np.floor(place**degree * UNIT).astype(np.int64)
    first = np.floor((1.0 - place) ** degree * UNIT).astype(np.int64)
    # For any rounding of floats, the parts are at least 0 and sum to one unit.
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
    """Yield the corners of a box of nonnegative cells, never all zero."""
    ends = zip(np.maximum(low, 0.0), np.maximum(high, 1.0), strict=True)
    return map(np.array, itertools.product(*ends))


def mean_of(cells: np.ndarray) -> float:
    """Return the mean position that cells represent."""
    weights = np.arange(len(cells)) / (len(cells) - 1)
    return float(cells @ weights / cells.sum())


def variance_of(cells: np.ndarray) -> float:
    """Return the variance that three cells represent."""
    first, middle, last = cells / cells.sum()
    return float(first * last - 0.25 * middle**2)


def square_about(cells: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Return mean squared distances to some positions; their minimum is the variance."""
    first, middle, last = cells / cells.sum()
    rest = 1.0 - centre
    return first * centre**2 - middle * centre * rest + last * rest**2


def mean_bounds(corners: list[np.ndarray]) -> tuple[float, float]:
    """Return bounds on the mean position over a box; it is a quotient of linear functions."""
    found = np.clip([mean_of(corner) for corner in corners], 0.0, 1.0)
    return float(found.min()), float(found.max())


def variance_bounds(corners: list[np.ndarray]) -> tuple[float, float]:
    """Return bounds on the variance over a box, from its corners and from mean squares."""
    squares = np.array([square_about(corner, _TRIED) for corner in corners])
    lowest = min(variance_of(corner) for corner in corners)
    low, high = np.clip([lowest, squares.max(axis=0).min()], 0.0, 0.25)
    return float(low), float(high)


def corners_of(noisy: np.ndarray, width: float, size: int | None) -> list[np.ndarray]:
    """Return corners of a box that contains the exact cells, if no noise exceeds the width.

    With a `size`, the sum of all cells, the first cell follows from the others.
    """
    records = (size or np.maximum(noisy, 0.0).sum() + noisy.size * width) / UNIT
    # Rounding down removes less than two steps of a record's share, and floats less than one.
    slack = width + 3.0 * max(records, 1.0)
    corners = vertices(noisy - slack, noisy + slack)
    if size is None:
        return [corner for corner in corners if corner.sum() > 0.0]
    return [with_first(corner, size) for corner in corners]


def with_first(cells: np.ndarray, size: int) -> np.ndarray:
    """Return cells with the first one, which follows from their sum."""
    return np.concatenate([[size - cells.sum()], cells])
