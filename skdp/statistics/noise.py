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
    kinds = ("laplace", "gaussian") if mechanism == "auto" else (mechanism,)
    if delta == 0.0:
        weight = sum(Fraction(release.l1) / release.unit for release in releases)
        return _plan("laplace", releases, weight / Fraction(epsilon))

    def calibrated(kind: str) -> Plan:
        people = calibrate_event(
            lambda scale: _plan(kind, releases, scale).event, epsilon, delta, adjacency=adjacency
        )
        return _plan(kind, releases, people)

    return min(map(calibrated, kinds), key=lambda plan: plan.releases[0].half_width(failure))


def _plan(kind: str, releases: Sequence[Release], people: float | Fraction) -> Plan:
    add = {"laplace": Release.laplace, "gaussian": Release.gaussian}[kind]
    noisy = tuple(add(release, people) for release in releases)
    return Plan(noisy, compose(noisy))
