"""The likelihood ratio of everything that a fit releases, step by step.

A run's releases are recorded; then fits to both tables are replayed with these outputs, so that
they see the same iterates, and show what each table would have put into each release. Of a Poisson
lot the attacker knows all rows but the one that differs (``docs/proofs/audits.md``, Theorem 3).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from skdp.audit.runs import AuditedTable
from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.trace import Release, ReleaseTrace, record_releases

Draw = tuple[np.ndarray, np.ndarray]


class KeptLots:
    """Lots of a plan that are kept as they are drawn, or those that an earlier run has kept."""

    # Of the latter, one row may be taken out of all lots or put into all.

    def __init__(self, lots: Any, kept: list[Draw] | None = None, row: int = 0, side: Any = None):
        self._lots, self._left, self._row, self._side = lots, kept and iter(kept), row, side
        self.drawn: list[Draw] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lots, name)

    def sampler(self, stream: RandomStream) -> Any:
        """Return a sampler of these lots; None if all hold all rows."""
        self._sampler = self._lots.sampler(stream)
        return None if self._sampler is None else self

    def draw(self, steps: int) -> Draw:
        """Return the next lots."""
        indices, offsets = self._sampler.draw(steps) if not self._left else next(self._left)
        if self._side is not None:
            change = np.union1d if self._side == "inside" else np.setdiff1d
            lots = [change(lot, [self._row]) for lot in np.split(indices, offsets[1:-1])]
            offsets = np.cumsum([0, *(lot.size for lot in lots)]).astype(np.int64)
            indices = np.concatenate(lots).astype(np.int64)
        self.drawn.append((indices, offsets))
        return indices, offsets


class Transcripts:
    """Scores runs on two tables that differ in the row `changed` by all of their releases."""

    def __init__(self, tables: list[AuditedTable], changed: int, stream: RandomStream) -> None:
        self._tables, self._changed = tables, changed
        plan = tables[0].plan
        if getattr(plan, "last_iterate_only", False):
            raise ValueError(
                "This fit pays for its last iterate alone and shows no other: audit what it "
                "releases, with release='model'."
            )
        lots = getattr(plan, "lots", None)
        if lots is not None and lots.sampling not in ("full", "poisson"):
            raise ValueError(
                f"release='all' is for full and Poisson lots, not for sampling={lots.sampling!r}: "
                "take release='model'."
            )
        self._rate = 1.0 if lots is None else float(lots.sample_rate)
        self._refuse_hidden_randomness(stream)

    def score(self, side: int, stream: RandomStream) -> float:
        """Return the log-likelihood ratio of the transcript of a run on one of the tables."""
        trace, kept = self._run(side, stream)
        seen = trace.releases

        def values(side: int, row: str | None = None) -> list[Release]:
            return self._run(side, stream, trace, kept, row)[0].releases

        if self._rate == 1.0:
            one, other = (seen if k == side else values(k) for k in (0, 1))
            return sum(map(log_ratio, seen, one, other))
        without = values(1, "outside")
        ratios = [list(map(log_ratio, seen, values(k, "inside"), without)) for k in (0, 1)]
        mixed = np.logaddexp(math.log1p(-self._rate), math.log(self._rate) + np.array(ratios))
        return float(np.sum(mixed[0] - mixed[1]))

    def _run(
        self,
        side: int,
        stream: RandomStream,
        replayed: ReleaseTrace | None = None,
        kept: list[Draw] | None = None,
        row: str | None = None,
    ) -> tuple[ReleaseTrace, list[Draw]]:
        """Record a run on one of the tables and its lots, or replay one that was recorded."""
        plan = self._tables[side].plan
        lots = KeptLots(getattr(plan, "lots", None), kept, self._changed, row)
        with record_releases(replayed) as trace:
            self._tables[side].fit(
                stream, replace(plan, lots=lots) if hasattr(plan, "lots") else plan
            )
        if replayed is not None and len(trace.releases) != len(replayed.releases):
            raise ValueError("The number of releases depends on the rows: that alone tells them.")
        return trace, lots.drawn

    def _refuse_hidden_randomness(self, stream: RandomStream) -> None:
        """Refuse releases that rest on randomness which nobody is shown.

        An attacker who knew it would be stronger than the claim allows.
        """
        trace, kept = self._run(0, stream.spawn("recorded"))
        if not trace.releases:
            raise ValueError("This fit shows no releases to a trace: take release='model'.")
        again = self._run(0, stream.spawn("replayed"), trace, kept)[0]
        for seen, other in zip(trace.releases, again.releases, strict=True):
            if seen.norm != 2.0:
                raise ValueError("release='all' is for Gaussian noise.")
            if not np.allclose(seen.value, other.value, rtol=1e-9, atol=1e-9 * seen.sigma):
                raise ValueError(
                    "Before its noise, a release of this fit depends on randomness that is not "
                    "released, so that its likelihood is not known: take release='model'."
                )


def log_ratio(seen: Release, one: Release, other: Release) -> float:
    """Return the log-likelihood ratio of an output for two values before Gaussian noise."""
    to_one, to_other = seen.output - one.value, seen.output - other.value
    # The difference of squares without cancellation.
    return float(np.sum((to_other - to_one) * (to_other + to_one))) / (2.0 * seen.sigma**2)
