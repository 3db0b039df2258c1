"""Fit one estimator to one table as often as an audit asks, the way `fit` does, charging nothing.

What a fit checks and plans is done once for each table; each run then carries the plan out and
publishes, with a random stream of its own.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import clone

from skdp.audit.neighbours import NO_NULL_ROW, Table
from skdp.fitting import FitProgress, PrivateFit
from skdp.mechanisms.random_stream import RandomStream

# Public by themselves, whatever the rows.
_PUBLIC = {"privacy_spent_", "n_features_in_", "feature_names_in_"}


def take_any_charge(*_: Any, **__: Any) -> None:
    """Do nothing."""


# A budget that takes everything and keeps no count: an audit publishes nothing.
UNCOUNTED = SimpleNamespace(reserve=take_any_charge)


def uncharged(estimator: Any) -> Any:
    """Return a clone whose fits, and those of the estimators inside it, charge no budget."""
    copy = clone(estimator)
    for part in (copy, *copy.get_params(deep=True).values()):
        if isinstance(part, PrivateFit):
            part.accountant, part.verbose = UNCOUNTED, 0
    return copy


class ModelWithoutRows:
    """A model whose sums leave rows out, as the theorems do with absent ones."""

    def __init__(self, model: Any, rows: Any) -> None:
        self._model, self._rows = model, rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def bind(self, X: Any, targets: np.ndarray) -> list[Any]:
        """Return the problems of a table, without the rows."""
        others = np.delete(np.arange(X.shape[0]), self._rows)
        return [ProblemWithoutRows(problem, others) for problem in self._model.bind(X, targets)]


class ProblemWithoutRows:
    """A problem whose sums leave rows out."""

    run_steps = None

    def __init__(self, problem: Any, others: np.ndarray) -> None:
        self._problem, self._others = problem, others

    def sum_clipped(self, weights: Any, index: Any, clip: float, out: np.ndarray) -> None:
        """Add to ``out`` the gradients of the other rows of an index."""
        index = self._others if index is None else np.intersect1d(index, self._others)
        self._problem.sum_clipped(weights, index, clip, out)


class AuditedTable:
    """One of two neighbouring tables, and an estimator that is fitted to it again and again."""

    def __init__(self, estimator: Any, table: Table, stream: RandomStream) -> None:
        run = self._run = uncharged(estimator)
        self._given = table
        self.plan: Any = None
        kind = type(estimator)
        # Only the library's own `fit` may be taken step by step.
        self._stepwise = kind._fit is PrivateFit._fit and kind.fit.__module__.startswith("skdp.")
        if self._stepwise:
            run._check_parameters()
            self._rows = run._read(table.X, table.y, {})
            self.plan = run._plan(self._rows)
            self.spent = run._account(self.plan)
        if table.absent is not None:
            if not hasattr(self.plan, "lots"):
                raise ValueError(NO_NULL_ROW)
            self.plan = replace(self.plan, model=ModelWithoutRows(self.plan.model, table.absent))
        if not self._stepwise:
            self.spent = self.fit(stream).privacy_spent_

    def fit(self, stream: RandomStream, plan: Any = None) -> Any:
        """Return the estimator fitted with a stream; its attributes last until the next run."""
        run, plan = self._run, plan or self.plan
        for name in published(run):
            delattr(run, name)
        run.random_state = stream
        if not self._stepwise:
            return run.fit(self._given.X, self._given.y)
        # An object without callbacks: nobody watches.
        released = run._use_rows(plan, self._rows, FitProgress(object(), 1))
        run._publish(plan, self._rows, released, self.spent)
        return run


def published(run: Any) -> dict[str, np.ndarray]:
    """Return the attributes that a fit publishes and that could depend on rows."""
    return {
        name: np.asarray(value)
        for name, value in vars(run).items()
        if name.endswith("_") and not name.startswith("_") and name not in _PUBLIC
    }


def read(run: Any, reference: dict[str, np.ndarray]) -> np.ndarray:
    """Return what a run has published as numbers: those of `reference`, and where it differs."""
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
