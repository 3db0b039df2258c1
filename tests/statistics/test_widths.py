"""Intervals against noise that goes as far as it may: exact quantiles, and no draw is random."""

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from covering import pairs
from scipy import stats

from skdp.mechanisms import additive
from skdp.mechanisms.release import Release
from skdp.preprocessing import BooleanColumn, CategoricalColumn, NumericColumn, TableSchema
from skdp.statistics import (
    private_contingency_table,
    private_count,
    private_histogram,
    private_mean,
    private_quantile,
    private_table_one,
    private_top_k,
    private_variance,
)
from skdp.statistics.noise import UNIT

FAILURE = 0.2
LAWS = {"laplace": {"delta": 0.0}, "gaussian": {"delta": 1e-3, "mechanism": "gaussian"}}
SIGNS = [*itertools.product([-1, 1], repeat=3)]
ADJACENCIES = ["add-remove", "replace-one"]


@functools.cache
def farthest(kind, scale, together):
    """Return the least w that none of so many draws exceeds in size, but with that probability."""
    each = -math.expm1(math.log1p(-FAILURE) / together)
    if scale > 1e6:  # then the integers are as good as real numbers
        law = stats.laplace if kind == "laplace" else stats.norm
        return math.floor(law.isf(each / 2.0) * float(scale) * (1.0 - 1e-9))
    sizes = np.arange(1, 100_000) / float(scale)
    weights = np.exp(-sizes if kind == "laplace" else -0.5 * sizes**2)
    tails = 2.0 * np.append(weights[::-1].cumsum()[::-1], 0.0) / (1.0 + 2.0 * weights.sum())
    return int(np.argmax(tails <= each))


@pytest.fixture
def push(monkeypatch):
    """Return a function that lets all noise go as far as it may, in directions that are given."""

    def as_far(signs, together, beyond=0):
        def noise_of(kind):
            def draw(stream, scale, count):
                reach = farthest(kind, scale, together) + beyond
                return [int(sign) * reach for sign in itertools.islice(turns, count)]

            turns = itertools.cycle(signs)
            home = {"laplace": additive, "gaussian": additive}[kind]
            monkeypatch.setattr(home, f"discrete_{kind}s", draw)

        noise_of("laplace")
        noise_of("gaussian")

    return as_far


RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": RNG.beta(2.0, 3.0, 2000) * 100.0,
        "ward": RNG.choice(["A", "B", "C"], 2000, p=[0.5, 0.3, 0.2]),
        "ill": RNG.random(2000) < 0.3,
        "arm": RNG.choice(["drug", "placebo"], 2000),
    }
)
SCHEMA = TableSchema(
    [
        NumericColumn("age", 0, 100),
        CategoricalColumn("ward", ["A", "B", "C"]),
        BooleanColumn("ill"),
        CategoricalColumn("arm", ["drug", "placebo"]),
    ]
)
AGES = FRAME["age"].to_numpy()
COUNTS = {
    "count": lambda **terms: private_count(FRAME["ill"], **terms),
    "histogram": lambda **terms: private_histogram(FRAME["ward"], schema=SCHEMA, **terms),
    "table": lambda **terms: private_contingency_table(
        FRAME[["ward", "ill"]], schema=SCHEMA, **terms
    ),
}
NUMBERS = {
    "mean": (private_mean, AGES.mean(), {"add-remove": 2, "replace-one": 1}),
    "variance": (private_variance, AGES.var(), {"add-remove": 3, "replace-one": 2}),
    "median": (private_quantile, np.quantile(AGES, 0.5, method="inverted_cdf"), 12),
}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", COUNTS)
def test_counts_hold_up_to_the_exact_quantile_of_their_noise(name, law, adjacency, push):
    terms = {"epsilon": 0.3, "confidence": 1.0 - FAILURE, "adjacency": adjacency, **LAWS[law]}
    exact = COUNTS[name](**terms | {"epsilon": 1e5, "delta": 0.0, "mechanism": "auto"}).values
    for sign in (-1, 1):
        push([sign], 1)
        found = COUNTS[name](**terms)
        low, high = found.interval
        assert (low <= exact).all() and (exact <= high).all()
        push([sign], 1, beyond=3)  # and no further
        low, high = COUNTS[name](**terms).interval
        assert ((exact < low) | (high < exact)).all()
        push([sign], exact.size)
        low, high = COUNTS[name](**terms).simultaneous_interval(1.0 - FAILURE)
        assert (low <= exact).all() and (exact <= high).all()


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_hold_up_to_the_exact_quantile_of_their_noise(name, law, adjacency, push):
    """All noises of a statistic may go as far at once: so far that one of them seldom does."""
    release, truth, together = NUMBERS[name]
    together = together if isinstance(together, int) else together[adjacency]
    terms = {"epsilon": 0.3, "confidence": 1.0 - FAILURE, "adjacency": adjacency, **LAWS[law]}
    widths = []
    for signs in SIGNS:
        push(signs, together)
        found = release(AGES, lower=0, upper=100, **terms)
        low, high = found.interval
        assert low <= truth <= high
        widths.append(high - low)
    assert max(widths) < (100.0 if name == "variance" else 15.0)
    kind = "laplace" if law == "laplace" else "gaussian"
    low, high = found.noise_interval
    steps = {"median": 2**21, "mean": UNIT, "variance": UNIT}[name]
    assert (
        -low
        == high
        == pytest.approx(farthest(kind, found.scale * steps, 1) / steps, rel=1e-6, abs=1.5)
    )


