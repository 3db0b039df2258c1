"""A bar of how many runs are done, where somebody watches who may know their number."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from multiprocessing import current_process
from typing import Any

from skdp.silence import is_heard

# One bar at a time: a search that is audited shows none of its own.
_turn = threading.Lock()


@contextmanager
def shown(what: str, n_runs: int) -> Iterator[Callable[[int], None]]:
    """Show a bar, and yield what tells it how many of the runs are done.

    Their number must be public; nothing is shown of 0, which stands for one that is not.
    """
    if not n_runs or not _turn.acquire(blocking=False):
        yield lambda count: None
        return
    try:
        console = _watched_console()
        if console is None:
            yield lambda count: None
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

        columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        # What is printed meanwhile goes where it belongs, which may be a file; and of streams that
        # silence or another thread has put in place since, none would be put back.
        bars = Progress(
            *columns,
            console=console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        with bars as bar:
            task = bar.add_task(what, total=n_runs)
            yield lambda count: bar.update(task, completed=count)
    finally:
        _turn.release()


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
