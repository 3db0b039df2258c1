"""How runs go: silence around private ones, bars for public ones and files, who called them.

What a run says depends on rows, and how often it is said on the number of runs: both are private.
Streams, warnings and logging belong to the whole process, so that they are silenced once, when the
first thread asks, and given back when the last one is done.
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
    """Who is silenced: the threads of runs, and all that started since the first run."""

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
        """Let this thread be heard, as it announces what is public."""
        me = threading.current_thread()
        with self._lock:
            if self._depth == 1:
                # No run is going on here: a display may have started its threads meanwhile.
                self._heard.update(threading.enumerate())
            self._heard.add(me)
        try:
            yield
        finally:
            self._heard.discard(me)

    def _install(self) -> None:
        # Recording holds also where a step turns warnings on again for itself.
        self._stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("ignore")
        self._stack.callback(logging.disable, logging.root.manager.disable)
        logging.disable(sys.maxsize)
        # How far steps have drawn from the generators of the process would tell how many ran.
        generator = check_random_state(None)
        self._stack.callback(generator.set_state, generator.get_state())
        self._stack.callback(random.setstate, random.getstate())
        for redirect, stream in ((redirect_stdout, sys.stdout), (redirect_stderr, sys.stderr)):
            # A display that started during another search may have put its gate back.
            if stream is not None and not isinstance(stream, _Gate):
                self._stack.enter_context(redirect(_Gate(stream)))


class _Gate:
    """A standard stream that passes on only what threads outside of runs write."""

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


# One bar at a time: a search that is audited shows none of its own.
_turn = threading.Lock()


@contextmanager
def shown(what: str, n_parts: int | None) -> Iterator[Callable[[int], None]]:
    """Show a bar, and yield what tells it how many parts of a work are done.

    Their number must be public. Of None, a bar shows that work goes on, and of 0 there is none:
    where even that it does is private.
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
        # What is printed meanwhile goes where it belongs, which may be a file; and of streams that
        # silence or another thread has put in place since, none would be put back.
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
    """Show what share of a table's rows has been read; their number may be private."""
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


# Between a user's line and a private fit lie frames of these, and fits of users' own estimators.
_LIBRARIES = ("skdp", "sklearn", "imblearn", "joblib")
# Where a call of these ends, a pool began it, and no line of a user's.
_POOLS = ("multiprocessing", "concurrent", "threading", "distributed")
# Runs of these are of no fit that is published, or speak for themselves.
_OWN_RUNS = ("skdp.audit", "skdp.testing", "skdp.model_selection")
# Functions of scikit-learn that fit, and return what nobody has put noise on.
_SCORING = (
    *("cross_validate", "cross_val_predict", "learning_curve", "validation_curve"),
    "permutation_test_score",
)
# By the object that a line has called: from where, and what was said.
_said: WeakKeyDictionary[Any, set[Any]] = WeakKeyDictionary()


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _is_fit_of_users(frame: FrameType) -> bool:
    """Tell whether a frame is the fit of an estimator that a library does not know."""
    if not frame.f_code.co_name.startswith("fit"):  # else locals of a user's would be kept
        return False
    return hasattr(type(object_of(frame)), "get_params")  # of which no code is run


def frames_of_libraries() -> list[FrameType]:
    """Return the frames between a user's line and the caller, the nearest first."""
    frame: FrameType | None = sys._getframe(1)
    frames = []
    while frame is not None and (_package(frame) in _LIBRARIES or _is_fit_of_users(frame)):
        frames.append(frame)
        frame = frame.f_back
    return frames


def frames_to_the_user() -> int:
    """Return how far above its caller the line lies that called the library, or scikit-learn."""
    return len(frames_of_libraries())


def object_of(frame: FrameType) -> Any:
    """Return the object whose public method a frame is; None if it is none's."""
    # To ask a frame for its locals keeps them as long as it runs: inner ones hand tables on.
    code = frame.f_code
    public = not code.co_name.startswith("_") or code.co_name == "__call__"
    return frame.f_locals.get("self") if public and code.co_varnames[:1] == ("self",) else None


class Caller(NamedTuple):
    """What a user's line has called that leads to a private fit: an object, a function's name."""

    called: Any
    rows: Any = None  # as they were given to it
    method: str = ""
    has_ids: bool = False  # whether it was given ids, for itself or a step


def _has_ids(frame: FrameType) -> bool:
    """Tell whether a function was given ids; they are not looked at."""
    given = frame.f_locals
    more = [given.get(name) for name in ("params", "fit_params")]
    named = {key: own for each in more if isinstance(each, dict) for key, own in each.items()}
    own = [value for key, value in named.items() if f"__{key}".endswith("__groups")]
    return any(value is not None for value in (given.get("groups"), *own))


def callers_of(release: Any) -> list[Caller]:
    """Return what lies between a private fit and the user's line, the nearest first.

    That is all that a step can know of the pipeline, search or ensemble that fits it.
    """
    found = []
    for frame in frames_of_libraries():
        called = object_of(frame)
        if called is release:  # which may be a private search
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
    # Others call these functions as well, and are judged by themselves.
    return [each for each in found if not isinstance(each.called, str) or each is found[-1]]


def warn_once(text: str) -> None:
    """Warn at the line of the user's that led here, once however many fits it leads to.

    Workers say nothing: each would say it again.
    """
    frames = frames_of_libraries()
    user = frames[-1].f_back
    if user is None or _package(user) in _POOLS:
        return
    called = next((each for each in map(object_of, reversed(frames)) if each is not None), None)
    said: set[Any] = set()
    with suppress(TypeError):  # what cannot be remembered is said each time
        said = _said.setdefault(called, said)
    if (place := (user.f_code, user.f_lasti, text)) not in said:
        warnings.warn(text, PrivacyWarning, stacklevel=len(frames) + 1)
        said.add(place)  # not where the warning is an error
