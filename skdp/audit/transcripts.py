"""The likelihood ratio of everything that a fit releases, step by step.

A run's releases are recorded; then fits to both tables are replayed with these outputs, so that
they see the same iterates, and show what each table would have put into each release. Of a Poisson
lot the attacker knows all rows but the one that differs (``docs/proofs/audits.md``, Theorem 3).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from skdp.audit.runs import AuditedTable, SilentStream
from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.trace import ReleaseTrace, TracedRelease, record_releases

Draw = tuple[np.ndarray, np.ndarray]


class KeptLots:
    """Lots of a plan, kept as they are drawn: or those that an earlier run has kept."""

    # Each in three versions: as it was drawn, with the row that differs, and without it. What takes
    # its place in a lot of fixed size is drawn as in the proof, uniformly among all others.

    def __init__(self, lots: Any, row: int) -> None:
        self._lots, self._row = lots, row
        self._versions: dict[str, list[Draw]] = {"drawn": [], "inside": [], "outside": []}
        self._left: Iterator[Draw] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lots, name)

    def replay(self, version: str) -> KeptLots:
        """Return one version of these lots, to be drawn again."""
        again = KeptLots(self._lots, self._row)
        again._left = iter(self._versions[version])
        return again

    def sampler(self, stream: RandomStream) -> Any:
        """Return a sampler of these lots; None if all hold all rows."""
        self._sampler, self._spare = self._lots.sampler(stream), stream.spawn("spare")
        return None if self._sampler is None else self

    def draw(self, steps: int) -> Draw:
        """Return the next lots."""
        if self._left is not None:
            return next(self._left)
        drawn = indices, offsets = self._sampler.draw(steps)
        pairs = [self._both(lot) for lot in np.split(indices, offsets[1:-1])]
        self._versions["drawn"].append(drawn)
        for name, lots in zip(("inside", "outside"), zip(*pairs, strict=True), strict=True):
            ends = np.cumsum([0, *(lot.size for lot in lots)])
            self._versions[name].append((np.concatenate(lots), ends))
        return drawn

    def _both(self, lot: np.ndarray) -> Draw:
        """Return a lot with the row that differs, and without it."""
        others = lot[lot != self._row]
        if self._lots.sampling != "uniform":
            return np.append(others, self._row), others
        if others.size == lot.size:
            spare = self._spare.integer(lot.size)
            return np.append(np.delete(lot, spare), self._row), lot
        absent = np.setdiff1d(np.arange(self._lots.n_rows), lot)
        return lot, np.append(others, absent[self._spare.integer(absent.size)])


class Transcripts:
    """Scores runs on two tables that differ in the row `changed` by all of their releases."""

    def __init__(self, tables: list[AuditedTable], changed: int, stream: RandomStream) -> None:
        self._tables, self._changed = tables, changed
        plan = tables[0].plan
        if plan.last_iterate_only:
            raise ValueError(
                "This fit pays for its last iterate alone and shows no other: audit what it "
                "releases, with release='model'."
            )
        self._rate = 1.0 if plan.lots is None else float(plan.lots.sample_rate)
        self._refuse_hidden_randomness(stream)

    def score(self, side: int, stream: RandomStream) -> float:
        """Return the log-likelihood ratio of the transcript of a run on one of the tables."""
        plan = self._tables[0].plan
        lots = None if plan.lots is None else KeptLots(plan.lots, self._changed)
        trace = self._run(side, stream, lots)
        seen = trace.releases

        def values(side: int, version: str) -> list[TracedRelease]:
            silent = SilentStream(bytes(32), seeded=False)
            return self._run(side, silent, lots and lots.replay(version), trace).releases

        if self._rate == 1.0:
            one, other = (seen if k == side else values(k, "drawn") for k in (0, 1))
            return sum(map(log_ratio, seen, one, other))
        without = values(1, "outside")
        ratios = [list(map(log_ratio, seen, values(k, "inside"), without)) for k in (0, 1)]
        mixed = np.logaddexp(math.log1p(-self._rate), math.log(self._rate) + np.array(ratios))
        return float(np.sum(mixed[0] - mixed[1]))

    def _run(
        self,
        side: int,
        stream: RandomStream,
        lots: KeptLots | None,
        replayed: ReleaseTrace | None = None,
    ) -> ReleaseTrace:
        """Record a run on one of the tables and its lots, or replay one that was recorded."""
        plan = self._tables[side].plan
        with record_releases(replayed) as trace:
            self._tables[side].fit(stream, replace(plan, lots=lots) if lots else plan)
        if replayed is not None and len(trace.releases) != len(replayed.releases):
            raise ValueError("The number of releases depends on the rows: that alone tells them.")
        return trace

    def _refuse_hidden_randomness(self, stream: RandomStream) -> None:
        """Refuse releases that rest on randomness which nobody is shown.

        An attacker who knew it would be stronger than the claim allows.
        """
        plan = self._tables[0].plan
        lots = None if plan.lots is None else KeptLots(plan.lots, self._changed)
        trace = self._run(0, stream.spawn("recorded"), lots)
        if not trace.releases:
            raise ValueError("This fit shows no releases to a trace: take release='model'.")
        again = self._run(0, stream.spawn("replayed"), lots and lots.replay("drawn"), trace)
        for seen, other in zip(trace.releases, again.releases, strict=True):
            if seen.norm != 2.0 or seen.exponential:
                raise ValueError("release='all' is for Gaussian noise.")
            if not np.allclose(seen.value, other.value, rtol=1e-9, atol=1e-9 * seen.sigma):
                raise ValueError(
                    "Before its noise, a release of this fit depends on randomness that is not "
                    "released, so that its likelihood is not known: take release='model'."
                )


def log_ratio(seen: TracedRelease, one: TracedRelease, other: TracedRelease) -> float:
    """Return the log-likelihood ratio of an output for two values before Gaussian noise."""
    to_one, to_other = seen.output - one.value, seen.output - other.value
    # The difference of squares without cancellation.
    return float(np.sum((to_other - to_one) * (to_other + to_one))) / (2.0 * seen.sigma**2)
