"""Single runs of a search: one training, and the sum of scores on rows it has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp.exceptions import SkdpError
from skdp.inputs import public_message
from skdp.mechanisms.random_stream import RandomStream
from skdp.model_selection._prepare import set_streams, stripped
from skdp.model_selection._scoring import RowScorer
from skdp.model_selection._steps import PrivateStep
from skdp.model_selection._table import take_rows


class FitStream(RandomStream):
    """The stream of one fit, which its clones share.

    A column transformer clones its steps while it is fitted. The clones draw from the same
    stream in turn, so that no two uses of it share anything; it still refuses to be pickled.
    """

    __slots__ = ()

    def __deepcopy__(self, memo: dict[int, Any]) -> FitStream:
        return self

    def spawn(self, label: str) -> FitStream:
        """Return an independent child stream; the same label gives the same child."""
        # The parent's child is used up to make a key for one of this class.
        return FitStream(super().spawn(label).words(4).tobytes(), seeded=self.seeded)


@dataclass(frozen=True)
class Job:
    """What one run needs; it can be sent to another process.

    Parameters
    ----------
    estimator : estimator
        A prepared copy of a candidate, fitted here.
    steps : tuple of PrivateStep
        Its private steps.
    train : ndarray of int or None
        Row numbers to train on; None trains on all.
    test : ndarray of int or None
        Row numbers to score on; None scores none.
    key : bytes
        Key of the run's stream, unlike that of any other run.
    seeded : bool
        Whether the key comes from a seed.
    keep : bool
        Whether the fitted model is wanted.
    """

    estimator: Any
    steps: tuple[PrivateStep, ...]
    train: np.ndarray | None
    test: np.ndarray | None
    key: bytes
    seeded: bool
    keep: bool


@dataclass(frozen=True)
class Table:
    """Rows, labels, and what else `fit` was given."""

    X: Any
    y: np.ndarray
    fit_params: dict[str, Any]

    def rows(self, numbers: np.ndarray | None) -> Table:
        """Return the part with the given row numbers."""
        if numbers is None:
            return self
        return Table(
            take_rows(self.X, numbers),
            self.y[numbers],
            {
                name: take_rows(value, numbers) if _is_per_row(value, len(self.y)) else value
                for name, value in self.fit_params.items()
            },
        )


def _is_per_row(value: Any, n_rows: int) -> bool:
    if isinstance(value, str | bytes | dict) or not hasattr(value, "__len__"):
        return False
    return len(value) == n_rows


@dataclass(frozen=True)
class Outcome:
    """What came out of a run: a model and a sum of scores, or why there are none."""

    model: Any
    total: float
    failure: Exception | None = None


def carry_out(job: Job, table: Table, scorer: RowScorer) -> Outcome:
    """Train and score once.

    Exceptions are returned, not raised: what is raised in another process carries a traceback
    whose text may quote rows.

    Parameters
    ----------
    job : Job
        What to do.
    table : Table
        All rows.
    scorer : RowScorer
        The score.

    Returns
    -------
    Outcome
        What came out.
    """
    try:
        set_streams(job.estimator, job.steps, FitStream(job.key, seeded=job.seeded))
        training = table.rows(job.train)
        job.estimator.fit(training.X, training.y, **training.fit_params)
        total = 0.0
        if job.test is not None:
            test = table.rows(job.test)
            total = scorer.total(job.estimator, test.X, test.y)
    except SkdpError as error:
        # Its messages are the library's own and quote no row.
        return Outcome(None, 0.0, type(error)(str(error)))
    except Exception as error:
        known = type(error) if type(error) in (TypeError, ValueError) else RuntimeError
        return Outcome(None, 0.0, known(f"{type(error).__name__}: {public_message(str(error))}"))
    return Outcome(stripped(job.estimator) if job.keep else None, total)
