"""How runs go: silence around private ones, bars for public ones and for tables in files.

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
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from importlib.util import find_spec
from multiprocessing import current_process
from typing import Any

import numpy as np
from sklearn.utils import check_random_state


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
