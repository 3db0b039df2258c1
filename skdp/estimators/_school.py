"""Teachers on disjoint parts of the private rows, who say no word of them, and their student."""

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
    "the rows of X_public, which no private row has shaped or chosen",
    "a record reaches one teacher, that of its place in the table or of its id in groups=: no "
    "place and no id depends on what rows hold or on which others there are; with groups= a record "
    "is all rows of one id",
    "a teacher is a function of its part and its random_state: it reads nothing else that rows "
    "have shaped, and writes no file",
    "teachers and exact votes are dropped when the fit ends",
)


@dataclass(frozen=True, eq=False)
class School(Records):
    """Private records, the teacher of each row, and the public rows that are to be labelled."""

    teachers: Any = None
    X_public: Any = None

    def parts(self, n_teachers: int) -> Iterator[tuple[Any, np.ndarray]]:
        """Yield rows and labels of each teacher, in the table's order."""
        order = np.argsort(self.teachers, kind="stable")
        ends = np.cumsum(np.bincount(self.teachers, minlength=n_teachers))
        for own in np.split(order, ends[:-1]):
            yield self.X[own], self.labels[self.targets[own]]

    def rehearse(self, teacher: Any, n_teachers: int, n_jobs: int | None) -> None:
        """Try a teacher on public rows with made-up labels, as many as a part has records.

        It is sent to another process where teachers will be, since not all can be.
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
                f"the teacher fails on {count} public rows with made-up labels, as many as a part "
                f"has records: {error}. Nothing was charged. Mend its parameters, or take fewer "
                "teachers, which have more rows each."
            ) from error

    def count_votes(
        self,
        teacher: Any,
        seeds: list[int],
        n_queries: int,
        n_jobs: int | None,
        done: Callable[[int], None],
    ) -> np.ndarray:
        """Train one teacher for each seed, and count its votes for each class on each query."""
        queries = self.X_public[:n_queries]
        # Nothing is put on the disk for the processes to share: parts are private.
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
    """Refuse what cannot be cloned, charges a budget of its own, or is fitted and may hold rows."""
    if isinstance(given, type) or not hasattr(given, "fit"):
        raise TypeError(f"{name} must be a scikit-learn classifier, got {given!r}.")
    clone(given)
    if any(isinstance(part, PrivateFit) for part in (given, *given.get_params().values())):
        raise TypeError(f"{name} needs no privacy of its own, and would charge the budget again.")
    try:
        check_is_fitted(given)
    except NotFittedError:
        return
    raise ValueError(f"{name} is fitted already, and may hold rows: give sklearn.base.clone of it.")


def check_jobs(n_jobs: Any) -> None:
    """Refuse what joblib would refuse after the charge."""
    if n_jobs is not None and (not isinstance(n_jobs, numbers.Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs must be None or an integer but 0, got {n_jobs!r}.")


def stored_like(X: Any, X_public: Any) -> Any:
    """Return public rows as sparse or dense as private ones: a teacher may take one kind alone."""
    if sparse.issparse(X) == sparse.issparse(X_public):
        return X_public
    return sparse.csr_array(X_public) if sparse.issparse(X) else X_public.toarray()


def assign_rows(n_rows: int, units: Units | None, n_teachers: int, adjacency: str) -> np.ndarray:
    """Return the teacher of each row, a function of its place alone, or of its own id alone."""
    if units is not None:
        texts = (str(each).encode("utf-8", "surrogatepass") for each in units.ids)
        digests = (hashlib.blake2b(text, digest_size=8).digest() for text in texts)
        teachers = [int.from_bytes(digest, "little") % n_teachers for digest in digests]
        return np.array(teachers)[units.codes]
    if adjacency == "add-remove":
        raise ValueError(
            "adjacency='add-remove', which None is in a budget that counts so, needs groups= in "
            "fit, an id for each row: without a row, all later ones would move to other teachers. "
            "Or use adjacency='replace-one'."
        )
    if n_teachers > n_rows:
        raise ValueError(
            f"n_teachers={n_teachers} is larger than the number of rows, {n_rows}: every teacher "
            "needs rows, some hundreds if possible."
        )
    return np.arange(n_rows) % n_teachers


def draw_seeds(stream: RandomStream, count: int) -> list[int]:
    """Draw seeds as scikit-learn takes them."""
    return [int(word) for word in stream.words(count) >> np.uint64(33)]


def seeded_clone(estimator: Any, seed: int) -> Any:
    """Return a clone with one seed in all parameters called random_state, also of its parts."""
    # Caches and prints hold rows; workers of workers are neither silenced nor seeded.
    wanted = {"random_state": seed, "memory": None, "n_jobs": None, "verbose": False}
    own = {name: name.split("__")[-1] for name in estimator.get_params()}
    copy = clone(estimator)
    copy.set_params(**{name: wanted[last] for name, last in own.items() if last in wanted})
    for part in (copy, *copy.get_params().values()):
        if hasattr(part, "set_callbacks"):  # a clone shares them with the one that is released
            part.set_callbacks()
    return copy


def _vote(teacher: Any, seed: int, X: Any, y: np.ndarray, queries: Any, labels: Any) -> np.ndarray:
    """Return the classes that a teacher votes for, one a query, whatever happens.

    A part of one class votes for it; an empty one for the first class, as one that fails does.
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
    """Train a teacher on its part and return the positions of its answers among the labels."""
    # Who draws from the generators of the process, in silence, must not see who drew before.
    check_random_state(None).seed(seed)
    random.seed(seed)
    answers = np.asarray(seeded_clone(teacher, seed).fit(X, y).predict(queries))
    if answers.shape != (queries.shape[0],):
        raise ValueError(f"its predictions have shape {answers.shape}, not one label a row")
    codes = np.minimum(np.searchsorted(labels, answers), labels.size - 1)
    if np.any(labels[codes] != answers):
        raise ValueError("its predictions are not all among the labels")
    return codes


def train_student(student: Any, semi_supervised: bool, X: Any, codes: np.ndarray, seed: int) -> Any:
    """Return a student of public rows, of which the first ones have classes or UNANSWERED."""
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
