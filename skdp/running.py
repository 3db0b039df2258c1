"""Silence around private runs, progress bars for public ones, and the callers of fits.

The output of a run depends on private rows, and its amount on a private number of runs. Streams,
warnings and logging belong to the entire process: they are silenced when the first thread begins,
and restored when the last one ends.
"""

from __future__ import annotations

import logging
import os
import random
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from importlib.util import find_spec
from multiprocessing import current_process
from types import FrameType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.utils import check_random_state

from skdp.exceptions import PrivacyWarning


class _Silence:
    """The silenced threads: those of runs, and all started since the first run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._stack = ExitStack()
        self._heard: set[threading.Thread] = set()

    def hears_this_thread(self) -> bool:
        return self._depth == 0 or threading.current_thread() in self._heard

    @contextmanager
    def around_runs(self) -> Iterator[None]:
        """Silence this thread and all new ones; warnings and logging everywhere."""
        me = threading.current_thread()
        with self._lock:
            if self._depth == 0:
                self._heard = set(threading.enumerate())
                self._install()
            self._depth += 1
            was_heard = me in self._heard
            self._heard.discard(me)
        try:
            with np.errstate(all="ignore"):
                yield
        finally:
            with self._lock:
                self._depth -= 1
                if was_heard:
                    self._heard.add(me)
                if self._depth == 0:
                    self._heard.clear()
                    self._stack.close()

    @contextmanager
    def lift_silence(self) -> Iterator[None]:
        """Allow output of this thread, which announces public information."""
        me = threading.current_thread()
        with self._lock:
            if self._depth == 1:
                # No other run is active: a display may have started its threads meanwhile.
                self._heard.update(threading.enumerate())
            self._heard.add(me)
        try:
            yield
        finally:
            self._heard.discard(me)

    def _install(self) -> None:
        # Recording also works if a step turns warnings on again.
        self._stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("ignore")
        self._stack.callback(logging.disable, logging.root.manager.disable)
        logging.disable(sys.maxsize)
        # The state of the global generators would reveal the number of runs.
        generator = check_random_state(None)
        self._stack.callback(generator.set_state, generator.get_state())
        self._stack.callback(random.setstate, random.getstate())
        for redirect, stream in ((redirect_stdout, sys.stdout), (redirect_stderr, sys.stderr)):
            # A display that started during another search may have restored its gate.
            if stream is not None and not isinstance(stream, _Gate):
                self._stack.enter_context(redirect(_Gate(stream)))


class _Gate:
    """A standard stream that drops output of threads in runs."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    @property
    def buffer(self) -> _Gate:
        return _Gate(self._stream.buffer)

    def write(self, text: Any) -> Any:
        return self._stream.write(text) if _SILENCE.hears_this_thread() else len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_SILENCE = _Silence()
around_runs, lift_silence = _SILENCE.around_runs, _SILENCE.lift_silence
is_heard = _SILENCE.hears_this_thread


# One bar at a time: an audited search shows none.
_turn = threading.Lock()


