"""Repeated runs of a fit for audits, and the likelihood of their releases.

Checks and plans are made once per table. Each run then carries the plan out and publishes, with a
separate random stream.

A run's releases are recorded. Replays of both tables with these outputs have the same iterates and
give the exact value of each release for each table. The attacker knows all rows of a Poisson batch
except the differing one (``docs/proofs/audits.md``, Theorem 3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from numbers import Number
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from skdp.accounting import ComposedEvent, PLDAccountant
from skdp.accounting.privacy_spent import PrivacySpent
from skdp.audit.neighbours import NO_NULL_ROW, Table
from skdp.base.pipelines import walk
from skdp.base.scikit_learn import template_of
from skdp.budget.charging import find_relation
from skdp.fitting import FitProgress, PrivateFit
from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.trace import ReleaseTrace, TracedRelease, record_releases

# Public, whatever the rows.
_PUBLIC = {"privacy_spent_", "n_features_in_", "feature_names_in_"}


def take_any_charge(*_: Any, **__: Any) -> None:
    """Do nothing."""


# Batches can be replaced only in fits that run step by step.
_UNPLANNED = SimpleNamespace(lots=None, last_iterate_only=False)

# A budget that accepts and ignores every charge: an audit publishes nothing.
UNCOUNTED = SimpleNamespace(reserve=take_any_charge)


def uncharged(estimator: Any) -> Any:
    """Return a clone that charges no budget, also for the estimators inside it."""
    copy, settings = clone(estimator), {"accountant": UNCOUNTED, "verbose": False}
    # Frozen parts are neither cloned nor fitted.
    frozen = {id(part) for part in estimator.get_params(deep=True).values()}
    for part in paying_parts(copy):
        if id(part) not in frozen:
            own = part.get_params(deep=False)
            known = settings | {
                "adjacency": find_relation(part)
            }  # from the budget that it would charge
            part.set_params(**{key: known[key] for key in known if key in own})
    return copy


def paying_parts(estimator: Any) -> list[Any]:
    """Return the parts of an estimator that charge a budget; a search charges for its parts."""
    parts = [estimator, *estimator.get_params(deep=True).values()]
    private = [part for part in parts if hasattr(part, "accountant")]
    inside = {id(each) for part in private for each in part.get_params(deep=True).values()}
    return [part for part in private if id(part) not in inside]


class Without:
    """Batches, model or problem of a table with absent rows."""

    # The divisor, the rate and all other public numbers are those of the complete table.

    def __init__(self, whole: Any, rows: Any) -> None:
        self._whole, self._rows = whole, rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)


class LotsWithoutRows(Without):
    """Batches that never contain the absent rows."""

    def sampler(self, stream: RandomStream) -> Any:
        """Return a sampler of these batches; None if all contain all rows."""
        self._sampler = self._whole.sampler(stream)
        return None if self._sampler is None else self

    def draw(self, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the next batches, without the rows."""
        indices, offsets = self._sampler.draw(steps)
        kept = ~np.isin(indices, self._rows)
        return indices[kept], np.concatenate([[0], np.cumsum(kept)])[offsets]


class ModelWithoutRows(Without):
    """A model with sums that omit absent rows, as in the theorems."""

    def bind(self, X: Any, targets: np.ndarray, **weights: Any) -> list[Any]:
        """Return the problems of a table, without the rows."""
        problems = self._whole.bind(X, targets, **weights)
        return [ProblemWithoutRows(each, self._rows, X.shape[0]) for each in problems]


class ProblemWithoutRows(Without):
    """A problem with sums over all rows except the absent ones."""

    def __init__(self, whole: Any, rows: Any, n_rows: int) -> None:
        super().__init__(whole, rows)
        self._others, self._n_rows = np.delete(np.arange(n_rows), rows), n_rows

    def sum_clipped(self, weights: Any, index: Any, clip: float, out: np.ndarray) -> int | None:
        """Add to ``out`` the gradients of the rows of an index; None means all others."""
        if index is not None:
            return self._whole.sum_clipped(weights, index, clip, out)
        within = self._whole.sum_clipped(weights, self._others, clip, out)
        # Absent rows are not clipped.
        return None if within is None else within + self._n_rows - self._others.size


class RepeatableStream(RandomStream):
    """A repeatable stream for fits that must behave like unseeded ones."""

    __slots__ = ()

    def _own_entropy(self) -> bytes:
        return b""


class SilentStream(RepeatableStream):
    """A stream without noise, for replays with known outputs."""

    __slots__ = ()

    def standard_normal(self, shape: int | tuple[int, ...]) -> np.ndarray:
        """Return zeros of the given shape."""
        return np.zeros(shape)


class StepsTold(FitProgress):
    """Reports the number of steps done, including those of earlier runs."""

    def __init__(self, done: Callable[[int], None], before: int = 0) -> None:
        super().__init__(object(), 1)  # an object without callbacks
        self._done, self._before = done, before

    def steps_done(self, count: int) -> None:
        """Report further steps."""
        self._done(self._before + count)


