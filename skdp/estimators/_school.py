"""Teachers on disjoint parts of the private rows, and their student."""

from __future__ import annotations

import hashlib
import numbers
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from skdp.fitting import PrivateFit
from skdp.mechanisms.random_stream import RandomStream
from skdp.plans.votes import UNANSWERED
from skdp.running import around_runs
from skdp.tables.records import Records
from skdp.tables.units import Units

ASSUMPTIONS = (
    "the number of rows (of ids, with groups=), the columns and all parameters are public; so are "
    "the rows of X_public, which depend on no private row",
    "a record reaches one teacher, determined by its position in the table or by its id in "
    "groups=: positions and ids depend neither on the values of rows nor on other rows; with "
    "groups= a record is all rows of one id",
    "a teacher depends only on its part and its random_state: it reads no other data that depend "
    "on rows, and writes no file",
    "teachers and exact votes are dropped when the fit ends",
)


@dataclass(frozen=True, eq=False)
class School(Records):
    """Private records, the teacher of each row, and the public rows to label."""

    teachers: Any = None
    X_public: Any = None

    def parts(self, n_teachers: int) -> Iterator[tuple[Any, np.ndarray]]:
        """Yield rows and labels of each teacher, in the order of the table."""
        order = np.argsort(self.teachers, kind="stable")
        ends = np.cumsum(np.bincount(self.teachers, minlength=n_teachers))
        for own in np.split(order, ends[:-1]):
            yield self.X[own], self.labels[self.targets[own]]

    def rehearse(self, teacher: Any, n_teachers: int, n_jobs: int | None) -> None:
        """Try a teacher on public rows with made-up labels, in the size of a part.

        It runs in another process if the teachers will, since not all can be sent there.
        """
        count = -(-self.n_rows // n_teachers)
        if count < 2:
            return
        rows = self.X_public[np.arange(count) % self.X_public.shape[0]]
        y = np.resize(self.labels, count)
        try:
            with around_runs():
                trial = delayed(_train_and_vote)(
                    teacher, 0, rows, y, self.X_public[:1], self.labels
                )
                Parallel(n_jobs=n_jobs, backend="loky")([trial])
        except Exception as error:
            raise ValueError(
                f"The teacher fails on {count} public rows with made-up labels, the number of "
                f"records of a part: {error}. Nothing was charged. Change its parameters, or use "
                "fewer teachers with more rows each."
            ) from error

    def count_votes(
        self,
        teacher: Any,
        seeds: list[int],
        n_queries: int,
        n_jobs: int | None,
        done: Callable[[int], None],
    ) -> np.ndarray:
        """Train one teacher per seed and count its votes per query and class."""
        queries = self.X_public[:n_queries]
        # Processes share nothing through the disk: parts are private.
        work = Parallel(n_jobs=n_jobs, backend="loky", max_nbytes=None, return_as="generator")
        ballots = work(
            delayed(_vote)(teacher, seed, *part, queries, self.labels)
            for seed, part in zip(seeds, self.parts(len(seeds)), strict=True)
        )
        counts = np.zeros((n_queries, self.labels.size))
        for number, codes in enumerate(ballots, start=1):
            counts[np.arange(n_queries), codes] += 1.0
            done(number)
        return counts


def check_model(name: str, given: Any) -> None:
    """Refuse a model that cannot be cloned, charges a budget, or is fitted already."""
    if isinstance(given, type) or not hasattr(given, "fit"):
        raise TypeError(f"{name} must be a scikit-learn classifier, got {given!r}.")
    clone(given)
    if any(isinstance(part, PrivateFit) for part in (given, *given.get_params().values())):
        raise TypeError(
            f"{name} must not be a private estimator: it would charge the budget again."
        )
    try:
        check_is_fitted(given)
    except NotFittedError:
        return
    raise ValueError(
        f"{name} is fitted already and may contain rows. Pass sklearn.base.clone({name})."
    )


def check_jobs(n_jobs: Any) -> None:
    """Refuse values that joblib would refuse after the charge."""
    if n_jobs is not None and (not isinstance(n_jobs, numbers.Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs must be None or a non-zero integer, got {n_jobs!r}.")


def stored_like(X: Any, X_public: Any) -> Any:
    """Return public rows in the sparse or dense format of the private rows."""
    if sparse.issparse(X) == sparse.issparse(X_public):
        return X_public
    return sparse.csr_array(X_public) if sparse.issparse(X) else X_public.toarray()


def assign_rows(n_rows: int, units: Units | None, n_teachers: int, adjacency: str) -> np.ndarray:
    """Return the teacher of each row, a function only of its position or its id."""
    if units is not None:
        texts = (str(each).encode("utf-8", "surrogatepass") for each in units.ids)
        digests = (hashlib.blake2b(text, digest_size=8).digest() for text in texts)
        teachers = [int.from_bytes(digest, "little") % n_teachers for digest in digests]
        return np.array(teachers)[units.codes]
    if adjacency == "add-remove":
        raise ValueError(
            "adjacency='add-remove' (which None follows under such a budget) requires ids as "
            "groups= in fit. Without ids, removing a row would move all later rows to other "
            "teachers. Pass groups=, or use adjacency='replace-one'."
        )
    if n_teachers > n_rows:
        raise ValueError(
            f"n_teachers={n_teachers} is larger than the number of rows, {n_rows}. Use fewer "
            "teachers: each needs rows, several hundred if possible."
        )
    return np.arange(n_rows) % n_teachers


def draw_seeds(stream: RandomStream, count: int) -> list[int]:
    """Return random seeds for scikit-learn."""
    return [int(word) for word in stream.words(count) >> np.uint64(33)]


def seeded_clone(estimator: Any, seed: int) -> Any:
    """Return a clone with one seed in every random_state parameter, nested ones included."""
    # Caches and prints contain rows; nested workers are neither silenced nor seeded.
    wanted = {"random_state": seed, "memory": None, "n_jobs": None, "verbose": False}
    own = {name: name.split("__")[-1] for name in estimator.get_params()}
    copy = clone(estimator)
    copy.set_params(**{name: wanted[last] for name, last in own.items() if last in wanted})
    for part in (copy, *copy.get_params().values()):
        if hasattr(part, "set_callbacks"):  # a clone shares them with the released one
            part.set_callbacks()
    return copy


def _vote(teacher: Any, seed: int, X: Any, y: np.ndarray, queries: Any, labels: Any) -> np.ndarray:
    """Return the class that a teacher votes for, per query; never raise.

    A part with one class votes for it; an empty part or a failing teacher for the first class.
    """
    present = np.unique(y)
    if present.size < 2:
        code = np.searchsorted(labels, present[0]) if present.size else 0
        return np.full(queries.shape[0], code)
    try:
        with around_runs():
            return _train_and_vote(teacher, seed, X, y, queries, labels)
    except (Exception, SystemExit):
        return np.zeros(queries.shape[0], dtype=int)


def _train_and_vote(
    teacher: Any, seed: int, X: Any, y: np.ndarray, queries: Any, labels: np.ndarray
) -> np.ndarray:
    """Train a teacher on its part and return the positions of its answers in the labels."""
    # Global generators are reset: teachers must not see earlier use of them.
    check_random_state(None).seed(seed)
    random.seed(seed)
    answers = np.asarray(seeded_clone(teacher, seed).fit(X, y).predict(queries))
    if answers.shape != (queries.shape[0],):
        raise ValueError(f"its predictions have shape {answers.shape}, not one label per row")
    codes = np.minimum(np.searchsorted(labels, answers), labels.size - 1)
    if np.any(labels[codes] != answers):
        raise ValueError("its predictions contain values that are not labels")
    return codes


def train_student(student: Any, semi_supervised: bool, X: Any, codes: np.ndarray, seed: int) -> Any:
    """Return a student of public rows; the first ones have classes or UNANSWERED."""
    answered = np.flatnonzero(codes != UNANSWERED)
    known = np.unique(codes[answered])
    if known.size < 2:
        constant = known[0] if known.size else 0
        return DummyClassifier(strategy="constant", constant=constant).fit(X[:1], [constant])
    if student is None:
        student = make_pipeline(StandardScaler(with_mean=False), LogisticRegression(max_iter=1000))
        student = SelfTrainingClassifier(student) if semi_supervised else student
    student = seeded_clone(student, seed)
    if not semi_supervised:
        return student.fit(X[answered], codes[answered])
    return student.fit(X, np.append(codes, np.full(X.shape[0] - codes.size, UNANSWERED)))
