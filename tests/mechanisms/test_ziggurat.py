"""The normals of the ziggurat have the law that docs/security.md states, to the far tails.

Every test of a law also rejects a ziggurat that is wrong. All draws are seeded: no luck.
"""

import functools
import itertools
import math

import mpmath
import numpy as np
import pytest
from chacha import plain_block
from scipy import stats
from scipy.special import log_ndtr, ndtr
from threadpoolctl import threadpool_limits

from skdp.mechanisms import RandomStream, _uncompiled, _ziggurat, random_stream
from skdp.mechanisms._chacha import GROUP, LANES, first_block
from skdp.mechanisms._ziggurat import LAYERS, fill_normals, normals_of, ziggurat
from skdp.testing import check_noise

PLACES = 2**55
LEAP = 11.0 * math.log(2.0)


def density(x):
    return mpmath.exp(-x * x / 2)


def tail_area(x):
    return mpmath.sqrt(mpmath.pi / 2) * mpmath.erfc(x / mpmath.sqrt(2))


def edges_and_heights(start):
    """Return the layers that begin at a tail, and by how much their top misses that of the bell."""
    area = start * density(start) + tail_area(start)
    edges, heights = [area / density(start), start], [mpmath.mpf(0), density(start)]
    for _ in range(LAYERS - 2):
        heights.append(heights[-1] + area / edges[-1])
        edges.append(mpmath.sqrt(-2 * mpmath.log(heights[-1])))
    return edges, heights, heights[-1] + area / edges[-1] - 1


@functools.cache
def exact():
    with mpmath.workdps(60):
        start = mpmath.findroot(
            lambda x: edges_and_heights(x)[2], (3.65415288, 3.65415289), solver="anderson"
        )
        edges, heights, missed = edges_and_heights(start)
        assert abs(missed) < mpmath.mpf(10) ** -50
        return [*edges, mpmath.mpf(0)], [*heights, mpmath.mpf(1)]


def moved(shift):
    """Return the table of a ziggurat whose tail begins elsewhere."""
    with mpmath.workdps(50):
        start = mpmath.mpf(ziggurat().start) + shift
        area = start * density(start) + tail_area(start)
        return ziggurat(mpmath.nstr(start, 45), mpmath.nstr(area, 45))


def test_the_table_is_right_to_the_last_bit():
    table = ziggurat()
    with mpmath.workdps(60):
        edges, heights = exact()
        assert [float(edge) for edge in edges[:-1]] == (table.widths * PLACES).tolist()
        assert [float(height) for height in heights] == table.heights.tolist()
        inner = [mpmath.floor(b / a * PLACES) for a, b in itertools.pairwise(edges)]
        assert [int(each) for each in inner] == table.inner.tolist()
    assert float(edges[1]) == table.start


def worst_error(table):
    """Return the largest |log(drawn / wanted)| in units of its bound, (2 + x^2) 2^-49."""
    worst = []
    with mpmath.workdps(40):
        start = exact()[0][1]
        area = start * density(start) + tail_area(start)
        widths, heights = ([mpmath.mpf(x) for x in each.tolist()] for each in table[::2])
        # Draws of one layer a unit of length, so that the bell has height 1.
        layers = [area / (PLACES * width) for width in widths]
        for layer in range(1, LAYERS):
            low, high = heights[layer], heights[layer + 1]
            for share in (0.0, 0.3, 0.7, 0.999):
                place = table.inner.item(layer) + share * (PLACES - table.inner.item(layer))
                x = place * widths[layer]
                kept = min(1, max(0, (density(x) - low) / (high - low)))
                drawn = mpmath.fsum(layers[:layer]) + layers[layer] * kept
                worst.append(abs(mpmath.log(drawn / density(x))) / (2 + x * x))
        start, beyond = mpmath.mpf(table.start), 1 - mpmath.mpf(table.inner.item(0)) / PLACES
        worst.append(abs(mpmath.log(area * beyond / tail_area(start))) / (2 + start**2))
        return float(max(worst) * 2**49)


