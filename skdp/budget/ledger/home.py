"""Charges by Dask's workers, decided in the process that has the ledger.

A budget that is pickled next to a Dask client names that process as the home of its ledger. Workers
send their requests there through the cluster's scheduler, as events that only the clients of that
process receive, and wait for the answer.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import queue
import sys
import threading
import time
import uuid
import weakref
from collections.abc import Callable
from typing import Any

from skdp.exceptions import LedgerError, LedgerUnreachableError

_AGAIN_SECONDS = 5.0  # after which a request without an answer is repeated
_SILENCE_SECONDS = 60.0  # after which a silent home is given up
_MOST_ANSWERS = 10_000

_process = uuid.uuid4().hex
_inherited = False  # whether this is a fork, in which the threads of its parent's clients are gone
_listening: weakref.WeakSet[Any] = weakref.WeakSet()
# Requests of this process that wait, and those that it received, each with a list of its answer. A
# repeated request is not carried out again.
_waiting: dict[str, queue.SimpleQueue[bytes | None]] = {}
_answers: dict[str, list[bytes | None]] = {}


def name_home(known: str | None) -> str | None:
    """Return the home of the ledger of a budget being pickled, if it has one."""
    client = _client(of_worker=False)
    if client is None:
        return known
    _listen(client)
    return _own_name()


def at_home(method: Callable[..., Any]) -> Callable[..., Any]:
    """Run a method of a desk in the process that has its ledger, if a worker calls it."""

    @functools.wraps(method)
    def call(desk: Any, *arguments: Any, **options: Any) -> Any:
        client = None if desk.home in (None, _own_name()) else _client(of_worker=True)
        if client is None:
            return method(desk, *arguments, **options)
        return _ask(client, desk, functools.partial(call, desk, *arguments, **options))

    return call


def _leave_behind() -> None:
    global _inherited
    _inherited = "distributed" in sys.modules


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_behind)


def _own_name() -> str:
    return f"skdp-{_process}-{os.getpid()}"  # a fork is another process


def _client(*, of_worker: bool) -> Any:
    """Return the Dask client of this process if it is a worker's, or if it is not."""
    distributed: Any = None if _inherited else sys.modules.get("distributed")
    with contextlib.suppress(ValueError, AttributeError):  # no client, or no distributed
        client = distributed.get_client()
        return client if client.id.startswith("Client-worker-") is of_worker else None


def _listen(client: Any) -> None:
    if client not in _listening:
        client.subscribe_topic(_own_name(), functools.partial(_hear, weakref.ref(client)))
        _listening.add(client)


def _send(client: Any, home: str, message: dict[str, Any]) -> None:
    client.loop.add_callback(client.log_event, home, {**message, "from": _own_name()})


def _hear(client: Any, event: tuple[float, dict[str, Any]]) -> None:
    """Handle a request or an answer; a client's loop must not wait for a charge."""
    message: dict[str, Any] = event[1]
    key = message["key"]
    if "call" not in message:
        if key in _waiting:
            _waiting[key].put(message["answer"])
        return
    new: list[bytes | None] = [None]
    answer = _answers.setdefault(key, new)
    _send(client(), message["from"], {"key": key, "answer": answer[0]})
    if answer is new:
        threading.Thread(target=_serve, args=(client(), message, answer), daemon=True).start()


def _serve(client: Any, message: dict[str, Any], answer: list[bytes | None]) -> None:
    try:
        found = pickle.dumps((True, pickle.loads(message["call"])()))
    except Exception as error:  # raised by the caller
        found = pickle.dumps((False, LedgerError(f"{type(error).__name__}: {error}")))
        with contextlib.suppress(Exception):
            found = pickle.dumps((False, error))
    answer[0] = found
    _send(client, message["from"], {"key": message["key"], "answer": answer[0]})
    while len(_answers) > _MOST_ANSWERS:
        _answers.pop(next(iter(_answers)))


def _ask(client: Any, desk: Any, call: Callable[[], Any]) -> Any:
    """Run a call in the home of a ledger; return its result or raise its error."""
    _listen(client)
    message: dict[str, Any] = {"key": uuid.uuid4().hex, "call": pickle.dumps(call)}
    answers = _waiting[message["key"]] = queue.SimpleQueue()
    heard = time.monotonic()
    try:
        while time.monotonic() < heard + _SILENCE_SECONDS:
            _send(client, desk.home, message)
            again = time.monotonic() + _AGAIN_SECONDS
            while (left := again - time.monotonic()) > 0:
                with contextlib.suppress(queue.Empty):
                    answer = answers.get(timeout=left)
                    heard = time.monotonic()
                    if answer is not None:
                        well, found = pickle.loads(answer)
                        if well:
                            return found
                        raise found
    finally:
        del _waiting[message["key"]]
    raise LedgerUnreachableError(
        f"The process with the ledger {desk.file.where} did not answer over the Dask cluster. "
        "Check whether its client has ended. The charge may have been recorded; no row was read. A "
        "ledger on a server needs no such process."
    )
