"""Fits under frozen noise, replayed on neighbours and compared."""

from __future__ import annotations

import itertools
import logging
import threading
import types
import warnings
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Any, NamedTuple, Self
from unittest import mock

import numpy as np
from scipy import sparse
from sklearn.base import clone

from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.trace import ReleaseTrace, TracedRelease, active_trace, record_releases

_one_at_a_time = threading.RLock()


class FrozenStream(RandomStream):
    """A seeded stream that ignores the table and the parameters it is used with.

    Create one with ``FrozenStream.from_seed(seed)``. Fits with equal streams have equal noise for
    any table. Use it only to compare fits in tests, never for a release.

    Examples
    --------
    >>> from skdp.mechanisms import gaussian_mechanism
    >>> from skdp.testing import FrozenStream
    >>> target = {"epsilon": 1.0, "delta": 1e-6, "sensitivity": 1.0}
    >>> one, other = (
    ...     gaussian_mechanism([value], random_state=FrozenStream.from_seed(0), **target)
    ...     for value in (3.0, 4.0)
    ... )
    >>> round(float(other[0] - one[0]), 6)  # the noise is the same
    1.0
    """

    __slots__ = ()

    def bound_to(self, context: bytes) -> Self:
        """Return the stream itself."""
        return self


class Run(NamedTuple):
    """A fit: the fitted object, its releases, its error and its output."""

    fitted: Any
    trace: ReleaseTrace
    error: Exception | None
    said: list[tuple[str, ...]] | None = None


def fit_frozen(
    model: Any,
    *table: Any,
    seed: int = 0,
    replayed: ReleaseTrace | None = None,
    expected: tuple[type[Exception], ...] = (),
) -> Run:
    """Fit an object to rows, targets and ids, with unseeded randomness from `seed`."""
    error = None
    with _freeze(seed), record_releases(replayed) as trace:
        try:
            model.fit(*table[:2], **dict(zip(("groups",), table[2:], strict=False)))
        except expected as caught:
            error = caught
    return Run(model, trace, error)


def fit_both(template: Any, one: Any, other: Any) -> list[Any]:
    """Fit clones on two tables, with the same randomness and the same releases."""
    fitted, replayed = [], None
    for table in (one, other):
        with _seeded_generator():
            model = clone(template) if hasattr(template, "get_params") else template
            run = fit_frozen(model, *table, replayed=replayed)
        fitted.append(run.fitted)
        replayed = run.trace
    return fitted


@contextmanager
def _seeded_generator() -> Iterator[None]:
    """Seed numpy's global generator, which frozen distributions copy, and restore it."""
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002


@contextmanager
def _freeze(seed: int) -> Iterator[None]:
    """Replace entropy by fixed keys in this thread's recorded fits only."""
    fresh, numbers = RandomStream.from_entropy, itertools.count()
    own_entropy = RandomStream._own_entropy

    def from_entropy(cls: type[RandomStream]) -> RandomStream:
        if active_trace() is None:
            return fresh()
        key = cls.from_seed(seed, f"frozen {next(numbers)}".encode()).words(4).tobytes()
        return cls(key, seeded=False)

    def entropy_of_no_process(stream: RandomStream) -> bytes:
        return own_entropy(stream) if active_trace() is None else b""

    with (
        _one_at_a_time,
        _seeded_generator(),
        mock.patch.object(RandomStream, "from_entropy", classmethod(from_entropy)),
        mock.patch.object(RandomStream, "_own_entropy", entropy_of_no_process),
    ):
        yield


@contextmanager
def listen() -> Iterator[list[tuple[str, ...]]]:
    """Capture warnings, log records and printed lines."""
    said: list[tuple[str, ...]] = []
    printed, complained = StringIO(), StringIO()

    def handle(logger: logging.Logger, record: logging.LogRecord) -> None:
        said.append(("log record", logger.name, record.levelname, record.getMessage()))

    root = logging.getLogger()
    level = root.level
    with (
        warnings.catch_warnings(record=True) as caught,
        redirect_stdout(printed),
        redirect_stderr(complained),
        mock.patch.object(logging.Logger, "handle", handle),
    ):
        warnings.simplefilter("always")
        root.setLevel(1)  # no filter without a level
        try:
            yield said
        finally:
            root.setLevel(level)
    said += [("warning", each.category.__name__, str(each.message)) for each in caught]
    said += [("printed", text.getvalue()) for text in (printed, complained) if text.getvalue()]


