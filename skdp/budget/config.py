"""Settings of the library, and their transfer to descendant processes.

An environment variable reaches only processes started later, and joblib reuses its workers. The
variable therefore names a file for each process and its ancestors, with the current settings. The
file's folder belongs to this user; no other user can write or replace the file.
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
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

_VARIABLE = "SKDP_NOTICES"
_numbers = itertools.count()
# By number: topic and value of a notice, and the notice that it hides.
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
        _ancestors = ["\0"]  # unreadable
    folder = ""  # without space for temporary files, `post` raises
    with contextlib.suppress(OSError):
        folder = tempfile.gettempdir()
    _file = Path(folder, f"skdp-{uuid.uuid4().hex}", "notices.json")
    os.environ[_VARIABLE] = json.dumps([str(_file), *_ancestors])


_begin()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin)


def post(topic: str, value: Any, hides: int | None = None) -> int:
    """Post a notice for all descendants; return its number for `withdraw`."""
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
    """Withdraw a notice of this process, if it is still posted."""
    with _lock:
        if _posted.pop(number, None) is not None:
            _publish()


def heard(topic: str) -> list[Any]:
    """Return the current notices on a topic of the nearest ancestor that has any."""
    # None stands for a file that cannot be read.
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
                "processes started from here cannot learn about budgets and settings, since no "
                f"temporary file can be created ({error.strerror}); set TMPDIR to a usable folder",
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


_REQUIRE_BUDGET = "require_budget"
# Setting of the innermost context of this thread, and the process that entered it.
_here: ContextVar[tuple[int, bool] | None] = ContextVar("skdp_require_budget", default=None)
# Notices of this process that budgets are required: of `set_config`, and of open contexts.
_setting: int | None = None
_contexts: set[int] = set()


def get_config() -> dict[str, bool]:
    """Return the current settings.

    Returns
    -------
    dict
        ``"require_budget"``: whether a fit without a budget raises. An enclosing `config_context`
        of this thread determines it. Otherwise it is True if budgets are required by a context of
        any thread, by `set_config`, or by a process that started this one. The environment
        variable ``SKDP_REQUIRE_BUDGET`` (``1`` or ``true``) requires them too.

    Examples
    --------
    >>> import skdp
    >>> with skdp.config_context(require_budget=True):
    ...     skdp.get_config()
    {'require_budget': True}
    """
    here = _here.get()
    if here is not None and here[0] == os.getpid():
        return {_REQUIRE_BUDGET: here[1]}
    variable = os.environ.get("SKDP_REQUIRE_BUDGET", "").lower() in ("1", "true")
    own = variable or _setting is not None or bool(_contexts)
    return {_REQUIRE_BUDGET: own or bool(heard(_REQUIRE_BUDGET))}


def set_config(*, require_budget: bool | None = None) -> None:
    """Change settings for all threads of this process and for the processes started by it.

    Parameters
    ----------
    require_budget : bool or None, default=None
        Whether fits without a budget raise `BudgetRequiredError`. False undoes an earlier call, but
        not a requirement by the environment or a parent process. None changes nothing.

    Examples
    --------
    >>> import skdp
    >>> skdp.set_config(require_budget=True)
    >>> skdp.get_config()["require_budget"]
    True
    >>> skdp.set_config(require_budget=False)  # undo
    """
    global _setting
    if require_budget is None:
        return
    _check(require_budget)
    if _setting is not None:
        withdraw(_setting)
    _setting = post(_REQUIRE_BUDGET, True) if require_budget else None


@contextlib.contextmanager
def config_context(*, require_budget: bool | None = None) -> Iterator[None]:
    """Change settings for a block.

    Unlike in scikit-learn, a stricter setting applies to all threads and processes without their
    own settings, so that work started in the block stays strict. A laxer setting applies only to
    this thread.

    Parameters
    ----------
    require_budget : bool or None, default=None
        As for `set_config`.

    Yields
    ------
    None
        The previous settings are restored after the block.

    Examples
    --------
    >>> import skdp
    >>> classifier = skdp.OperaLogisticRegression(epsilon=1.0, data_norm=1.0, classes=[0, 1])
    >>> with skdp.config_context(require_budget=True):
    ...     classifier.fit([[0.1], [0.9]] * 50, [0, 1] * 50)
    Traceback (most recent call last):
        ...
    skdp.exceptions.BudgetRequiredError: OperaLogisticRegression.fit has no budget to charge, ...
    """
    if require_budget is None:
        yield
        return
    _check(require_budget)
    token = _here.set((os.getpid(), require_budget))
    notice = post(_REQUIRE_BUDGET, True) if require_budget else None
    try:
        if notice is not None:
            _contexts.add(notice)
        yield
    finally:
        _here.reset(token)
        if notice is not None:
            _contexts.discard(notice)
            withdraw(notice)


def _check(require_budget: bool) -> None:
    if not isinstance(require_budget, bool):
        raise TypeError(f"require_budget must be True, False or None, got {require_budget!r}.")
