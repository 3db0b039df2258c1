r"""Private classifiers on text: rows of 20,000 weighted word counts, nearly all of them zero.

Texts are made up: words follow Zipf's law, and the two kinds of text use some words more and some
less often than the other. The vocabulary and the inverse document frequencies are public (of texts
that are nobody's, drawn beside), so that each row is a function of its own text; rows have norm 1.

    python examples/benchmarks/text.py --seeds 3
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from accuracy import PRIVATE, RELATIONS
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

WORDS, LENGTH, DELTA = 20_000, 100, 1e-6
EPSILONS = (0.5, 1.0, 3.0, 8.0)
SIZES = (5_000, 20_000)


def draw_texts(rng: np.random.Generator, n: int, shares: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return counts of words and labels of n texts; `shares` has a row of frequencies a label."""
    labels = rng.integers(2, size=n)
    lengths = 1 + rng.poisson(LENGTH, size=n)
    owner = np.repeat(np.arange(n), lengths)
    place = np.empty(owner.size, dtype=np.int64)
    for label in (0, 1):
        own = labels[owner] == label
        place[own] = np.searchsorted(np.cumsum(shares[label]), rng.random(own.sum()))
    place = np.minimum(place, WORDS - 1)
    return csr_matrix((np.ones(owner.size), (owner, place)), shape=(n, WORDS)), labels


def make_tables(seed: int, n: int) -> tuple[Any, ...]:
    """Return training and test rows, weighted by what public texts say of words."""
    rng = np.random.default_rng(seed)
    common = 1.0 / (np.arange(WORDS) + 10.0)
    lean = 0.35 * rng.standard_normal(WORDS) * (rng.random(WORDS) < 0.3)
    shares = np.stack([common * np.exp(-lean), common * np.exp(lean)])
    shares /= shares.sum(axis=1, keepdims=True)
    public = draw_texts(rng, 5_000, np.tile(shares.mean(axis=0), (2, 1)))[0]
    weighting = TfidfTransformer(sublinear_tf=True).fit(public)
    (X, y), (X_test, y_test) = (draw_texts(rng, size, shares) for size in (n, 5_000))
    return weighting.transform(X), y, weighting.transform(X_test), y_test


def area(model: Any, tables: tuple[Any, ...]) -> tuple[float, float]:
    """Return ROC AUC on test rows and seconds of the fit."""
    X, y, X_test, y_test = tables
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    return roc_auc_score(y_test, model.decision_function(X_test)), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    seeds = range(parser.parse_args().seeds)
    print(f"| texts | estimator | {' | '.join(f'epsilon = {e:g}' for e in EPSILONS)} | seconds |")
    print("|---|---|" + "---|" * (len(EPSILONS) + 1))
    for n in SIZES:
        tables = [make_tables(seed, n) for seed in seeds]
        ceiling = np.mean([area(LogisticRegression(max_iter=1000), table)[0] for table in tables])
        print(f"| {n} | LogisticRegression (not private) |" + f" {ceiling:.3f} |" * 4 + " |")
        for name, cls in PRIVATE.items():
            cells, times = [], []
            for epsilon in EPSILONS:
                both = []
                for relation in RELATIONS:
                    make = [cls(epsilon, DELTA, data_norm=1.0, adjacency=relation) for _ in seeds]
                    found = [area(m, table) for m, table in zip(make, tables, strict=True)]
                    both.append(f"{np.mean([a for a, _ in found]):.3f}")
                    times += [seconds for _, seconds in found]
                cells.append(" / ".join(both))
            print(f"| {n} | {name} | {' | '.join(cells)} | {np.median(times):.2f} |", flush=True)


if __name__ == "__main__":
    main()