class AuditedTable:
    """One of two neighbouring tables, and an estimator that is fitted to it repeatedly."""

    def __init__(self, estimator: Any, table: Table, stream: RandomStream) -> None:
        run = self._run = uncharged(estimator)
        # For all randomness: noise, batches, and candidates of a search, which passes it on.
        names = set(run.get_params(deep=template_of(run) is run))
        parts = [name.removesuffix("accountant") for name in names if name.endswith("accountant")]
        self._states = {part + "random_state" for part in parts} & names
        self._given = table
        self.progress = StepsTold(lambda count: None)  # nobody watches
        self.plan: Any = _UNPLANNED
        kind = type(estimator)
        # Only this library's `fit` can run step by step, and only if it uses no randomness before
        # it uses rows, as searches do.
        self._stepwise = (
            isinstance(estimator, PrivateFit)
            and kind._fit is PrivateFit._fit
            and kind.fit.__module__.startswith("skdp.")
            and template_of(estimator) is estimator
        )
        if self._stepwise:
            run._check_parameters()
            self._rows = run._read(table.X, table.y, table.given)
            self.plan = run._plan(self._rows)
            self.spent = run._account(self.plan)
        if table.absent is not None:
            if self.plan.lots is None:
                raise ValueError(NO_NULL_ROW)
            self.plan = replace(self.plan, model=ModelWithoutRows(self.plan.model, table.absent))
        if not self._stepwise:
            self.spent = claim_of(self.fit(stream))
        if (self.spent.unit == "group") != (table.groups is not None):
            raise ValueError("With groups=, estimator must protect all rows of an id.")

    def public_steps(self) -> int:
        """Return the number of steps of a run; 0 if it is not public or not known."""
        return int(self._run._public_steps(self.plan)) if self._stepwise else 0

    def fit(self, stream: RandomStream, plan: Any = None) -> Any:
        """Return the estimator fitted with a stream; its attributes last until the next run."""
        run, plan = self._run, plan or self.plan
        if not self._stepwise:
            for name in sorted(self._states):
                run.set_params(**{name: int(stream.spawn(name).words(1)[0] >> np.uint64(32))})
            return run.fit(self._given.X, self._given.y, **self._given.given)
        for name in [name for name in vars(run) if name.endswith("_")]:
            delattr(run, name)
        run.random_state = stream
        if self._given.absent is not None:
            plan = replace(plan, lots=LotsWithoutRows(plan.lots, self._given.absent))
        released = run._use_rows(plan, self._rows, self.progress)
        run._publish(plan, self._rows, released, self.spent)
        return run


def claim_of(fitted: Any) -> PrivacySpent:
    """Return the privacy cost that an estimator, or a pipeline's steps together, reports."""
    # Frozen parts were charged before, and are not fitted again.
    steps = [step.estimator for step in walk(fitted)]
    steps = [step for step in steps if not isinstance(step, FrozenEstimator)]
    records = [step.privacy_spent_ for step in steps if hasattr(step, "privacy_spent_")]
    if len({(record.adjacency, record.unit) for record in records}) != 1:
        raise ValueError(
            "estimator must report its privacy cost in privacy_spent_, with one adjacency and one "
            "unit of privacy."
        )
    if len(records) == 1:
        return records[0]
    event = ComposedEvent(tuple(record.event for record in records))
    delta = math.fsum(record.delta for record in records)
    epsilon = PLDAccountant(records[0].adjacency).compose(event).epsilon(delta)
    return replace(records[0], epsilon=float(epsilon), delta=delta, event=event, accountant="pld")


def published(run: Any) -> dict[str, np.ndarray]:
    """Return the values in public attributes of a fit, nested ones included."""
    found: dict[str, np.ndarray] = {}
    for step in walk(run):
        _collect(step.name, step.estimator, found, set())
    return found


def _collect(path: str, value: Any, found: dict[str, np.ndarray], seen: set[int]) -> None:
    """Add the arrays inside a value, by their paths."""
    if sparse.issparse(value):
        value = value.toarray()
    if isinstance(value, Mapping):
        for key in value:
            _collect(f"{path}[{key!r}]", value[key], found, seen)
    elif isinstance(value, list | tuple) or hasattr(value, "__array__"):
        array = _as_array(value)
        if array is not None:
            found[path] = array
            return
        for place, item in enumerate(np.asarray(value, dtype=object).ravel().tolist()):
            _collect(f"{path}[{place}]", item, found, seen)
    elif hasattr(value, "__dict__") and not isinstance(value, type) and id(value) not in seen:
        seen.add(id(value))
        hidden = set(_PUBLIC)
        if hasattr(value, "get_params"):
            hidden.update(value.get_params(deep=False))
        for name, held in vars(value).items():
            if name not in hidden and not name.startswith("_"):
                _collect(f"{path}.{name}", held, found, seen)
    elif value is None or isinstance(value, str | bytes | Number):
        found[path] = np.asarray(value if isinstance(value, Number) else str(value))