@dataclass(frozen=True)
class ReplayReport:
    """Distances between the exact values (before noise) of two neighbouring data sets.

    Parameters
    ----------
    distances : ndarray of shape (n_releases,)
        Distance of the values of each release, in the norm of its mechanism (Euclidean for
        Gaussian noise).
    sensitivities : ndarray of shape (n_releases,)
        Declared sensitivities.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.testing import ReplayReport
    >>> ReplayReport(distances=np.array([0.3]), sensitivities=np.array([0.5])).largest_ratio
    0.6
    """

    distances: np.ndarray
    sensitivities: np.ndarray

    @property
    def largest_ratio(self) -> float:
        """Largest distance over its declared sensitivity; at most 1 for a correct estimator."""
        return float(np.max(self.distances / self.sensitivities))


def replay_on_neighbour(
    estimator: Any,
    X: Any,
    y: Any,
    X_neighbour: Any,
    y_neighbour: Any,
    *,
    seed: int = 0,
    rounding: float = 1e-9,
) -> ReplayReport:
    """Run a fit, replay it on neighbouring data, and compare the exact value of each release.

    Both runs draw the same batches. The mechanisms of the second run return the outputs of the
    first, which gives equal iterates. Every exact value (before noise) may then change by at most
    the declared sensitivity, and the sequence of releases must be the same.

    Parameters
    ----------
    estimator : private estimator
        Estimator, cloned and not changed. Set ``classes=``, to give both runs the same labels.
    X, y : array-like
        Data set.
    X_neighbour, y_neighbour : array-like
        Neighbouring data set. Under add-remove it lacks a row, or has one more, if no declared
        value depends on the number of rows. If this number is public, a row of zeros, which
        contributes nothing with ``fit_intercept=False``, represents a missing row.
    seed : int, default=0
        Seed of the shared randomness.
    rounding : float, default=1e-9
        Relative excess over the sensitivity that is attributed to rounding.

    Raises
    ------
    AssertionError
        If the number of releases, their labels, shapes, declared sensitivities or noise differ,
        or if a distance exceeds its sensitivity.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import OperaLogisticRegression
    >>> from skdp.testing import replay_on_neighbour
    >>> X, y = np.linspace(-1.0, 1.0, 20)[:, None], np.arange(20) // 10
    >>> neighbour = X.copy()
    >>> neighbour[0] = 1.0  # one row is replaced
    >>> classifier = OperaLogisticRegression(epsilon=1.0, delta=1e-6, data_norm=1.0, classes=[0, 1])
    >>> 0.0 < replay_on_neighbour(classifier, X, y, neighbour, y).largest_ratio <= 1.0
    True
    """
    recorded = _fit(estimator, X, y, seed, None)
    replayed = _fit(estimator, X_neighbour, y_neighbour, seed, recorded)
    return compare_releases(recorded.releases, replayed.releases, rounding)


def _fit(estimator: Any, X: Any, y: Any, seed: int, replayed: ReleaseTrace | None) -> ReleaseTrace:
    model = clone(estimator)
    if "random_state" in model.get_params(deep=False):
        # Unlike frozen entropy, this is the same in every process.
        model.set_params(random_state=FrozenStream.from_seed(seed))
    return fit_frozen(model, X, y, seed=seed, replayed=replayed).trace


