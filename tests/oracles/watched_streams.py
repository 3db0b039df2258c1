"""Every draw of random numbers in a block, by what alone decides it."""

import threading
from collections import Counter
from contextlib import contextmanager
from unittest import mock

from skdp.mechanisms import RandomStream, _chacha

_TEST_OF_LOOPS = bytes(32)  # the key with which loops are tried when they are loaded


class Draws:
    """Keys of draws, and numbers that were taken one by one from a draw that was kept."""

    def __init__(self):
        self.keys, self.singles, self.lock = [], [], threading.Lock()

    def repeated(self):
        """Return what was drawn twice: two draws of one key are the same numbers."""
        counts = Counter(self.keys)
        counts.update(self.singles)
        return [drawn for drawn, count in counts.items() if count > 1]


@contextmanager
def watched_draws():
    """Note what threads of this process draw."""
    draws, first_block, take = Draws(), _chacha.first_block, RandomStream._next

    def noted_block(key, part):
        if key != _TEST_OF_LOOPS:
            with draws.lock:
                draws.keys.append((key, part))
        return first_block(key, part)

    def noted_next(stream, kind, draw):
        # Of 64 bits each: none comes twice by chance.
        number = take(stream, kind, draw)
        with draws.lock:
            draws.singles.append((kind, number))
        return number

    with (
        mock.patch.object(_chacha, "first_block", noted_block),
        mock.patch.object(RandomStream, "_next", noted_next),
    ):
        yield draws


def draws_of_a_fit(estimator, X, y):
    """Fit, perhaps in a worker, and return keys."""
    with watched_draws() as draws:
        estimator.fit(X, y)
    return draws.keys, draws.repeated()