# How many noises tell of a row: one of its own, or those of a column in its arm.
ROWS = {1: ["n", "count"], 2: ["share of ill"], 3: ["share of ward", "mean", "sd"]}


@pytest.mark.parametrize(
    ("together", "law", "adjacency"), pairs(list(ROWS), list(LAWS), ADJACENCIES)
)
def test_table_one_holds_up_to_the_exact_quantile_of_its_noise(together, law, adjacency, push):
    terms = {"epsilon": 1.0, "confidence": 1.0 - FAILURE, "adjacency": adjacency, **LAWS[law]}
    for signs in SIGNS:
        push(signs, together)
        table, seen = private_table_one(FRAME, SCHEMA, by="arm", **terms), set()
        for row in table.rows:
            if not {row.statistic, f"{row.statistic} of {row.column}"} & set(ROWS[together]):
                continue
            seen.add(row.statistic)
            arm = FRAME[FRAME["arm"] == row.arm]
            cells = arm[row.column] == row.level if row.level is not None else arm["age"]
            truth = {
                "n": len(arm),
                "count": cells.sum(),
                "share": cells.mean(),
                "mean": cells.mean(),
                "sd": cells.std(ddof=0),
            }[row.statistic]
            assert row.low - 1e-9 <= truth <= row.high + 1e-9, row
            if together == 1:
                reach = farthest(law, table.scale, 1)
                assert row.high - row.value == row.value - row.low
                assert reach <= row.high - row.value <= reach + 2
        assert seen == {kind.partition(" of ")[0] for kind in ROWS[together]}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("k", "counts"), [(1, False), (3, False), (2, True)])
def test_choices_fall_short_as_seldom_as_they_say(adjacency, k, counts):
    """Of m others that count so much less, permute-and-flip asks j first, each j as often."""
    names = [str(place) for place in range(9)]
    found = private_top_k(
        names,
        k,
        categories=names,
        counts=counts,
        epsilon=1.0,
        adjacency=adjacency,
        confidence=1.0 - FAILURE,
    )
    share = 1.0 / (2 * k if counts else k)
    scale = (1.0 if adjacency == "add-remove" else 2.0) / share

    def chance(gap):
        asked = np.arange(len(names))
        return k * (1.0 - np.mean((1.0 - math.exp(-gap / scale)) ** asked))

    assert chance(found.shortfall) <= FAILURE < chance(found.shortfall * 0.7)


@pytest.mark.parametrize(
    ("people", "unit", "adjacency"), pairs([0.7, 3.0, 41.5], [1, 2**20, UNIT], ADJACENCIES)
)
def test_the_price_is_that_of_the_scale_that_is_drawn(people, unit, adjacency):
    release = Release.shares("x", adjacency, unit)
    laplace, normal = release.laplace(people), release.gaussian(people)
    assert Fraction(laplace.event.noise_multiplier) * release.l1 <= laplace.scale
    event, squares = normal.event, Fraction(release.l2) ** 2
    if unit == 1:  # each of the counts that change is priced by itself
        event, squares = getattr(event, "event", event), 1
    assert Fraction(event.noise_multiplier) ** 2 * squares <= normal.scale**2
    assert normal.scale >= Fraction(people) * unit and laplace.scale >= Fraction(people) * unit