def test_the_density_of_the_table_is_normal_within_its_bound():
    assert worst_error(ziggurat()) < 0.15  # the rest is for the roundings of a draw
    for wrong in (1e-3, -1e-3, 1e-12):
        assert worst_error(moved(wrong)) > 100.0


def random_words(count, seed=0):
    return RandomStream.from_seed(seed).spawn("words").words(count).copy()


def resolve(words, table, seed=b"more"):
    """Return the normals of given first words; what more they need is random."""
    out, buffer = np.empty(words.size), np.empty(GROUP, dtype=np.uint64)
    normals_of(words, table, first_block(seed * 8, 0), buffer, GROUP, out)
    return out


def split(words):
    signed = words.view(np.int64) >> 8
    return (words & np.uint64(255)).astype(int), signed, np.where(signed < 0, ~signed, signed)


def test_inner_points_are_the_middles_of_their_places():
    words, table = random_words(100_000, 3), ziggurat()
    layers, signed, places = split(words)
    inner, x = places < table.inner[layers], (places + 0.5) * table.widths[layers]
    assert np.array_equal(resolve(words, table)[inner], np.where(signed < 0, -x, x)[inner])


def beyond_inner(layers, table, seed):
    """Return words of given layers that lie beyond their inner parts, of either sign."""
    words = random_words(layers.size, seed)
    inner = table.inner[layers]
    u = RandomStream.from_seed(seed).spawn("places").uniform(layers.size)
    places = inner + (u * (PLACES - inner)).astype(np.int64)
    negative = (words & np.uint64(1)).astype(bool)
    signed = np.where(negative, ~places, places)
    return (signed.view(np.uint64) << np.uint64(8)) | layers.astype(np.uint64)


def bernstein(excess, variance):
    """Return a bound on the p-values of sums of coins less their means."""
    return 2.0 * np.exp(-(excess**2) / 2.0 / (variance + np.abs(excess) / 3.0))


def wedge_p_value(table):
    """Test which points between two layers are kept, in each layer, low and high."""
    layers = np.repeat(np.arange(1, LAYERS), 1000)
    words = beyond_inner(layers, ziggurat(), 1)
    x = (split(words)[2] + 0.5) * ziggurat().widths[layers]
    kept = np.abs(resolve(words, table)) == x
    low, high = ziggurat().heights[layers], ziggurat().heights[layers + 1]
    chance = np.clip((np.exp(-0.5 * x * x) - low) / (high - low), 0.0, 1.0)
    p_values = []
    for group in (layers - 1, (chance < 0.4).astype(int)):
        excess = np.bincount(group, kept - chance)
        variance = np.bincount(group, chance * (1.0 - chance))
        p_values.append(len(excess) * bernstein(excess, variance).min())
    return 2.0 * min(p_values)


def test_what_lies_between_two_layers_is_kept_with_the_right_chance():
    table = ziggurat()
    assert wedge_p_value(table) > 1e-7
    untested = table._replace(inner=np.append(table.inner[0], np.full(LAYERS - 1, PLACES)))
    higher = table.heights + np.append(0.1 * np.diff(table.heights), 0.0)
    assert wedge_p_value(untested) < 1e-12
    assert wedge_p_value(table._replace(heights=higher)) < 1e-7


class Tail:
    """The law of a normal's size given that it is beyond a start."""

    def __init__(self, start):
        self.start = start

    def sf(self, x):
        return np.exp(log_ndtr(-np.maximum(x, self.start)) - log_ndtr(-self.start))

    def cdf(self, x):
        return 1.0 - self.sf(x)


