"""What a process lets its descendants know, those included that it started long before.

An environment variable reaches only processes that are started later, and joblib reuses its own.
So the variable names a file for each process and its ancestors, and the file says what holds now.
The folder around it belongs to this user alone: nobody else can write or replace the file.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import os
import shutil
import tempfile
import threading
import uuid
from pathlib import Path
from typing import Any

_VARIABLE = "SKDP_NOTICES"
_numbers = itertools.count()
# By number: what a notice is about, what it says, and which one it hides while it is up.
_posted: dict[int, tuple[str, Any, int | None]] = {}
_lock = threading.RLock()  # a signal handler may post as well
_file = Path()
_ancestors: list[str] = []


def _begin() -> None:
    """Name a file of this process, before those of its ancestors, for its descendants."""
    global _ancestors, _file, _lock
    _posted.clear()
    _lock = threading.RLock()
    try:
        _ancestors = [str(name) for name in json.loads(os.environ.get(_VARIABLE) or "[]")]
    except (ValueError, TypeError):
        _ancestors = ["\0"]  # nobody knows what it says
    folder = ""  # where there is no room for temporary files at all, `post` says so
    with contextlib.suppress(OSError):
        folder = tempfile.gettempdir()
    _file = Path(folder, f"skdp-{uuid.uuid4().hex}", "notices.json")
    os.environ[_VARIABLE] = json.dumps([str(_file), *_ancestors])


_begin()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin)


def post(topic: str, value: Any, hides: int | None = None) -> int:
    """Let all descendants know; the number returned takes the notice down again."""
    number = next(_numbers)
    with _lock:
        _posted[number] = (topic, value, hides)
        try:
            _publish()
        except BaseException:
            _posted.pop(number, None)
            with contextlib.suppress(OSError):
                _publish()
            raise
    return number


def withdraw(number: int) -> None:
    """Take a notice down, if it is this process's own and not down already."""
    with _lock:
        if _posted.pop(number, None) is not None:
            _publish()


def heard(topic: str) -> list[Any]:
    """Return what the nearest ancestor that has posted anything on a topic says now."""
    # Where that cannot be read, there is something that nobody knows: None.
    for name in _ancestors:
        try:
            notices = json.loads(Path(name).read_text())
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError):
            return [None]
        if found := [value for about, value in notices if about == topic]:
            return found
    return []


def _publish() -> None:
    if not _posted:
        _file.unlink(missing_ok=True)
        return
    if not _file.parent.is_dir():
        try:
            _file.parent.mkdir(mode=0o700)
        except OSError as error:
            raise OSError(
                error.errno,
                "processes started from here could not be told of budgets and settings, as there "
                f"is no room for temporary files ({error.strerror}); give TMPDIR a folder",
                str(_file.parent),
            ) from error
    hidden = {hides for _, _, hides in _posted.values()}
    shown = [notice[:2] for number, notice in _posted.items() if number not in hidden]
    draft = _file.with_name(f"{next(_numbers)}.draft")
    draft.write_text(json.dumps(shown))
    os.replace(draft, _file)  # readers see all of it or the one before


@atexit.register
def _end() -> None:
    with _lock:
        _posted.clear()
        shutil.rmtree(_file.parent, ignore_errors=True)
