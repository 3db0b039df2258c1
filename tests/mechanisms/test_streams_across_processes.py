"""A forked process draws no noise of its parent, unless one seed and one table ask for it."""

import copy
import os
import pickle
import signal
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support import rows
from threadpoolctl import threadpool_limits

from skdp import OperaLogisticRegression
from skdp.mechanisms import RandomStream, laplace_mechanism, resolve_random_state
from skdp.model_selection._runs import FitStream

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

KINDS = {
    "none": lambda: None,
    "int": lambda: 7,
    "legacy": lambda: np.random.RandomState(7),
    "entropy": RandomStream.from_entropy,
    "child of entropy": lambda: RandomStream.from_entropy().spawn("child"),
    "fit stream": lambda: FitStream(os.urandom(32), seeded=False),
    "seeded": lambda: RandomStream.from_seed(7),
}
SEEDED = ("int", "legacy", "seeded")


def in_a_fork(work):
    """Return the bytes that `work` returns in a forked process."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(600)
            os.write(writing, work())
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return answer


def first_bytes(random_state, table):
    return resolve_random_state(random_state, table).words(4).tobytes()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("table", [b"same", b"other"])
def test_a_fork_shares_noise_only_of_one_seed_and_one_table(kind, table):
    state = KINDS[kind]()
    assert resolve_random_state(KINDS[kind]()).seeded == (kind in SEEDED)
    child = in_a_fork(lambda: first_bytes(state, table))
    mine = first_bytes(state, b"same")
    assert len(child) == len(mine) == 32
    assert (child == mine) == (kind in SEEDED and table == b"same")


def one_word(stream):
    """Return a word that waits in the stream with others."""
    return np.array([stream.integer(2**63)])


@pytest.mark.parametrize(
    "use", [lambda s: s.words(4), lambda s: s.spawn("noise").words(4), one_word]
)
def test_forks_of_a_stream_in_use_go_their_own_ways(use):
    stream = RandomStream.from_entropy()
    stream.words(3), one_word(stream)
    draws = [in_a_fork(lambda: use(stream).tobytes()) for _ in range(2)]
    grandchild = in_a_fork(lambda: in_a_fork(lambda: use(stream).tobytes()))
    assert len({*draws, grandchild, use(stream).tobytes()}) == 4


def test_children_of_one_label_are_alike_within_a_process():
    stream = RandomStream.from_entropy()
    first, second = (stream.spawn("lots").words(4).tobytes() for _ in range(2))
    assert first == second


def test_a_fork_in_the_middle_of_a_draw_does_not_hang():
    stream, done = RandomStream.from_entropy(), threading.Event()

    def draw():
        while not done.is_set():
            stream.words(1)

    threads = [threading.Thread(target=draw) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        draws = {in_a_fork(lambda: stream.words(4).tobytes()) for _ in range(5)}
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert len(draws) == 5


@pytest.mark.parametrize("use", [lambda s: s.words(1), one_word])
def test_threads_never_draw_the_same(use):
    stream, drawn = RandomStream.from_seed(1), []

    def draw():
        drawn.extend(use(stream)[0] for _ in range(2000))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == 8000


def test_large_draws_at_once_and_in_forks_share_no_word():
    """Each is shared out among threads; two of 800,000 words are equal at odds of 2e-8."""
    stream, count = RandomStream.from_entropy(), 100_000
    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(3) as pool:
        drawn = list(pool.map(stream.words, [count] * 6))
    drawn += [stream.words(count), np.frombuffer(in_a_fork(lambda: tail(stream)), np.uint64)]
    assert np.unique(np.concatenate(drawn)).size == 7 * count + 4000


def tail(stream):
    """Return the end of a large draw: as much as a pipe holds."""
    return stream.words(100_000)[-4000:].tobytes()


@pytest.mark.parametrize("make_copy", [copy.copy, copy.deepcopy, pickle.dumps])
def test_streams_refuse_to_be_copied(make_copy):
    with pytest.raises(TypeError, match="cannot be pickled"):
        make_copy(RandomStream.from_entropy())


def test_fits_in_parent_and_child_with_one_stream_share_no_noise():
    X, y = rows()
    model = OperaLogisticRegression(random_state=RandomStream.from_entropy())
    child = in_a_fork(lambda: model.fit(X, y).coef_.tobytes())
    assert child != model.fit(X, y).coef_.tobytes() and not model.privacy_spent_.seeded


def test_one_seeded_stream_on_two_tables_gives_two_noises():
    values = [0.0, 1.0, 0.0]
    noise = [
        laplace_mechanism(v, sensitivity=1.0, epsilon=1.0, random_state=RandomStream.from_seed(3))
        - v
        for v in values
    ]
    assert noise[0] == noise[2] and abs(noise[0] - noise[1]) > 1e-6
