"""Distribute work among threads, with one BLAS thread each."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _blas() -> ThreadpoolController:
    """Return the controller of the threads of all BLAS libraries in this process."""
    import scipy.linalg  # noqa: F401  a library that is loaded later would not be held

    return ThreadpoolController().select(user_api="blas")


class _Shared:
    """The helper threads of one process, and the number of calls that limit the BLAS."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pool: ThreadPoolExecutor | None = None
        self.users = 0
        self.n_threads = 1
        self.limits: object = None


_shared = _Shared()


def _forget_threads() -> None:
    """Forget threads and a lock that do not exist in a child process."""
    global _shared
    if _shared.limits is not None:
        _shared.limits.restore_original_limits()  # type: ignore[attr-defined]
    _shared = _Shared()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


@contextmanager
def one_blas_thread() -> Iterator[tuple[ThreadPoolExecutor | None, int]]:
    """Limit the BLAS to one thread until the last of several calls ends; also as a decorator.

    The number of BLAS threads would change last bits of results.
    """
    shared = _shared
    with shared.lock:
        if shared.users == 0:
            libraries = _blas().lib_controllers
            shared.n_threads = max((library.num_threads for library in libraries), default=1)
            shared.limits = _blas().limit(limits=1)
            if shared.n_threads > 1 and shared.pool is None:
                shared.pool = ThreadPoolExecutor(os.cpu_count(), "skdp")
        shared.users += 1
    try:
        yield shared.pool, shared.n_threads
    finally:
        with shared.lock:
            shared.users -= 1
            if shared.users == 0:
                shared.limits.restore_original_limits()  # type: ignore[attr-defined]
                shared.limits = None


def share_out(work: Callable[[int], None], n_parts: int) -> None:
    """Call ``work(part)`` for each part, on the number of threads allowed for the BLAS.

    The assignment of parts to threads is arbitrary; results must not depend on it.
    """
    with one_blas_thread() as (pool, n_threads):
        parts = iter(range(n_parts))
        turn = threading.Lock()

        def take_parts() -> None:
            while True:
                with turn:
                    part = next(parts, None)
                if part is None:
                    return
                work(part)

        helpers = min(n_threads, n_parts) - 1
        others = [pool.submit(take_parts) for _ in range(helpers)] if pool and helpers > 0 else []
        try:
            take_parts()
        finally:
            # Do not wait for calls that have not begun: all threads may be waiting elsewhere.
            begun = [other for other in others if not other.cancel()]
            for other in begun:
                other.exception()  # waits
        for other in begun:
            other.result()