def test_tails_have_the_normal_law():
    table = ziggurat()
    words = beyond_inner(np.zeros(300_000, dtype=int), table, 2)
    draws = resolve(words, table)
    assert np.array_equal(draws < 0.0, split(words)[1] < 0)
    check_noise(np.abs(draws), Tail(table.start))
    wrong = np.abs(resolve(words, table._replace(start=table.start + 0.01)))
    with pytest.raises(AssertionError):
        check_noise(wrong, Tail(table.start))


def far_tail(seed, shifts, coins, trials=8000):
    """Return ranks of tail draws whose exponentials begin with leading zeros, among their law."""
    table = ziggurat()
    word = beyond_inner(np.zeros(1, dtype=int), table, seed)
    source = random_words((trials + 1) * GROUP, seed).reshape(-1, GROUP)
    small, out = np.uint64(2**53 - 1), np.empty(1)
    found = []
    for buffer in source[:trials]:
        buffer[:shifts] &= small
        buffer[shifts + 1 : shifts + 1 + coins] &= small
        place = normals_of(word, table, first_block(bytes(32), 0), buffer, 0, out)
        if place == shifts + coins + 2:  # not drawn anew
            found.append(abs(out[0]))
    # Beyond the start at least `begin`; kept by a coin that cannot fail before its first leap.
    begin = shifts * LEAP / table.start
    t = begin + np.linspace(0.0, min(LEAP / table.start, 60.0 / begin), 200_001)
    spent = t * t / 2.0 - coins * LEAP
    kept = np.clip((np.exp(-np.maximum(spent, 0.0)) - 2.0**-11) / (1.0 - 2.0**-11), 0.0, 1.0)
    law = np.exp(-table.start * (t - begin)) * np.where(spent <= 0.0, 1.0, kept)
    mass = np.concatenate([[0.0], np.cumsum(law[1:] + law[:-1])])
    return np.array(found), np.interp(np.array(found) - table.start, t, mass / mass[-1])


@pytest.mark.parametrize(
    ("shifts", "coins", "reach"), [(2, 1, 7.8), (5, 7, 14.0), (12, 41, 28.6), (16, 73, 37.0)]
)
def test_tails_go_on_without_end(shifts, coins, reach):
    """The exact law of a tail draw, given how many leading zeros its two uniforms have."""
    draws, ranks = far_tail(shifts, shifts, coins)
    assert draws.size > 300 and draws.min() > reach
    check_noise(ranks, stats.uniform())
    # A tail that is cut.
    with pytest.raises(AssertionError):
        check_noise(ranks[ranks < 0.6], stats.uniform())


def moments_and_tails(draws):
    """Check moments to order 8 and both tails at 3 to 6 deviations, and signs beside sizes."""
    for order in range(1, 9):
        mean = math.prod(range(1, order, 2)) if order % 2 == 0 else 0.0
        variance = math.prod(range(1, 2 * order, 2)) - mean**2
        z = (np.mean(draws**order) - mean) * math.sqrt(draws.size / variance)
        assert abs(z) < 6.0, f"moment {order}"
    for side in (draws, -draws):
        for start in (3.0, 4.0, 5.0, 6.0):
            law = stats.binom(draws.size, ndtr(-start))
            beyond = np.count_nonzero(side > start)
            assert min(law.cdf(beyond), law.sf(beyond - 1)) > 1e-9, f"beyond {start}"
    ranks = (64.0 * (2.0 * ndtr(np.abs(draws)) - 1.0)).astype(int)
    table = np.array([np.bincount(ranks[draws > 0], minlength=64)[:64]])
    table = np.vstack([table, np.bincount(ranks[draws < 0], minlength=64)[:64]])
    assert stats.chi2_contingency(table).pvalue > 1e-8, "sign and size"


def check_all(draws):
    moments_and_tails(draws)
    check_noise(draws, stats.norm())


