"""What a process lets its descendants know, those included that it started long before.

An environment variable reaches only processes that are started later, and joblib reuses its own.
So the variable names a file for each process and its ancestors, and the file says what holds now.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import os
import tempfile
import threading
import uuid
from pathlib import Path
from typing import Any

_VARIABLE = "SKDP_NOTICES"
_numbers = itertools.count()
_posted: dict[int, tuple[str, Any]] = {}
_lock = threading.Lock()
_file = Path()
_ancestors: list[str] = []


def _begin() -> None:
    """Name a file of this process, before those of its ancestors, for its descendants."""
    global _ancestors, _file, _lock
    _posted.clear()
    _lock = threading.Lock()
    _ancestors = [name for name in os.environ.get(_VARIABLE, "").split(os.pathsep) if name]
    folder = ""  # where there is no room for temporary files at all, `post` says so
    with contextlib.suppress(OSError):
        folder = tempfile.gettempdir()
    _file = Path(folder, f"skdp-notices-{uuid.uuid4().hex}.json")
    os.environ[_VARIABLE] = os.pathsep.join([str(_file), *_ancestors])


_begin()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin)


def post(topic: str, value: Any) -> int:
    """Let all descendants know; the number returned takes the notice down again."""
    number = next(_numbers)
    with _lock:
        _posted[number] = (topic, value)
        try:
            _publish()
        except OSError:
            del _posted[number]
            raise
    return number


def withdraw(number: int) -> None:
    """Take a notice down, if it is this process's own and not down already."""
    with _lock:
        if _posted.pop(number, None) is not None:
            _publish()


def heard(topic: str) -> list[Any]:
    """Return what the nearest ancestor that has posted anything on a topic says now."""
    for name in _ancestors:
        with contextlib.suppress(FileNotFoundError):
            notices = json.loads(Path(name).read_text())
            if found := [value for about, value in notices if about == topic]:
                return found
    return []


def _publish() -> None:
    if not _posted:
        _file.unlink(missing_ok=True)
        return
    draft = _file.with_suffix(".draft")
    handle = os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    with os.fdopen(handle, "w") as text:
        json.dump(list(_posted.values()), text)
    os.replace(draft, _file)  # readers see all of it or the one before


@atexit.register
def _end() -> None:
    with _lock:
        _posted.clear()
        _publish()
