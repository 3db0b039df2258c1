r"""Probabilities with and without a private recalibration inside the fit, at equal epsilon.

Slope is that of a logistic regression of test labels on log odds: 1 is right, less is
over-confident. Log loss stands beside the entropy of the prevalence, which a constant reaches.
n mu is the signal-to-noise ratio of docs/defaults.md. Simulated tables are for choosing constants,
the open ones, read from the directory that --data or SKDP_DATA names, for testing them.

    python examples/benchmarks/probabilities.py --seeds 3
    python examples/benchmarks/probabilities.py --simulated --seeds 3
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np
from _datasets import load_adult, load_bank, load_cardio
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from skdp import (
    DPSGDClassifier,
    GrpuaLogisticRegression,
    ObjectivePerturbationLogisticRegression,
    OperaLogisticRegression,
)
from skdp.exceptions import PrivacyWarning
from skdp.plans.defaults import PublicNumbers
from skdp.testing import FrozenStream

EPSILONS = (0.1, 0.5, 1.0, 3.0, 8.0)
TABLES = {"adult": load_adult, "bank": load_bank, "cardio": load_cardio}
MODELS = {
    "opera": OperaLogisticRegression,
    "objective": ObjectivePerturbationLogisticRegression,
    "grpua": GrpuaLogisticRegression,
    "dp-sgd": DPSGDClassifier,
}
# Records, columns, prevalence, and strength of the truth of simulated tables.
SHAPES = [(4000, 10, 0.5, 1.0), (4000, 50, 0.1, 2.0), (12000, 30, 0.05, 1.5), (12000, 30, 0.3, 3.0)]
RATIOS = (150, 300, 500, 800, 1500, 3000)
FIGURES = ("slope", "log loss", "Brier", "AUC", "ms")


def simulate(shape: tuple[int, int, float, float], seed: int) -> tuple[Any, ...]:
    """Return rows of norm at most 1 with correlated columns, and labels of a logistic truth."""
    n, d, prevalence, strength = shape
    rng = np.random.default_rng(seed)
    mix = np.eye(d) + 0.5 * rng.standard_normal((d, d)) / np.sqrt(d)
    X = rng.standard_normal((n + 20_000, d)) @ mix
    score = X @ rng.standard_normal(d)
    score *= strength / score.std()
    offset = brentq(lambda b: expit(score + b).mean() - prevalence, -30.0, 30.0)
    y = (rng.random(len(X)) < expit(score + offset)).astype(int)
    X *= 1.0 / np.maximum(np.sqrt(d) * 1.3, np.linalg.norm(X, axis=1, keepdims=True))
    return X[:n], y[:n], X[n:], y[n:]


def figures(model: Any, X: Any, y: Any, seconds: float) -> list[float]:
    """Return the figures of a fitted model on test rows."""
    probabilities = model.predict_proba(X)[:, 1]
    scores = np.clip(model.decision_function(X), -30.0, 30.0)[:, None]
    slope = LogisticRegression(C=np.inf, tol=1e-6).fit(scores, y).coef_[0, 0]
    losses = log_loss(y, probabilities), brier_score_loss(y, probabilities)
    return [slope, *losses, roc_auc_score(y, probabilities), 1e3 * seconds]


def relation_of(cls: Any) -> Any:
    """Return the relation that the tables of docs/probabilities.md have it in."""
    return "add-remove" if cls is DPSGDClassifier else "replace-one"


def compare(cls: Any, epsilon: float, norm: float, split: tuple[Any, ...], seed: int) -> Any:
    """Return the figures of a fit without and with recalibration, and n mu."""
    X, y, X_test, y_test = split
    found = []
    for calibrate in (None, "private"):
        # Both fits draw the same noise, on other scales.
        common = {"data_norm": norm, "random_state": FrozenStream.from_seed(seed)}
        common["adjacency"] = relation_of(cls)
        model = cls(epsilon, classes=[0, 1], calibrate=calibrate, **common)
        start = perf_counter()
        model.fit(X, y)
        found.append(figures(model, X_test, y_test, perf_counter() - start))
    public = PublicNumbers(*X.shape, 2, epsilon, 1e-6, relation_of(cls))
    return found, public.signal_to_noise


def epsilon_of(ratio: float, n: int, adjacency: str) -> float:
    """Return the epsilon at which a table of n rows has a signal-to-noise ratio."""

    def excess(logarithm: float) -> float:
        public = PublicNumbers(n, 1, 2, float(np.exp(logarithm)), 1e-6, adjacency)
        return public.signal_to_noise - ratio

    return float(np.exp(brentq(excess, -7.0, 5.0)))


def cells(args: argparse.Namespace) -> Iterator[tuple[str, str, float, Any, Any]]:
    """Yield name, model, epsilon, norm of rows and splits of each cell of the tables."""
    for name in args.models:
        cls = MODELS[name]
        if args.simulated:
            for shape in SHAPES:
                splits = [simulate(shape, seed) for seed in range(args.seeds)]
                for ratio in RATIOS:
                    epsilon = epsilon_of(ratio, shape[0], relation_of(cls))
                    yield f"{shape}", name, epsilon, 1.0, splits
        else:
            for table in args.tables:
                dataset = TABLES[table](args.data)
                for epsilon in args.epsilons:
                    yield table, name, epsilon, dataset.data_norm, dataset.splits(args.seeds)


def main() -> None:
    """Print one line a cell: medians without, and with."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", default=None)
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--epsilons", nargs="+", type=float, default=EPSILONS)
    args = parser.parse_args()
    warnings.simplefilter("ignore", PrivacyWarning)
    heads = " | ".join(f"{name}, with" for name in FIGURES)
    print(f"| table | model | epsilon | n mu | {heads} | entropy |")
    print("|---" * (5 + len(FIGURES)) + "|")
    for table, name, epsilon, norm, splits in cells(args):
        found = []
        for seed, split in enumerate(splits):
            both, ratio = compare(MODELS[name], epsilon, norm, split, seed)
            found.append(both)
            share = split[3].mean()
        without, with_table = np.median(found, axis=0)
        entropy = -share * np.log(share) - (1.0 - share) * np.log1p(-share)
        parts = [
            f"{before:.{digits}f}, {after:.{digits}f}"
            for before, after, digits in zip(without, with_table, (2, 4, 4, 4, 0), strict=True)
        ]
        row = [table, name, f"{epsilon:.3g}", f"{ratio:.0f}", *parts, f"{entropy:.4f}"]
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