@pytest.mark.slow
def test_a_million_normals():
    draws = RandomStream.from_seed(5).standard_normal(1_000_000)
    check_all(draws)
    flat = ziggurat()
    flat = flat._replace(inner=np.append(flat.inner[0], np.full(LAYERS - 1, PLACES)))
    with pytest.raises(AssertionError):
        check_all(resolve(random_words(1_000_000), flat))
    with pytest.raises(AssertionError):
        moments_and_tails(np.where(draws < 3.9, draws, 0.0))
    with pytest.raises(AssertionError):
        moments_and_tails(draws + 0.02 * np.abs(draws) * (draws > 0))


def largest_correlation(parts):
    """Return the largest z-score of a pair of parts, as they are or one moved by a place."""
    moved = np.vstack([parts[:, 1:], parts[:, :-1]])
    pairs = np.corrcoef(moved)[np.triu_indices(len(moved), 1)]
    return np.abs(pairs).max() * math.sqrt(moved.shape[1])


def test_parts_that_are_shared_out_are_independent():
    """Of 7,381 pairs none is beyond 7, at odds of 2e-8; all draws are seeded."""
    with threadpool_limits(2, user_api="blas"):
        parts = RandomStream.from_seed(5).standard_normal((61, 2**14))
    assert largest_correlation(parts) < 7.0 and np.unique(parts).size == parts.size
    parts[7, 1:] += 0.1 * parts[31, :-1]
    assert largest_correlation(parts) > 10.0


@pytest.mark.slow
def test_ten_million_normals():
    check_all(RandomStream.from_seed(6).standard_normal(10_000_000))


def test_a_draw_is_made_of_the_blocks_of_two_nonces():
    """Words from nonce (part, 0, 0); what more they need from (part, 0, 1)."""
    key, part = bytes(range(32)), 3
    nonce = part.to_bytes(4, "little") + bytes(8)

    def lanes(nonce, first):
        blocks = b"".join(plain_block(key, first + lane, nonce) for lane in range(LANES))
        numbers = np.frombuffer(blocks, dtype="<u4").reshape(LANES, 16).T.ravel()
        return np.ascontiguousarray(numbers).astype(np.uint32).view(np.uint64)

    words = np.concatenate([lanes(nonce, LANES * group) for group in range(10)])
    buffer = np.concatenate([lanes(nonce[:8] + b"\1\0\0\0", LANES * group) for group in range(3)])
    size = 9 * GROUP + 11
    wanted, drawn = np.empty(size), np.empty(size)
    assert normals_of(words, ziggurat(), first_block(bytes(32), 0), buffer, 0, wanted) < buffer.size
    fill_normals(first_block(key, part), drawn)
    assert np.array_equal(drawn, wanted)


@pytest.mark.parametrize(("size", "part"), [(1, 0), (GROUP, 1), (20_000, 5)])
def test_draws_without_compiled_loops_are_the_same(size, part):
    found = []
    for generator in (_uncompiled, _ziggurat):
        state = first_block(bytes(range(32)), part)
        state[12] = 2**32 - 3 if part else 0  # the number of the block runs over
        drawn, words = np.empty(size), np.empty(3 * GROUP, dtype=np.uint64)
        generator.fill_words(state, words)
        generator.fill_normals(state.copy(), drawn)
        found.append((drawn, words, state))
    for plain, compiled in zip(*found, strict=True):
        assert np.array_equal(plain, compiled)


def test_many_draws_are_compiled(monkeypatch):
    monkeypatch.setattr(random_stream, "_compiled", [])
    monkeypatch.setattr(random_stream, "_drawn", 0)
    assert random_stream.load_generator(1000) is _uncompiled
    assert random_stream.load_generator(10**7) is _ziggurat is random_stream.load_generator(1)


@pytest.mark.parametrize("draw", ["words", "standard_normal", "uniform"])
def test_numbers_do_not_depend_on_threads(draw):
    count = 100_000
    found = []
    for threads in (1, 3):
        with threadpool_limits(threads, user_api="blas"):
            found.append(getattr(RandomStream.from_seed(4), draw)(count))
    assert np.array_equal(*found)
    assert np.unique(found[0]).size == count
