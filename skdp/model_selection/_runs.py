"""Single runs of a search: one training, and the sum of scores on rows it has not seen."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from skdp.exceptions import SkdpError
from skdp.inputs import public_message
from skdp.mechanisms.random_stream import RandomStream
from skdp.model_selection._prepare import set_streams, strip_secrets
from skdp.model_selection._scoring import RowScorer
from skdp.model_selection._steps import PrivateStep, is_routed
from skdp.model_selection._table import n_columns, take_rows
from skdp.silence import around_runs
from skdp.tables.records import Records
from skdp.units import Units


class FitStream(RandomStream):
    """The stream of one fit, which its clones share.

    A column transformer clones its steps while it is fitted. The clones draw from the same
    stream in turn, so that no two uses of it share anything; it still refuses to be pickled.
    """

    __slots__ = ()

    def __deepcopy__(self, memo: dict[int, Any]) -> FitStream:
        return self

    def bound_to(self, context: bytes) -> FitStream:
        """Return the stream itself: a seeded search has bound it to all it was given already."""
        return self


@dataclass(frozen=True)
class Job:
    """What one run needs; it can be sent to another process."""

    estimator: Any  # a prepared copy of a candidate, fitted here
    steps: tuple[PrivateStep, ...]
    train: np.ndarray | None  # numbers of units
    test: np.ndarray | None
    key: bytes  # key of the run's stream, unlike that of any other run
    seeded: bool  # whether the key comes from a seed
    keep: bool  # whether the fitted model is wanted


@dataclass(frozen=True, eq=False)
class Table(Records):
    """Records of which runs are given parts, in any kind of table, and what else `fit` was given.

    Ids are kept as they were given.
    """

    fit_params: dict[str, Any] = field(default_factory=dict)
    groups: Any = None
    prepared: Any = None  # what the search knows, and runs do not

    @property
    def n_rows(self) -> int:
        """Number of rows, or of units."""
        return len(self.targets) if self.units is None else self.units.n_units

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
        """Return what to give to the fit of a candidate with these private steps."""
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
    public = name.rpartition("__")[2] == "X_public"  # other rows, however many there are
    if public or isinstance(value, str | bytes | dict) or not hasattr(value, "__len__"):
        return False
    return (value.shape[0] if hasattr(value, "shape") else len(value)) == n_rows


@dataclass(frozen=True)
class Outcome:
    """What came out of a run: a model and a sum of scores; after a failure none, and the worst."""

    model: Any
    total: float
    failure: Exception | None = None


def carry_out(job: Job, table: Table, scorer: RowScorer) -> Outcome:
    """Train and score once, in silence.

    Exceptions are returned, not raised: that a run failed is part of its result, which others
    must not see unless it is chosen, and a traceback from another process may quote rows.
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
    """Give steps without a random state of their own draws that do not tell which run this is."""
    check_random_state(None).seed(stream.words(4).view(np.uint32))
    random.seed(stream.words(4).tobytes())


def _public_failure(error: BaseException) -> Exception:
    """Return an error of a known class that quotes no row; classes of others run their own code."""
    try:
        text = str(error)
    except Exception:
        text = ""
    if isinstance(error, SkdpError) and type(error).__module__ == SkdpError.__module__:
        return type(error)(text)  # the library's own words
    kinds = (kind for kind in (TypeError, ValueError) if type(error) is kind)
    known: type[Exception] = next(kinds, RuntimeError)
    return known(f"{type(error).__name__}: {public_message(text)}")


def _total(estimator: Any, table: Table, scorer: RowScorer) -> float:
    """Return the sum of scores; a row that has none counts as the worst, and spoils no other's."""
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
