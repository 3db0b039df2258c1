"""An estimator under check, with its tables, budgets and shared fits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from scipy.special import gammaincc, gammainccinv
from sklearn.base import clone

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.parameters import cached_property
from skdp.base.pipelines import walk
from skdp.exceptions import BudgetExceededError
from skdp.mechanisms.trace import ReleaseTrace, TracedRelease, active_trace, record_releases
from skdp.testing.replay import Run, fit_frozen, listen

_MOST_FITS = 60
_LARGEST = 1.7e308
# Assumptions in records of fits that use the number of rows, or the set of labels.
_N_IS_PUBLIC = re.compile("number of (rows|units|records|persons)")
_LABELS_ARE_PUBLIC = re.compile("label set")
_budgets: WeakValueDictionary[int, NotingBudget] = WeakValueDictionary()


class NotingBudget:
    """Records charges and the releases before each; copies and pickles are the same object."""

    def __init__(self, refuses: bool = False, then: Callable[[], None] | None = None) -> None:
        self.charges: list[tuple[Any, dict[str, Any]]] = []
        self.releases_before: list[int] = []
        self._refuses, self._then = refuses, then
        _budgets[id(self)] = self

    def reserve(self, event: Any, **details: Any) -> None:
        """Record a charge, or refuse it."""
        if isinstance(event, PrivacySpent):
            details = {"adjacency": event.adjacency, "seeded": event.seeded, **details}
            event = event.event
        trace = active_trace()
        self.releases_before.append(0 if trace is None else len(trace.releases))
        if self._refuses:
            raise BudgetExceededError("This budget refuses every charge.")
        self.charges.append((event, details))
        if self._then is not None and len(self.charges) == 1:
            self._then()

    def __deepcopy__(self, memo: dict[int, Any]) -> NotingBudget:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _find_budget, (id(self),)


def _find_budget(number: int) -> NotingBudget:
    return _budgets[number]


class Replay(NamedTuple):
    """A fit and its replay on a neighbour; under add-remove also one without the row."""

    name: str
    one: Run  # under add-remove with a row of zeros instead of that of `other`
    other: Run
    gone: Run | None = None
    zeros: Callable[[], Run] | None = None  # with another label
    n_is_public: bool = False

    @property
    def errors(self) -> tuple[Exception | None, ...]:
        """Return the errors of the replays; with a public n the missing row is ignored."""
        told = self.gone is not None and not self.n_is_public
        return (self.other.error, *((self.gone.error,) if told else ()))  # type: ignore[union-attr]


class Case:
    """The estimator under check, and the fits that several checks use."""

    def __init__(self, estimator: Any, X: Any, y: Any, neighbours: Any, n_draws: int) -> None:
        if X is None:
            rng = np.random.default_rng(0)
            X = rng.standard_normal((60, 4))
            X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
            y = (X[:, 0] + 0.3 * rng.standard_normal(60) > 0.0).astype(int)
        self.X, self.y = np.array(X, dtype=np.float64), y
        self.far_X = -self.X[::-1]
        self.estimator, self.n_draws, self._neighbours = estimator, n_draws, neighbours
        self.budget = NotingBudget()

    def prepare(self, budget: NotingBudget | None = None, **settings: Any) -> Any:
        """Return a clone with a separate budget and given parameters, nested ones included."""
        model = clone(self.estimator)
        for name, value in {**settings, "accountant": budget or NotingBudget()}.items():
            model.set_params(**dict.fromkeys(parameters_called(model, name), value))
        return model

    def fit(self, model: Any, *table: Any, **options: Any) -> Run:
        """Fit under frozen noise, and record output."""
        with listen() as said:
            run = fit_frozen(model, *table, **options)
        return run._replace(said=said)

    @cached_property
    def run(self) -> Run:
        """The fit of the table, charged to the budget of the case."""
        return self.fit(self.prepare(self.budget), self.X, self.y)

    @cached_property
    def replays(self) -> list[Replay]:
        """The fit on one table of each pair, and its replay on the other."""
        own = next((record.adjacency for record in records(self.run.fitted)), "replace-one")
        both = parameters_called(self.estimator, "adjacency") and not self._neighbours
        found: list[Replay] = []
        for relation in ("replace-one", "add-remove") if both else (own,):
            removes = relation == "add-remove" and not self._neighbours
            settings: dict[str, Any] = {"adjacency": relation}
            settings |= {"fit_intercept": False} if removes else {}
            # One fit per table. The estimator may refuse the other adjacency.
            fits: dict[tuple[int, ...], Run] = {}
            optional = (ValueError,) if relation != own else ()
            for name, table, neighbour in [*self._pairs(removes), *self._pairs_of_units(removes)]:
                refused = optional if len(table) == 2 else (Exception,)  # or does not support ids
                key = tuple(map(id, table))
                one = fits.get(key) or self.fit(self.prepare(**settings), *table, expected=refused)
                fits[key] = one
                if one.error is not None:
                    continue
                again = {"replayed": one.trace, "expected": (Exception,)}
                replay = partial(self._replay, settings, again)
                found.append(Replay(f"{name}, {relation}", one, replay(*neighbour)))
                if removes and len(table) == 2:
                    found[-1] = self._with_the_row_gone(found[-1], replay, table, neighbour)
        return found

    def _with_the_row_gone(self, found: Replay, replay: Any, table: Any, neighbour: Any) -> Replay:
        gone = replay(*(None if part is None else part[:-1] for part in neighbour))
        zeros = partial(replay, table[0], self._other_label(-1))
        public = self._says(_N_IS_PUBLIC, found.one)
        return found._replace(gone=gone, zeros=zeros, n_is_public=public)

    def _replay(self, settings: Any, again: Any, *table: Any) -> Run:
        return self.fit(self.prepare(**settings), *table, **again)

    @cached_property
    def traces(self) -> list[ReleaseTrace]:
        """Releases of fits with fresh noise, alternating between two tables."""
        traces: list[ReleaseTrace] = []
        while len(traces) < 2 or (self._fewest(traces) < self.n_draws and len(traces) < _MOST_FITS):
            model = self.prepare()
            with listen(), record_releases() as trace:
                model.fit(self.far_X if len(traces) % 2 else self.X, self.y)
            traces.append(trace)
        return traces

    def _fewest(self, traces: list[ReleaseTrace]) -> int:
        return min((noise.size for noise in noises(traces).values()), default=self.n_draws)

    def _pairs(self, removes: bool) -> Iterator[tuple[str, Any, Any]]:
        """Yield tables that differ in one row; a removed row is last, and zeros in the first."""
        if self._neighbours:
            yield from ((f"pair {j}", *pair) for j, pair in enumerate(self._neighbours))
            return
        place = len(self.X) - 1 if removes else 0
        direction, null = np.random.default_rng(1).standard_normal(self.X[:1].shape), 0.0
        own, scale = self.X[place], float(np.max(np.linalg.norm(self.X, axis=1)))
        base = self._with(place, null if removes else own)
        row = scale * direction / np.linalg.norm(direction)
        yield "a random row", base, self._with(place, row)
        yield "an extreme row", base, self._with(place, -1e9 * (own + scale))
        longest = np.resize([_LARGEST, -_LARGEST], self.X[:1].shape)
        yield "the longest row", base, self._with(place, longest)  # products with it overflow
        yield "a duplicate", base, self._with(place, self.X[1])
        if not removes:
            yield "a null row", base, self._with(place, null)
        if self.y is not None:
            yield "another label", base, (self.X, self._other_label(place))
            if not self._says(_LABELS_ARE_PUBLIC, self.run):
                labels = np.array(self.y)
                labels[place] = labels.max() + 1 if labels.dtype.kind in "iuf" else "zz"
                yield "a new label", base, (self.X, labels)

    def _says(self, public: re.Pattern[str], run: Run) -> bool:
        """Return whether a record of a fit assumes that something is public."""
        said = (text for record in records(run.fitted) for text in record.assumptions)
        return any(public.search(text) for text in said)

    def _pairs_of_units(self, removes: bool) -> Iterator[tuple[str, Any, Any]]:
        """Yield tables with ids that differ in all rows, and their number, of one id."""
        # If the number of ids is public, nothing represents a missing one.
        if self._neighbours or self.y is None or (removes and self._says(_N_IS_PUBLIC, self.run)):
            return
        ids, few = np.arange(len(self.X)) // 2, 5
        scale = float(np.max(np.linalg.norm(self.X, axis=1)))
        rows = np.random.default_rng(2).standard_normal((few, self.X.shape[1])) * scale
        labels = np.resize(self._other_label(0)[:1], few)
        first = 2 if removes else 0
        base = (self.X[first:], self.y[first:], ids[first:])
        for name, factor in (("an id of more rows", 1.0), ("an id of extreme rows", 1e9)):
            X, y = np.vstack([factor * rows, self.X[2:]]), np.concatenate([labels, self.y[2:]])
            yield name, base, (X, y, np.concatenate([np.zeros(few, dtype=int), ids[2:]]))

    def _other_label(self, place: int) -> Any:
        """Return labels with one of them replaced by another existing label."""
        if self.y is None:
            return None
        labels = np.array(self.y)
        labels[place] = next(label for label in self.y if label != self.y[place])
        return labels

    def _with(self, place: int, row: Any) -> tuple[Any, Any]:
        X = self.X.copy()
        X[place] = row
        return X, self.y


def parameters_called(estimator: Any, name: str) -> list[str]:
    """Return the estimator's parameter of that name, or else those of its parts."""
    if name in estimator.get_params(deep=False):
        return [name]
    return [key for key in estimator.get_params() if key.endswith(f"__{name}")]


