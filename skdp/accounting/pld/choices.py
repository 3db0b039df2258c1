"""Plans in which any one record is concerned by one of several releases only.

A choice that is all of a plan costs what its dearest part does: for given neighbours it is fixed.
Beside other releases it may depend on their results, and whoever chooses after a large loss gains
by it: the choice is then bounded by the largest profile of its parts. Parts that reveal less than
another one are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from skdp.accounting.analysis import gaussian_mu
from skdp.accounting.events import Event, PureDPEvent, leaf_counts
from skdp.accounting.pld.pairs.profile import ProfilePair
from skdp.accounting.profile_events import OneOfEvent, ProfileEvent

_LARGEST_COUNT = 64  # equal pure guarantees that are told apart

Counts = dict[Event, int]


@dataclass(frozen=True)
class LargestOfEvent(ProfileEvent):
    """A choice between releases, known only by the largest of their profiles.

    Parameters
    ----------
    choice : OneOfEvent
        The choice.
    """

    choice: OneOfEvent

    def profile_bound(self, epsilon: float, adjacency: str) -> float:
        """Return the largest of the parts' profiles; see `ProfileEvent`."""
        from skdp.accounting.pld.curves import profile_curve

        at = np.array([epsilon])
        return max(float(profile_curve(part, adjacency)(at)[0]) for part in self.choice.events)

    def supports_adjacency(self, adjacency: str) -> bool:
        """Tell whether all parts have a known profile."""
        from skdp.accounting.accountants.pld import PLDAccountant

        return all(PLDAccountant(adjacency).supports(event) for event in self.choice.events)

    def largest_loss(self, adjacency: str) -> float:
        """Return the largest loss of any part."""
        from skdp.accounting.accountants.pld import PLDAccountant

        return max(
            float(PLDAccountant(adjacency).compose(part).epsilon(0.0))
            for part in self.choice.events
        )


@lru_cache(maxsize=64)
def profile_pair(leaf: ProfileEvent, adjacency: str) -> ProfilePair | None:
    """Return the pair that dominates a release with a known bound on its profile.

    Parameters
    ----------
    leaf : ProfileEvent
        The release.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.

    Returns
    -------
    ProfilePair or None
        None if it reveals nothing.
    """
    largest = leaf.largest_loss(adjacency)
    if largest <= 0.0 or leaf.profile_bound(0.0, adjacency) <= 0.0:
        return None
    return ProfilePair(lambda epsilon: leaf.profile_bound(epsilon, adjacency), largest)


def choices_of(counts: Mapping[Event, int], adjacency: str) -> list[Counts]:
    """Return what may have happened to one record, the worst of which counts.

    Parameters
    ----------
    counts : mapping of Event to int
        Leaves and how often each happened.
    adjacency : {"add-remove", "replace-one"}
        The relation between neighbouring data sets.

    Returns
    -------
    list of dict
        Leaves that are no choices, with their counts: one dict, or one for each part of a choice
        that is all there is.
    """
    alone = sum(counts.values()) == 1
    total: Counts = {}
    for leaf, count in counts.items():
        parts: list[Counts] = [{leaf: 1}]
        if isinstance(leaf, OneOfEvent):
            parts = _undominated(
                [p for event in leaf.events for p in choices_of(leaf_counts(event), adjacency)],
                adjacency,
            )
            if alone:
                return parts
            if len(parts) > 1:
                parts = [{LargestOfEvent(leaf): 1}]
        total = _added(total, {part: count * times for part, times in parts[0].items()})
    return [total]


def _added(one: Counts, other: Counts) -> Counts:
    total = dict(one)
    for leaf, count in other.items():
        total[leaf] = total.get(leaf, 0) + count
    return total


def _undominated(parts: list[Counts], adjacency: str) -> list[Counts]:
    """Leave out parts that reveal no more than another one."""
    kept: list[Counts] = []
    for part in parts:
        if any(_reveals_less(part, other, adjacency) for other in kept):
            continue
        kept = [other for other in kept if not _reveals_less(other, part, adjacency)]
        kept.append(part)
    return kept


def _reveals_less(one: Counts, other: Counts, adjacency: str) -> bool:
    """Tell whether one part is clearly dominated by another one, or equal to it."""
    square, pure, rest = _described(one, adjacency)
    other_square, other_pure, other_rest = _described(other, adjacency)
    # Pure guarantees in falling order: each is met by one at least as large.
    return (
        square <= other_square
        and len(pure) <= len(other_pure)
        and all(a <= b for a, b in zip(pure, other_pure, strict=False))
        and all(other_rest.get(leaf, 0) >= count for leaf, count in rest.items())
    )


def _described(part: Counts, adjacency: str) -> tuple[float, list[float], Counts]:
    """Return the Gaussian releases' squared parameter, pure guarantees, and everything else."""
    square, pure, rest = 0.0, [], {}
    for leaf, count in part.items():
        mu = gaussian_mu(leaf, adjacency)
        if mu is not None:
            square += count * mu * mu
        elif isinstance(leaf, PureDPEvent) and count <= _LARGEST_COUNT:
            pure += [leaf.epsilon] * count
        else:
            rest[leaf] = count
    return square, sorted(pure, reverse=True), rest
