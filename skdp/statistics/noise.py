"""Releases of integers on the same rows: noise of one scale for all of them, and its price."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from skdp.accounting import Event, calibrate_event
from skdp.choices import Adjacency
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
