r"""Rare outcomes: weights of classes, a moved public threshold, or neither, at equal epsilon.

All three know the declared prevalence and nothing else. Sensitivity at 90 % specificity does not
depend on a threshold; recall and balanced accuracy are those of decisions. "Neither" decides at
probability 0.5, the threshold at the declared prevalence, and weights are the balanced ones. Bank
is read from the directory that --data or the environment variable SKDP_DATA names.

    python examples/benchmarks/rare_outcomes.py --seeds 20
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from _datasets import load_bank
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.metrics import roc_curve

from skdp import DPSGDClassifier, ObjectivePerturbationLogisticRegression
from skdp.exceptions import PrivacyWarning

EPSILONS = (0.3, 1.0, 3.0)
PREVALENCES = (0.02, 0.05, 0.14)
MODELS = {
    "objective perturbation, replace-one": ObjectivePerturbationLogisticRegression,
    "DP-SGD, add-remove": partial(DPSGDClassifier, adjacency="add-remove"),
}
WAYS = ("neither", "threshold", "weights")


class Split(NamedTuple):
    """A table in two parts, and what is declared of it."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    data_norm: float
    prevalence: float


def simulate(prevalence: float, seed: int, n: int = 5000, d: int = 10) -> Split:
    """Draw rows of a logistic model in which a share `prevalence` is positive."""
    rng = np.random.default_rng(seed)
    slopes = np.linspace(1.0, 0.1, d)
    grid = np.random.default_rng(0).standard_normal((20_000, d)) @ slopes
    offset = brentq(lambda b: expit(grid + b).mean() - prevalence, -20.0, 0.0)
    X = rng.standard_normal((n + 20_000, d))
    y = (rng.random(len(X)) < expit(X @ slopes + offset)).astype(int)
    return Split(X[:n], y[:n], X[n:], y[n:], np.sqrt(d) + 1.0, prevalence)


def splits(name: str, seeds: int, directory: str | None) -> Iterator[Split]:
    """Yield a split of a table for each seed."""
    if name != "bank":
        yield from (simulate(float(name.split()[0]) / 100.0, seed) for seed in range(seeds))
        return
    bank = load_bank(directory)
    for X, y, X_test, y_test in bank.splits(seeds):
        yield Split(X, y, X_test, y_test, bank.data_norm, 0.12)


def figures(model: Any, split: Split, threshold: float) -> list[float]:
    """Return sensitivity at 90 % specificity, and recall and balanced accuracy of decisions."""
    scores = model.predict_proba(split.X_test)[:, 1]
    wrong, right, _ = roc_curve(split.y_test, scores)
    decided = scores > threshold
    recall = decided[split.y_test == 1].mean()
    specificity = 1.0 - decided[split.y_test == 0].mean()
    return [float(np.interp(0.1, wrong, right)), recall, 0.5 * (recall + specificity)]


def compare(cls: Any, epsilon: float, split: Split, seed: int) -> dict[str, list[float]]:
    """Return the figures of each way; two of them share a fit."""
    common = {"delta": 1e-6, "data_norm": split.data_norm, "classes": [0, 1]}
    shares = {0: 1.0 - split.prevalence, 1: split.prevalence}
    plain = cls(epsilon, random_state=seed, **common).fit(split.X, split.y)
    weighted = cls(
        epsilon, random_state=seed, class_weight="balanced", prevalence=shares, **common
    ).fit(split.X, split.y)
    return {
        "neither": figures(plain, split, 0.5),
        "threshold": figures(plain, split, split.prevalence),
        "weights": figures(weighted, split, 0.5),
    }


def main() -> None:
    """Print a table for each model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--data", default=None)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", PrivacyWarning)
    names = [f"{100 * share:g} % simulated" for share in PREVALENCES] + ["bank"]
    for title, cls in MODELS.items():
        print(f"\n{title}: sensitivity at 90 % specificity / recall / balanced accuracy\n")
        print("| table | epsilon | " + " | ".join(WAYS) + " |")
        print("|---" * (2 + len(WAYS)) + "|")
        for name in names:
            found: dict[float, list[Any]] = {epsilon: [] for epsilon in EPSILONS}
            for seed, split in enumerate(splits(name, arguments.seeds, arguments.data)):
                for epsilon, runs in found.items():
                    runs.append(compare(cls, epsilon, split, seed))
            for epsilon, runs in found.items():
                means = [np.mean([run[way] for run in runs], axis=0) for way in WAYS]
                cells = [" / ".join(f"{value:.2f}" for value in mean) for mean in means]
                print(f"| {name} | {epsilon:g} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
