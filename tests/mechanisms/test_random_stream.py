"""Random streams: independence, reproducibility and the distribution of the normals."""

import mpmath
import numpy as np
import pytest
from scipy import stats

from skdp.mechanisms import GaussianMechanism, RandomStream, resolve_random_state
from skdp.testing import check_noise


def test_streams_without_seed_differ():
    one, other = (RandomStream.from_entropy().words(4) for _ in range(2))
    assert not np.array_equal(one, other)
    assert not RandomStream.from_entropy().seeded


def test_seed_and_context_determine_the_stream():
    first = RandomStream.from_seed(3, b"data").words(8)
    assert np.array_equal(first, RandomStream.from_seed(3, b"data").words(8))
    assert not np.array_equal(first, RandomStream.from_seed(3, b"other").words(8))
    assert not np.array_equal(first, RandomStream.from_seed(4, b"data").words(8))
    # The boundary between seed and context is part of the digest.
    assert not np.array_equal(
        RandomStream.from_seed(b"ab", b"c").words(2), RandomStream.from_seed(b"a", b"bc").words(2)
    )


def test_children_are_independent_and_repeatable():
    parent = RandomStream.from_seed(0)
    noise, lots = parent.spawn("noise"), parent.spawn("lots")
    a, b, c = noise.words(1000), lots.words(1000), parent.words(1000)
    assert np.array_equal(a, RandomStream.from_seed(0).spawn("noise").words(1000))
    for x, y in ((a, b), (a, c), (b, c)):
        assert not np.intersect1d(x, y).size


def test_uniforms_are_uniform_and_open():
    u = RandomStream.from_seed(1).uniform(200_000)
    assert 0.0 < u.min() and u.max() < 1.0
    check_noise(u, stats.uniform())


class Prescribed(RandomStream):
    """Hands out given words, then the true ones."""

    __slots__ = ("waiting",)

    def __init__(self, *words):
        super().__init__(bytes(32), seeded=True)
        self.waiting = list(words)

    def words(self, count):
        given = [self.waiting.pop(0) for _ in range(min(count, len(self.waiting)))]
        rest = super().words(count - len(given)) if count > len(given) else np.zeros(0, np.uint64)
        return np.concatenate([np.array(given, dtype=np.uint64), rest])


@pytest.mark.parametrize("zeros", [1, 2, 5, 14])
def test_tails_go_on_where_the_first_word_is_nearly_zero(zeros):
    words = [0] * zeros + [3 << 62]
    with mpmath.workdps(330):
        # The first word lends the tail probability 63 bits, after a sign.
        tail = mpmath.mpf(3) / 4 * mpmath.mpf(2) ** (-64 * zeros)
        exponential = Prescribed(1, *words[1:]).exponential(1)[0]
        assert abs(exponential / -mpmath.log(tail) - 1) < 1e-15
        assert abs(Prescribed(*words).exponential(1)[0] / tail - 1) < 1e-15
        assert abs(Prescribed(0, *words).laplace(1)[0] / -tail - 1) < 1e-15
        uniform = Prescribed(*words).uniform(1)[0]
        assert abs(uniform / (mpmath.mpf(3) / 4 * mpmath.mpf(2) ** (12 - 64 * zeros)) - 1) < 1e-15


def test_tails_are_right_where_they_are_drawn_anew():
    """Given a first word below 2**11 the bits behind it are used as they come."""
    stream = Prescribed(*np.arange(0, 4096, 2).tolist())
    tails = stream.exponential(2048) * 2.0**64
    parts = tails - np.arange(2048)
    check_noise(parts, stats.uniform())


@pytest.mark.parametrize("scale", [0.3, 1.0, 40.0])
def test_normals_have_the_right_scale_and_no_other(scale):
    mechanism = GaussianMechanism(
        sensitivity=1.0, sigma=scale, stream=RandomStream.from_seed(2), label="test"
    )
    draws = mechanism.noise((60_000, 4))
    check_noise(draws, stats.norm(scale=scale))
    for wrong in (0.98, 1.02):
        with pytest.raises(AssertionError, match="scale"):
            check_noise(draws, stats.norm(scale=wrong * scale))


def test_random_state_kinds():
    assert not resolve_random_state(None).seeded
    assert resolve_random_state(7).seeded
    assert resolve_random_state(np.int64(7)).seeded
    stream = RandomStream.from_entropy()
    uses = [resolve_random_state(stream) for _ in range(2)]
    assert not uses[0].seeded and resolve_random_state(RandomStream.from_seed(0)).seeded
    assert not np.intersect1d(uses[0].words(100), uses[1].words(100)).size
    legacy = np.random.RandomState(0)
    first, second = (resolve_random_state(legacy).words(2) for _ in range(2))
    assert not np.array_equal(first, second)
    for wrong in ("0", 1.5, True, np.random.default_rng(0)):
        with pytest.raises(ValueError, match="random_state"):
            resolve_random_state(wrong)


def test_key_length_is_checked():
    with pytest.raises(ValueError, match="32 bytes"):
        RandomStream(b"short", seeded=True)


def test_few_normals_at_a_time_are_those_of_a_large_draw():
    stream, large = (RandomStream.from_seed(0) for _ in range(2))
    few = np.concatenate([stream.standard_normal((2, 5)).ravel() for _ in range(40)])
    np.testing.assert_array_equal(few, large.standard_normal(400))
    # Those that wait are no part of a large draw, nor of the next one's.
    between = stream.standard_normal(200)
    rest = np.array([stream.standard_normal(()) for _ in range(300)])
    everything = np.concatenate([few, between, rest, stream.words(200).view(np.float64)])
    assert np.unique(everything).size == everything.size
    assert stream.standard_normal(0).shape == (0,)
