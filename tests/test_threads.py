"""Work that is shared out is done once, errors come back, and the BLAS gets its threads again."""

import os
import threading

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from skdp.threads import share_out


def blas_threads():
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return {library.num_threads for library in libraries}


@pytest.mark.parametrize("n_threads", [1, 3])
def test_every_part_is_done_once_with_one_thread_each(n_threads):
    done, seen = np.zeros(20, dtype=int), set()

    def work(part):
        done[part] += 1
        seen.update(blas_threads())

    with threadpool_limits(n_threads, user_api="blas"):
        before = blas_threads()
        share_out(work, 20)
        assert blas_threads() == before
    assert (done == 1).all() and seen == {1}


def test_an_error_comes_back_from_every_thread():
    def work(part):
        raise KeyError(part)

    with threadpool_limits(2, user_api="blas"), pytest.raises(KeyError):
        share_out(work, 4)


def test_concurrent_calls_leave_the_blas_as_it_was():
    with threadpool_limits(2, user_api="blas"):
        before, barrier = blas_threads(), threading.Barrier(3)

        def call():
            barrier.wait()
            for _ in range(50):
                share_out(lambda part: None, 3)

        threads = [threading.Thread(target=call) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert blas_threads() == before


def test_calls_within_calls_do_not_wait_for_each_other():
    """Every helping thread is busy with the part of a call when these parts call again."""
    callers, done = os.cpu_count(), []
    barrier = threading.Barrier(2 * callers)

    def work(part):
        barrier.wait(timeout=60.0)
        share_out(lambda inner: done.append((part, inner)), 2)

    with threadpool_limits(2, user_api="blas"):
        threads = [
            threading.Thread(target=share_out, args=(work, 2), daemon=True) for _ in range(callers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60.0)
    assert len(done) == 4 * callers and not any(thread.is_alive() for thread in threads)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own():
    with threadpool_limits(2, user_api="blas"):
        share_out(lambda part: None, 2)
        child = os.fork()
        if child == 0:
            done = []
            share_out(done.append, 4)
            os._exit(0 if sorted(done) == [0, 1, 2, 3] else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