def compare_releases(
    recorded: Sequence[TracedRelease], replayed: Sequence[TracedRelease], rounding: float = 1e-9
) -> ReplayReport:
    """Compare the exact values of each release of a fit and of its replay on a neighbour."""
    if len(recorded) != len(replayed):
        raise AssertionError(
            f"{len(recorded)} releases on one data set, but {len(replayed)} on the other: the "
            "control flow depends on private rows."
        )
    distances, sensitivities = [], []
    for number, (one, other) in enumerate(zip(recorded, replayed, strict=True)):
        declared, again = (
            (r.label, r.value.shape, r.value.dtype, r.sensitivity, r.sigma, r.norm)
            for r in (one, other)
        )
        if declared != again:
            raise AssertionError(
                f"Release {number} is declared differently on the neighbour: {declared}, {again}. "
                "Label, shape, type, sensitivity and scale may depend only on public numbers."
            )
        distance = float(np.linalg.norm((one.value - other.value).ravel(), one.norm))
        # A distance of NaN fails too.
        if not distance <= one.sensitivity * (1.0 + rounding):
            raise AssertionError(
                f"Release {number} ({one.label}) moved by {distance:.6g}, more than its declared "
                f"sensitivity {one.sensitivity:.6g}."
            )
        distances.append(distance)
        sensitivities.append(one.sensitivity)
    return ReplayReport(np.array(distances), np.array(sensitivities))


_BY_IDENTITY = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, np.ufunc)
_UNCOMPARED = (type(threading.Lock()), type(threading.RLock()), weakref.ref)

Seen = dict[tuple[int, int], tuple[Any, Any]]


def differences(one: Any, other: Any, path: str = "", seen: Seen | None = None) -> list[str]:
    """Return the paths of all reachable differences."""
    seen = {} if seen is None else seen
    if one is other or (id(one), id(other)) in seen or isinstance(one, _UNCOMPARED):
        return []
    if type(one) is not type(other):
        return [f"{path}: {type(one).__name__}, {type(other).__name__}"]
    # Compared objects must stay alive, or their ids could be reused.
    seen[id(one), id(other)] = one, other
    if isinstance(one, _BY_IDENTITY):
        return [f"{path}: {one}, {other}"]
    if isinstance(one, types.MethodType):
        return differences(one.__self__, other.__self__, f"{path}.__self__", seen)
    if isinstance(one, np.ndarray):
        return _of_arrays(one, other, path, seen)
    if type(one).__module__.startswith("pandas.") and hasattr(one, "equals"):
        return [] if one.equals(other) else [f"{path}: frames"]
    if isinstance(one, Mapping):
        found = differences(list(one), list(other), f"{path}.keys", seen)
        return found or _of_items(one.values(), other.values(), one, path, seen)
    if isinstance(one, Set):
        return [] if one == other else [f"{path}: {one}, {other}"]
    if isinstance(one, list | tuple):
        if len(one) != len(other):
            return [f"{path}: lengths {len(one)}, {len(other)}"]
        return _of_items(one, other, range(len(one)), path, seen)
    states = [_state(value) for value in (one, other)]
    if states[0] is None:
        return [] if repr(one) == repr(other) else [f"{path}: {one!r}, {other!r}"]
    return differences(states[0], states[1], path, seen)


def _of_items(
    ones: Iterable[Any], others: Iterable[Any], names: Iterable[Any], path: str, seen: Seen
) -> list[str]:
    pairs = zip(names, ones, others, strict=True)
    return [text for name, a, b in pairs for text in differences(a, b, f"{path}.{name}", seen)]


def _of_arrays(one: np.ndarray, other: np.ndarray, path: str, seen: Seen) -> list[str]:
    if one.dtype != other.dtype or one.shape != other.shape:
        return [f"{path}: {one.dtype} {one.shape}, {other.dtype} {other.shape}"]
    if one.dtype == object:
        return _of_items(one.ravel().tolist(), other.ravel().tolist(), range(one.size), path, seen)
    return [] if one.tobytes() == other.tobytes() else [f"{path}: values"]


def _state(value: Any) -> Any:
    """Return the contents of an object, or None for a plain value."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return None
    if isinstance(value, np.random.RandomState):
        return value.get_state(legacy=True)
    held = dict(vars(value)) if hasattr(value, "__dict__") else {}
    for cls in type(value).__mro__:
        slots = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                held[name] = getattr(value, name)
    if held or sparse.issparse(value):
        return held
    try:  # objects of compiled classes
        return value.__reduce_ex__(4)[1:3]
    except TypeError:
        return None