@contextmanager
def shown(what: str, n_parts: int | None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar, and yield a function to call with the number of finished parts.

    `n_parts` must be public. None shows only activity, and 0 shows nothing, if even activity is
    private.
    """
    if n_parts == 0 or not _turn.acquire(blocking=False):
        yield lambda count: None
        return
    try:
        console = _watched_console()
        if console is None:
            yield lambda count: None
            return
        from rich import progress

        columns: list[Any] = ["{task.description}", progress.BarColumn()]
        if n_parts is None:
            columns += [progress.TimeElapsedColumn()]
        else:
            columns += [progress.MofNCompleteColumn(), progress.TimeRemainingColumn()]
        # Output must not be redirected: it may go to a file, and streams that silence or another
        # thread has replaced meanwhile would not be restored.
        bars = progress.Progress(
            *columns,
            console=console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        with bars as bar:
            task = bar.add_task(what, total=n_parts)
            yield lambda count: bar.update(task, completed=count)
    finally:
        _turn.release()


@contextmanager
def shown_in_percent(what: str, n_rows: int) -> Iterator[Callable[[int], None]]:
    """Show the percentage of rows read; the number of rows may be private."""
    with shown(f"{what}, percent", 100) as done:
        yield lambda count: done(100 * min(count, n_rows) // max(n_rows, 1))


def _watched_console() -> Any:
    """Return rich's console of standard error if a terminal or a notebook shows it, else None."""
    on = os.environ.get("SKDP_PROGRESS", "1").lower() not in ("0", "false")
    # Workers share the terminal, and silenced runs must not be seen.
    if not on or not is_heard() or current_process().name != "MainProcess":
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    console = Console(stderr=True)
    if console.is_jupyter:
        return console if find_spec("ipywidgets") else None
    on_screen = sys.stderr is not None and sys.stderr.isatty()
    return console if on_screen and console.is_interactive else None


# Frames between a user's line and a private fit: these, and fits of custom estimators.
_LIBRARIES = ("skdp", "sklearn", "imblearn", "joblib")
# A call from these was made by a pool, not by a user's line.
_POOLS = ("multiprocessing", "concurrent", "threading", "distributed")
# Runs of these are not published, or are reported separately.
_OWN_RUNS = ("skdp.audit", "skdp.testing", "skdp.model_selection")
# Functions of scikit-learn that fit and return exact results.
_SCORING = (
    *("cross_validate", "cross_val_predict", "learning_curve", "validation_curve"),
    "permutation_test_score",
)
# By called object: place of the call and text of each warning.
_said: WeakKeyDictionary[Any, set[Any]] = WeakKeyDictionary()


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _is_fit_of_users(frame: FrameType) -> bool:
    """Return whether a frame is the fit of a custom estimator."""
    if not frame.f_code.co_name.startswith("fit"):  # else locals of users would be kept alive
        return False
    return hasattr(type(object_of(frame)), "get_params")  # runs no code of the object


def frames_of_libraries() -> list[FrameType]:
    """Return the frames between the caller and the user's line, the nearest first."""
    frame: FrameType | None = sys._getframe(1)
    frames = []
    while frame is not None and (_package(frame) in _LIBRARIES or _is_fit_of_users(frame)):
        frames.append(frame)
        frame = frame.f_back
    return frames


def frames_to_the_user() -> int:
    """Return the number of frames from the caller to the user's line."""
    return len(frames_of_libraries())


def object_of(frame: FrameType) -> Any:
    """Return the object of a frame that is a public method, else None."""
    # Reading a frame's locals keeps them alive while it runs, including tables.
    code = frame.f_code
    public = not code.co_name.startswith("_") or code.co_name == "__call__"
    return frame.f_locals.get("self") if public and code.co_varnames[:1] == ("self",) else None


class Caller(NamedTuple):
    """An object or function that a user's line called and that leads to a private fit."""

    called: Any
    rows: Any = None  # as passed to it
    method: str = ""
    has_ids: bool = False  # whether it received ids, for itself or a step


def _has_ids(frame: FrameType) -> bool:
    """Return whether a function received ids, without reading them."""
    given = frame.f_locals
    more = [given.get(name) for name in ("params", "fit_params")]
    named = {key: own for each in more if isinstance(each, dict) for key, own in each.items()}
    own = [value for key, value in named.items() if f"__{key}".endswith("__groups")]
    return any(value is not None for value in (given.get("groups"), *own))


def callers_of(release: Any) -> list[Caller]:
    """Return the callers between a private fit and the user's line, the nearest first.

    This is the only information of a step about the pipeline, search or ensemble that fits it.
    """
    found = []
    for frame in frames_of_libraries():
        called = object_of(frame)
        if called is release:  # it may be a private search
            continue
        if str(frame.f_globals.get("__name__")).startswith(_OWN_RUNS):
            return []
        if called is None and frame.f_code.co_name in _SCORING:
            found.append(Caller(frame.f_code.co_name, has_ids=_has_ids(frame)))
        if _package(frame) not in _LIBRARIES or not hasattr(called, "get_params"):
            continue
        if callable(getattr(called, "privacy_plan", None)):  # its fit is one release
            return []
        rows = frame.f_locals.get("X")
        found.append(Caller(called, rows, frame.f_code.co_name, _has_ids(frame)))
    # Other objects call these functions too, and are judged separately.
    return [each for each in found if not isinstance(each.called, str) or each is found[-1]]


def warn_once(text: str) -> None:
    """Warn at the user's line that led here, once for any number of fits.

    Workers do not warn, since each would repeat the warning.
    """
    frames = frames_of_libraries()
    user = frames[-1].f_back
    if user is None or _package(user) in _POOLS:
        return
    called = next((each for each in map(object_of, reversed(frames)) if each is not None), None)
    said: set[Any] = set()
    with suppress(TypeError):  # objects without weak references are warned of each time
        said = _said.setdefault(called, said)
    if (place := (user.f_code, user.f_lasti, text)) not in said:
        warnings.warn(text, PrivacyWarning, stacklevel=len(frames) + 1)
        said.add(place)  # not if the warning is raised as an error
