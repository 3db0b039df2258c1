"""Fits under frozen noise, and all that they say aloud."""

from __future__ import annotations

import itertools
import logging
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any, NamedTuple, Self
from unittest import mock

import numpy as np
from sklearn.base import clone

from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.trace import ReleaseTrace, active_trace, record_releases

_one_at_a_time = threading.RLock()


class FrozenStream(RandomStream):
    """A seeded stream that forgets the table and the parameters it is used with.

    Build one with ``FrozenStream.from_seed(seed)``. Fits that are given one each have the same
    noise whatever they are fitted on, which is good for comparing them in tests, and never for a
    release.

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
    """A fit: what it left behind, what it released, the error that ended it, and what it said."""

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
    """Fit an object to rows, targets and ids; what it draws without a seed follows from `seed`."""
    error = None
    with _freeze(seed), record_releases(replayed) as trace:
        try:
            model.fit(*table[:2], **dict(zip(("groups",), table[2:], strict=False)))
        except expected as caught:
            error = caught
    return Run(model, trace, error)


def fit_both(template: Any, one: Any, other: Any) -> list[Any]:
    """Fit clones on two tables; both draw the same randomness and make the same releases."""
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
    """Lend numpy's and scikit-learn's generator, of which frozen distributions keep copies."""
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002


@contextmanager
def _freeze(seed: int) -> Iterator[None]:
    """Fix the keys that take the place of entropy, in this thread's recorded fits and no others."""
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
    """Keep warnings, log records and printed lines to oneself."""
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
        root.setLevel(1)  # nothing is filtered where no level is set
        try:
            yield said
        finally:
            root.setLevel(level)
    said += [("warning", each.category.__name__, str(each.message)) for each in caught]
    said += [("printed", text.getvalue()) for text in (printed, complained) if text.getvalue()]
