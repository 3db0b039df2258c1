"""What estimators and audits ask of a plan, whatever it trains by and whoever wrote it."""

from __future__ import annotations

from typing import Any, Protocol

from skdp.accounting import Event
from skdp.mechanisms.contribution import Adjacency


class Plan(Protocol):
    """Facts of a plan. None has a default: a plan that leaves one out is refused."""

    adjacency: Adjacency
    lots: Any  # how the rows of each step are chosen; None: each release is of all rows
    last_iterate_only: bool  # whether the event relies on earlier iterates staying hidden
    grid: float  # spacing of the values that noise takes; 0 for noise on all numbers

    @property
    def event(self) -> Event:
        """What the fit releases, for the accountants."""


class OnAllRows:
    """Facts of plans each of whose releases is of all rows, and paid for."""

    lots = None
    last_iterate_only = False
