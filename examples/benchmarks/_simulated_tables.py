"""Simulated tables on which defaults are chosen, and others on which they are tried.

Sizes, columns, encodings, norms, prevalences and truths are drawn anew for each table from a seed
of its own, so that any of them can be made again alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Array = NDArray[np.float64]

# Tables of smaller seeds were for choosing constants; this one and later ones are for trying them.
FIRST_HELD_OUT = 1000

ENCODINGS = ("numeric", "heavy", "one-hot", "mixed", "steps", "unequal")
# Fits stay affordable: long tables are narrow, and fewer than short ones.
_MOST_CELLS = 8e5
_TEST_ROWS = 4000
_STEPS = 64


@dataclass(frozen=True)
class SimulatedTable:
    """Training and test rows of one table, with the public bound on the norm of its rows."""

    name: str
    X: Array
    y: NDArray[np.int64]
    X_test: Array
    y_test: NDArray[np.int64]
    data_norm: float


def draw_table(seed: int) -> SimulatedTable:
    """Draw the table of a seed; its encoding is the seed's turn among all of them."""
    rng = np.random.default_rng([1609, seed])
    encoding = ENCODINGS[seed % len(ENCODINGS)]
    n_rows = round(300.0 * 1000.0 ** (rng.random() ** 2))
    widest = min(500.0, _MOST_CELLS / n_rows)
    n_columns = round(5.0 * (widest / 5.0) ** rng.random())
    hidden, X, data_norm = encode_rows(rng, encoding, n_rows + _TEST_ROWS, n_columns)
    y = _draw_labels(rng, hidden)
    name = f"{seed}: {encoding}, n={n_rows}, d={X.shape[1]}, {y.mean():.0%}"
    train, test = slice(None, n_rows), slice(n_rows, None)
    return SimulatedTable(name, X[train], y[train], X[test], y[test], data_norm)


def encode_rows(
    rng: np.random.Generator, encoding: str, n_rows: int, n_columns: int
) -> tuple[Array, Array, float]:
    """Return what the labels depend on, about `n_columns` columns, and a bound on their rows."""
    if encoding == "one-hot":
        return _join([_draw_levels(rng, n_rows, n_columns)])
    if encoding == "mixed":
        numeric = _draw_numeric(rng, n_rows, max(2, n_columns // 3))
        return _join([numeric, _draw_levels(rng, n_rows, max(3, n_columns - n_columns // 3))])
    if encoding == "steps":
        hidden, X, count = _draw_numeric(rng, n_rows, max(2, n_columns // (_STEPS + 1)))
        cuts = np.linspace(-1.0, 1.0, _STEPS + 2)[1:-1]
        signs = np.where(X[:, :, None] > cuts, 1.0, -1.0) / np.sqrt(_STEPS)
        return _join([(hidden, np.hstack([X, signs.reshape(n_rows, -1)]), 2 * count)])
    tails = 3.0 if encoding == "heavy" else np.inf
    hidden, X, data_norm = _join([_draw_numeric(rng, n_rows, n_columns, tails)])
    if encoding == "heavy":  # few rows are near all bounds: longer ones are clipped
        return hidden, X, 0.5 * data_norm
    if encoding == "unequal":
        X *= np.exp(rng.normal(0.0, 1.0, (n_rows, 1)) - 1.0)
    return hidden, X, data_norm


def _join(blocks: list[tuple[Array, Array, int]]) -> tuple[Array, Array, float]:
    """Return the blocks side by side; each of a block's columns before encoding has norm 1."""
    bound = float(np.sqrt(sum(count for _, _, count in blocks)))
    return np.hstack([b[0] for b in blocks]), np.hstack([b[1] for b in blocks]), bound


def _draw_numeric(
    rng: np.random.Generator, n_rows: int, n_columns: int, tails: float = np.inf
) -> tuple[Array, Array, int]:
    """Draw columns with common factors, within [-1, 1] by bounds of some standard deviations."""
    factors = rng.integers(1, 6)
    loadings = rng.normal(size=(factors, n_columns)) * rng.choice([0.0, 0.5, 1.0])
    values = rng.normal(size=(n_rows, factors)) @ loadings + rng.normal(size=(n_rows, n_columns))
    if np.isfinite(tails):
        values *= np.sqrt(tails / rng.chisquare(tails, (n_rows, n_columns)))
    values /= values.std(axis=0)
    centre, reach = rng.normal(0.0, 0.3, n_columns), rng.uniform(2.0, 5.0, n_columns)
    return values, np.clip(values / reach + centre, -1.0, 1.0), n_columns


def _draw_levels(rng: np.random.Generator, n_rows: int, n_columns: int) -> tuple[Array, Array, int]:
    """Draw one-hot columns of 2 to 20 levels of unequal shares."""
    levels: list[int] = []
    while sum(levels) < n_columns:
        levels.append(int(rng.integers(2, 21)))
    drawn = [rng.choice(k, n_rows, p=rng.dirichlet(np.ones(k))) for k in levels]
    X = np.hstack([np.eye(k)[codes] for k, codes in zip(levels, drawn, strict=True)])
    return X - X.mean(axis=0), X, len(levels)


def _draw_labels(rng: np.random.Generator, hidden: Array) -> NDArray[np.int64]:
    """Draw labels from a linear or bent score with 2 to 50 % positives."""
    used = rng.random(hidden.shape[1]) < rng.choice([0.1, 0.3, 1.0])
    used[rng.integers(hidden.shape[1])] = True
    score = hidden @ (rng.normal(size=hidden.shape[1]) * used)
    bend: Callable[[Array], Array] = [lambda s: s, np.tanh, lambda s: s + 0.5 * s**2][
        rng.integers(3)
    ]
    score = bend(score / score.std())
    if rng.random() < 0.5:  # products of columns, which no line sees
        pairs = rng.integers(hidden.shape[1], size=(2, 3))
        product = (hidden[:, pairs[0]] * hidden[:, pairs[1]]).sum(axis=1)
        score = score + rng.uniform(0.0, 0.5) * product / max(product.std(), 1e-9)
    score = np.clip(score / score.std(), -5.0, 5.0) * rng.uniform(0.7, 3.0)
    prevalence = 0.02 * 25.0 ** rng.random()
    low, high = -60.0, 60.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if expit(score + middle).mean() < prevalence else (low, middle)
    y = (rng.random(len(score)) < expit(score + low)).astype(np.int64)
    y[:2] = y[-2:] = 0, 1  # both labels on both sides
    return y
