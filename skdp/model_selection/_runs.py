"""Single runs of a search: parts of rows, a prepared candidate, one sum of scores."""

from __future__ import annotations

import hashlib
import numbers
import random
from dataclasses import dataclass, field, replace
from typing import Any

import joblib
import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state, column_or_1d, get_tags, indexable

from skdp.base.pipelines import containers, is_routed, walk
from skdp.base.scikit_learn import is_private
from skdp.exceptions import SkdpError
from skdp.mechanisms.random_stream import RandomStream
from skdp.model_selection._scoring import RowScorer
from skdp.model_selection._steps import Escrow, Fit, PrivateStep, parts_of, set_known
from skdp.running import around_runs
from skdp.tables.inputs import (
    check_indices,
    public_error,
    public_message,
    refuse_masked,
    refuse_other_tables,
    validate_private_data,
)
from skdp.tables.records import Records
from skdp.tables.units import Units


def check_table(template: Any, X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """Check rows and labels before anything is charged; parts of `template` check them later."""
    parts = ("steps", "transformers", "transformer_list", "estimator", "regressor")
    refuse_other_tables(X)
    refuse_masked(y, "y")
    check_indices(X)
    try:
        if not any(hasattr(template, part) for part in parts):
            accepted = "csr" if get_tags(template).input_tags.sparse else False
            validate_private_data(template, X, y, accept_sparse=accepted, dtype="numeric")
        X, y = indexable(X, y)
        return X, column_or_1d(y, warn=True)
    except (ValueError, TypeError) as error:
        found = public_error(error, X)
    raise found


def take_rows(table: Any, rows: np.ndarray) -> Any:
    """Return some rows of a table."""
    if hasattr(table, "iloc"):
        return table.iloc[rows]
    if sparse.issparse(table):
        return table.tocsr()[rows]
    if hasattr(table, "shape"):
        return table[rows]
    return [table[row] for row in rows]


def n_rows(table: Any) -> int:
    """Return the number of rows of a table."""
    return int(table.shape[0]) if hasattr(table, "shape") else len(table)


def n_columns(table: Any) -> int:
    """Return the number of columns of a table; 1 for texts and similar rows."""
    if hasattr(table, "shape"):
        return int(table.shape[1]) if len(table.shape) > 1 else 1
    widths = {len(row) if isinstance(row, list | tuple | np.ndarray) else 1 for row in table}
    return widths.pop() if len(widths) == 1 else 1


def digest(X: Any, y: np.ndarray, others: Any = None) -> bytes:
    """Return a digest of rows and labels by value; it never leaves the fit."""
    if not sparse.issparse(X):
        X = np.ascontiguousarray(X)
    return hashlib.blake2b(joblib.hash((X, y, others)).encode(), digest_size=32).digest()


def parameter_table(points: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the candidates in the form of ``cv_results_``, parameters only."""
    columns: dict[str, Any] = {}
    for name in dict.fromkeys(name for point in points for name in point):
        column = np.ma.masked_all(len(points), dtype=object)
        for row, point in enumerate(points):
            if name in point:
                column[row] = point[name]
        columns[f"param_{name}"] = column
    return {**columns, "params": points}


_FEWEST_ROWS = 2


def assign_folds(
    n_rows: int, n_folds: int, adjacency: str, stream: RandomStream
) -> list[np.ndarray]:
    """Divide indices of rows or units into folds, independently of the data, as is `stream`.

    Replace-one: folds of equal size, since a replaced row keeps its index. Add-remove: each row
    draws its fold independently, so its presence does not move others.
    """
    uniforms = stream.uniform(n_rows)
    if adjacency == "add-remove":
        labels = (uniforms * n_folds).astype(np.intp)
        return [np.flatnonzero(labels == fold) for fold in range(n_folds)]
    order = np.argsort(uniforms, kind="stable")
    return [np.sort(part) for part in np.array_split(order, n_folds)]


def assign_holdout(n_rows: int, fraction: float, adjacency: str, stream: RandomStream) -> list[Any]:
    """Divide row numbers into a training and a scoring part, as in `assign_folds`."""
    uniforms = stream.uniform(n_rows)
    if adjacency == "add-remove":
        held = uniforms < fraction
    else:
        held = np.zeros(n_rows, dtype=bool)
        n_held = min(max(round(fraction * n_rows), 1), max(n_rows - 1, 1))
        held[np.argsort(uniforms, kind="stable")[:n_held]] = True
    return [np.flatnonzero(~held), np.flatnonzero(held)]


def check_parts(train_sizes: list[int], n_rows: int, what: str) -> None:
    """Refuse a division with too few rows for training."""
    if min(train_sizes) < _FEWEST_ROWS:
        raise ValueError(
            f"A table with n_samples={n_rows} has too few rows or units for {what}: at least "
            f"{_FEWEST_ROWS} must remain for training."
        )


def resolve_cv(cv: Any) -> int:
    """Return the number of folds of `cv`, and refuse divisions that depend on rows."""
    if type(cv) is KFold:
        return int(cv.n_splits)
    if isinstance(cv, numbers.Integral) and not isinstance(cv, bool):
        if int(cv) >= 2:
            return int(cv)
        raise ValueError(f"cv must be at least 2, got {cv!r}.")
    name = type(cv).__name__
    if "Stratified" in name:
        raise ValueError(
            f"cv={name} divides rows by their private labels: one changed label moves other rows "
            "to other folds, so the influence of one row has no bound. Set cv to a number of "
            "folds, which are drawn at random without looking at rows."
        )
    raise ValueError(
        f"cv must be a number of folds or a KFold, got {name}: folds must be independent of the "
        "rows. Set cv to a number of folds."
    )


def prepare_fit(
    estimator: Any, steps: tuple[PrivateStep, ...], fit: Fit, adjacency: str, classes: Any
) -> Any:
    """Return a copy of a candidate that can be fitted once, with a reserved budget.

    Steps without `classes` get these, since they would read them from their part of the rows. The
    random states of the steps are set later.
    """
    copy = clone(estimator)
    for container in containers(copy).values():
        # A cache on disk would contain private rows; nested workers would copy the reserved budget.
        set_known(container, memory=None, n_jobs=None, verbose=False)
    own = copy.get_params(deep=True)
    for step, event, epsilon, plan in zip(steps, fit.events, fit.epsilons, fit.plans, strict=True):
        wanted = {
            "epsilon": epsilon,
            "delta": fit.delta,
            "adjacency": adjacency,
            "accountant": Escrow(event, adjacency, step.label, plan.unit),
            "verbose": 0,
        }
        given = step.estimator.get_params(deep=False)
        if given.get("classes", ...) is None:
            wanted["classes"] = classes
        if given.get("data_norm", ...) is None:
            wanted["data_norm"] = 1.0  # the search has warned already
        named = {step.parameter(name): value for name, value in wanted.items()}
        copy.set_params(**{key: value for key, value in named.items() if key in own})
    for _, part in parts_of(copy):
        # Their number and order would reveal the candidates tried.
        if hasattr(part, "set_callbacks"):
            part.set_callbacks()
    return copy


def set_streams(estimator: Any, steps: tuple[PrivateStep, ...], stream: Any) -> None:
    """Give each private step a separate stream of random numbers."""
    own = estimator.get_params(deep=True)
    for step in steps:
        if step.parameter("random_state") in own:
            child = stream.spawn(step.name)
            estimator.set_params(**{step.parameter("random_state"): child})


def strip_secrets(estimator: Any) -> Any:
    """Remove from a fitted model its random state and its reserved budget."""
    for _, part, _ in walk(estimator):
        if is_private(part):
            set_known(part, accountant=None, random_state=None)
    return estimator


def restore_parameters(estimator: Any, template: Any, spent: Any, *, refitted: bool) -> Any:
    """Restore the parameters of a fitted model, and set its cost to that of the entire search."""
    originals = {step.name: step.estimator for step in walk(template)}
    for name, part, _ in walk(estimator):
        if not is_private(part):
            continue
        own = originals[name].get_params(deep=False)
        changed = ("accountant", "random_state", "classes", "data_norm", "verbose")
        set_known(part, **{key: own[key] for key in changed if key in own})
        if not refitted:  # its noise influenced the choice
            vars(part).pop("_coef_noise_", None)
        if hasattr(part, "privacy_spent_"):
            part.privacy_spent_ = spent
            # The statement counts a record shared by several steps once.
            part._shares_record_of_search = True
    return estimator


class FitStream(RandomStream):
    """The stream of one fit, which its clones share.

    A column transformer clones its steps during a fit. The clones draw from the same stream in
    turn, so no numbers are used twice. It cannot be pickled.
    """

    __slots__ = ()

    def __deepcopy__(self, memo: dict[int, Any]) -> FitStream:
        return self

    def bound_to(self, context: bytes) -> FitStream:
        """Return the stream, which a seeded search has already bound to its input."""
        return self


@dataclass(frozen=True)
class Job:
    """Input of one run, which can be sent to another process."""

    estimator: Any  # a prepared copy of a candidate, fitted here
    steps: tuple[PrivateStep, ...]
    train: np.ndarray | None  # indices of units
    test: np.ndarray | None
    key: bytes  # unique key of the run's stream
    seeded: bool  # whether the key comes from a seed
    keep: bool  # whether the fitted model is wanted


@dataclass(frozen=True, eq=False)
class Table(Records):
    """Records to divide among runs, in any kind of table, and other arguments of `fit`."""

    fit_params: dict[str, Any] = field(default_factory=dict)
    groups: Any = None
    prepared: Any = None  # for the search, not for runs

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return n_columns(self.X)

    def part(self, units: np.ndarray | None) -> Table:
        """Return all rows of the units of the given numbers."""
        if units is None:
            return self
        codes = None if self.units is None else self.units.codes
        return self.rows(units if codes is None else np.flatnonzero(np.isin(codes, units)))

    def parameters(self, steps: tuple[PrivateStep, ...]) -> dict[str, Any]:
        """Return the arguments for the fit of a candidate with these private steps."""
        if self.units is None:
            return self.fit_params
        names = ["groups"] if is_routed() else [step.parameter("groups") for step in steps]
        return {**self.fit_params, **dict.fromkeys(names, self.groups)}

    def rows(self, numbers: np.ndarray) -> Table:
        """Return the part with the given row numbers."""
        size = len(self.targets)
        return replace(
            self,
            X=take_rows(self.X, numbers),
            targets=self.targets[numbers],
            units=None if self.units is None else Units(self.units.codes[numbers], self.units.ids),
            row_weight=None if self.row_weight is None else self.row_weight[numbers],
            fit_params={
                name: take_rows(value, numbers) if _is_per_row(name, value, size) else value
                for name, value in self.fit_params.items()
            },
            groups=None if self.groups is None else take_rows(self.groups, numbers),
        )


def _is_per_row(name: str, value: Any, n_rows: int) -> bool:
    public = name.rpartition("__")[2] == "X_public"  # other rows, of any number
    if public or isinstance(value, str | bytes | dict) or not hasattr(value, "__len__"):
        return False
    return (value.shape[0] if hasattr(value, "shape") else len(value)) == n_rows


@dataclass(frozen=True)
class Outcome:
    """Result of a run: a model and a sum of scores, or no model and the worst sum."""

    model: Any
    total: float
    failure: Exception | None = None


def carry_out(job: Job, table: Table, scorer: RowScorer) -> Outcome:
    """Train and score once, silently, and return exceptions as part of the result.

    A failure must stay invisible unless the run is chosen, and a traceback may quote rows.
    """
    try:
        with around_runs():
            stream = FitStream(job.key, seeded=job.seeded)
            _reseed_generators(stream.spawn("generators of the process"))
            set_streams(job.estimator, job.steps, stream)
            training = table.part(job.train)
            job.estimator.fit(training.X, training.targets, **training.parameters(job.steps))
            total = 0.0
            if job.test is not None:
                total = _total(job.estimator, table.part(job.test), scorer)
        return Outcome(strip_secrets(job.estimator) if job.keep else None, total)
    except (Exception, SystemExit) as error:
        return Outcome(None, 0.0, _public_failure(error))


def _reseed_generators(stream: RandomStream) -> None:
    """Seed the global generators, so that steps that use them do not reveal the run."""
    check_random_state(None).seed(stream.words(4).view(np.uint32))
    random.seed(stream.words(4).tobytes())


def _public_failure(error: BaseException) -> Exception:
    """Return an error of a known class that quotes no row."""
    try:
        text = str(error)
    except Exception:
        text = ""
    if isinstance(error, SkdpError) and type(error).__module__ == SkdpError.__module__:
        return type(error)(text)  # a message of the library
    kinds = (kind for kind in (TypeError, ValueError) if type(error) is kind)
    known: type[Exception] = next(kinds, RuntimeError)
    return known(f"{type(error).__name__}: {public_message(text)}")


def _total(estimator: Any, table: Table, scorer: RowScorer) -> float:
    """Return the sum of scores; a row without a score counts as the worst."""
    total, scored = 0.0, False
    failure: BaseException | None = None
    way = scorer._way(estimator, table.X)
    pending = [np.arange(len(table.targets))] if len(table.targets) else []
    while pending:
        numbers = pending.pop()
        rows = table.rows(numbers)
        try:
            total += scorer._total_by(way, estimator, rows.X, rows.targets, rows.row_weight)
            scored = True
        except (Exception, SystemExit) as error:
            failure = error
            if len(numbers) > 1:
                pending += np.array_split(numbers, 2)
    if failure is not None and not scored:
        raise failure
    return total
