"""Events that are known by a bound on their privacy profile, and choices between events."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from skdp.accounting.events import Event, check_event


@dataclass(frozen=True)
class ProfileEvent(Event, ABC):
    """A release whose privacy profile has a proved upper bound.

    The profile is the smallest ``delta(epsilon)`` with which the release is (epsilon, delta)-DP. A
    subclass is a frozen dataclass that says what happened and implements `profile_bound`;
    `PLDAccountant` then composes it with everything else.
    """

    @abstractmethod
    def profile_bound(self, epsilon: float, adjacency: str) -> float:
        """Return an upper bound on delta that holds in both orders of two neighbours.

        Parameters
        ----------
        epsilon : float
            Privacy parameter in nats, ``>= 0``, however large.
        adjacency : {"add-remove", "replace-one"}
            The relation between neighbouring data sets, a supported one.

        Returns
        -------
        float
            The bound in [0, 1]; it never rises with epsilon.
        """

    def supports_adjacency(self, adjacency: str) -> bool:
        """Tell whether the bound is proved under a relation.

        Parameters
        ----------
        adjacency : {"add-remove", "replace-one"}
            The relation between neighbouring data sets.

        Returns
        -------
        bool
            True, unless a subclass knows better.
        """
        return True

    def largest_loss(self, adjacency: str) -> float:
        """Return an epsilon with which the release is (epsilon, 0)-DP.

        Parameters
        ----------
        adjacency : {"add-remove", "replace-one"}
            The relation between neighbouring data sets.

        Returns
        -------
        float
            The bound in nats; infinite, unless a subclass knows better.
        """
        return math.inf


@dataclass(frozen=True)
class OneOfEvent(Event):
    """Several releases of which exactly one concerns any one record.

    Such are releases on disjoint parts of the data, or one release drawn by a public coin. The cost
    is at most that of the most revealing one, not of all together.

    Parameters
    ----------
    events : iterable of Event
        The releases, at least one. A part with several of them is a `ComposedEvent`.

    Notes
    -----
    Which records are in which part, or how the coin falls, must be independent of the records and
    of what the parts release: parts by position, or drawn at random beforehand; never
    stratified by a private column. Under add-remove, adding a record must not move the others.

    Beside other releases in a composition, the parts may also be assigned after these were seen:
    the cost is that of a release with the largest of the parts' profiles. Where one assignment,
    made beforehand, decides about several releases, let each part hold all that concerns its
    records: ``OneOfEvent((ComposedEvent((a, c)), ComposedEvent((b, c))))`` costs less than
    ``ComposedEvent((OneOfEvent((a, b)), c))``.
    """

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        if isinstance(self.events, Event) or not isinstance(self.events, Iterable):
            raise TypeError(f"OneOfEvent: events must be a sequence, got {self.events!r}.")
        object.__setattr__(self, "events", tuple(self.events))
        if not self.events:
            raise ValueError("OneOfEvent: events must hold at least one event, got none.")
        for event in self.events:
            check_event("OneOfEvent", "each of events", event)