def records(fitted: Any) -> list[PrivacySpent]:
    """Return the record of a fit, or those of its steps."""
    parts = [fitted] if hasattr(fitted, "privacy_spent_") else [s.estimator for s in walk(fitted)]
    return [part.privacy_spent_ for part in parts if hasattr(part, "privacy_spent_")]


def noises(
    traces: list[ReleaseTrace], skip: Callable[[TracedRelease], Any] = lambda release: False
) -> dict[tuple[str, float], np.ndarray]:
    """Return the noise of each kind of release over its scale, norm-exponential as normal."""
    found: dict[tuple[str, float], list[np.ndarray]] = {}
    for release in (release for trace in traces for release in trace.releases):
        if release.norm in (1.0, 2.0) and not skip(release):  # others select
            noise = (release.output - release.value) / release.sigma
            if release.exponential and release.norm == 2.0:
                noise = as_normals(noise)
            found.setdefault((release.label, release.norm), []).append(noise.ravel())
    return {kind: np.concatenate(parts) for kind, parts in found.items()}


def as_normals(noise: np.ndarray) -> np.ndarray:
    """Return standard normals if the noise has density ~ ``e^-|x|`` over all its numbers."""
    length = np.linalg.norm(noise.ravel())
    # Match the tail probabilities: half of the squared length has a Gamma law.
    longer = gammaincc(noise.size, length)
    return noise * (np.sqrt(2.0 * gammainccinv(0.5 * noise.size, longer)) / length)