def _as_array(value: Any) -> np.ndarray | None:
    """Return numbers or strings as an array; None for anything else."""
    try:
        array = np.asarray(value)
    except ValueError:  # ragged lists
        return None
    return None if array.dtype.hasobject else array


def read(run: Any, reference: dict[str, np.ndarray]) -> np.ndarray:
    """Return the published values of a run as numbers, and whether they differ in form."""
    found = published(run)
    parts = [np.array([float(found.keys() != reference.keys())])]
    for name, known in reference.items():
        value = found.get(name, np.empty(0))
        same = value.shape == known.shape
        if known.dtype.kind in "biuf":
            same = same and value.dtype.kind in "biuf"
            parts.append(np.ravel(value if same else np.zeros(known.shape)).astype(np.float64))
        else:
            same = same and np.array_equal(value, known)
        parts.append(np.array([float(not same)]))
    return np.concatenate(parts)


Draw = tuple[np.ndarray, np.ndarray]


class KeptLots:
    """Batches of a plan, recorded when they are drawn, or replayed from an earlier run."""

    # Each in three versions: as drawn, with the differing row, and without it. In a batch of fixed
    # size a uniformly drawn other row replaces it, as in the proof.

    def __init__(self, lots: Any, row: int) -> None:
        self._lots, self._row = lots, row
        self._versions: dict[str, list[Draw]] = {"drawn": [], "inside": [], "outside": []}
        self._left: Iterator[Draw] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lots, name)

    def replay(self, version: str) -> KeptLots:
        """Return one version of these batches for a replay."""
        again = KeptLots(self._lots, self._row)
        again._left = iter(self._versions[version])
        return again

    def sampler(self, stream: RandomStream) -> Any:
        """Return a sampler of these batches; None if all contain all rows."""
        self._sampler, self._spare = self._lots.sampler(stream), stream.spawn("spare")
        return None if self._sampler is None else self

    def draw(self, steps: int) -> Draw:
        """Return the next batches."""
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
        """Return a batch with the differing row, and without it."""
        others = lot[lot != self._row]
        if self._lots.sampling != "uniform":
            return np.append(others, self._row), others
        if others.size == lot.size:
            spare = self._spare.integer(lot.size)
            return np.append(np.delete(lot, spare), self._row), lot
        absent = np.setdiff1d(np.arange(self._lots.n_rows), lot)
        return lot, np.append(others, absent[self._spare.integer(absent.size)])


class Transcripts:
    """Scores of runs on two tables that differ in the row `changed`, from all releases."""

    def __init__(self, tables: list[AuditedTable], changed: int, stream: RandomStream) -> None:
        self._tables, self._changed = tables, changed
        plan = tables[0].plan
        if plan.last_iterate_only:
            raise ValueError(
                "This fit charges for and shows only its last iterate. Audit it with "
                "release='model'."
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
        """Record a run on one of the tables with its batches, or replay a recorded run."""
        plan = self._tables[side].plan
        with record_releases(replayed) as trace:
            self._tables[side].fit(stream, replace(plan, lots=lots) if lots else plan)
        if replayed is not None and len(trace.releases) != len(replayed.releases):
            raise ValueError(
                "The number of releases depends on the rows, which reveals information about them."
            )
        return trace

    def _refuse_hidden_randomness(self, stream: RandomStream) -> None:
        """Refuse releases that depend on hidden randomness.

        An attacker with this randomness would be stronger than the claim allows.
        """
        plan = self._tables[0].plan
        lots = None if plan.lots is None else KeptLots(plan.lots, self._changed)
        trace = self._run(0, stream.spawn("recorded"), lots)
        if not trace.releases:
            raise ValueError("This fit shows no releases to a trace. Use release='model'.")
        again = self._run(0, stream.spawn("replayed"), lots and lots.replay("drawn"), trace)
        for seen, other in zip(trace.releases, again.releases, strict=True):
            if seen.norm != 2.0 or seen.exponential:
                raise ValueError("release='all' requires Gaussian noise. Use release='model'.")
            if not np.allclose(seen.value, other.value, rtol=1e-9, atol=1e-9 * seen.sigma):
                raise ValueError(
                    "Before its noise, a release of this fit depends on unreleased randomness, and "
                    "its likelihood is not known. Use release='model'."
                )


def log_ratio(seen: TracedRelease, one: TracedRelease, other: TracedRelease) -> float:
    """Return the log-likelihood ratio of an output for two values before Gaussian noise."""
    to_one, to_other = seen.output - one.value, seen.output - other.value
    # The difference of squares without cancellation.
    return float(np.sum((to_other - to_one) * (to_other + to_one))) / (2.0 * seen.sigma**2)
