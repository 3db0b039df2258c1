"""What private calibration and private thresholds gain, and what they cost at small epsilon.

A private logistic regression is fitted to one half of the training rows, and adjusted on the
other half by `PrivateCalibrator` and `PrivateThreshold`; figures are means over splits, of test
rows, whose labels are used freely here: on private rows these figures would be leaks.

    python examples/benchmarks/calibration.py [--repeats 5]    # about two minutes

SKDP_DATA names the folder of the tables.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from _datasets import load_adult, load_bank, load_cardio
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, log_loss, recall_score

from skdp import ObjectivePerturbationLogisticRegression, OperaLogisticRegression
from skdp.exceptions import PrivacyWarning
from skdp.metrics import PrivateCalibrator, PrivateThreshold

MODELS = {"OPERA": OperaLogisticRegression, "objective": ObjectivePerturbationLogisticRegression}
EPSILONS = (0.1, 1.0)
# A missed positive costs five times as much as a false alarm.
COSTS = (1.0, 5.0)
TARGETS = ("youden", "f1", "cost")


def slope(labels: Any, probabilities: Any) -> float:
    """Return the calibration slope: 1 is right, less is overconfident."""
    shown = np.clip(probabilities, 1e-12, 1.0 - 1e-12)
    log_odds = np.log(shown / (1.0 - shown))[:, None]
    return float(LogisticRegression(C=np.inf).fit(log_odds, labels).coef_[0, 0])


def gains(labels: Any, predicted: Any) -> dict[str, float]:
    """Return what thresholds are chosen for, and the recall."""
    recall = recall_score(labels, predicted)
    alarms = float(np.mean(predicted[labels == 0]))
    costs = COSTS[0] * (predicted > labels) + COSTS[1] * (predicted < labels)
    return {
        "recall": float(recall),
        "youden": float(recall) - alarms,
        "f1": float(f1_score(labels, predicted)),
        "cost": float(np.mean(costs)),
    }


def measure(table: Any, split: Any, seed: int) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield model, its epsilon, that of the adjustment, and the figures of one split."""
    X, y, X_test, y_test = split
    order = np.random.default_rng(seed).permutation(len(y))
    fit, other = order[::2], order[1::2]
    for (name, cls), epsilon in ((item, e) for item in MODELS.items() for e in EPSILONS):
        model = cls(epsilon, 1e-6, data_norm=table.data_norm, random_state=seed)
        frozen = FrozenEstimator(model.fit(X[fit], y[fit]))
        raw = model.predict_proba(X_test)[:, 1]
        before = gains(y_test, (raw >= 0.5).astype(int))
        for spent in EPSILONS:
            settings = {"epsilon": spent, "random_state": seed}
            calibrated = PrivateCalibrator(frozen, **settings).fit(X[other], y[other])
            found = calibrated.predict_proba(X_test)[:, 1]
            row: dict[str, Any] = {
                "slope": (slope(y_test, raw), slope(y_test, found)),
                "log loss": (log_loss(y_test, raw), log_loss(y_test, found)),
            }
            for target in TARGETS:
                chooser = PrivateThreshold(frozen, metric=target, costs=COSTS, **settings)
                after = gains(y_test, chooser.fit(X[other], y[other]).predict(X_test))
                row[target] = before[target], after[target]
                if target == "youden":
                    row["recall"] = before["recall"], after["recall"]
            yield (table.name, name, epsilon, spent), row


def lines(repeats: int) -> Iterator[str]:
    """Yield a Markdown table: before and after each adjustment."""
    columns = ("slope", "log loss", "recall", *TARGETS)
    yield f"| table | model | its epsilon | adjustment's | {' | '.join(columns)} |"
    yield "|---" * (4 + len(columns)) + "|"
    for load in (load_adult, load_bank, load_cardio):
        table = load()
        found: dict[Any, list[dict[str, Any]]] = defaultdict(list)
        for seed, split in enumerate(table.splits(repeats)):
            for key, row in measure(table, split, seed):
                found[key].append(row)
        for key, rows in found.items():
            cells = [
                "{:.3f} to {:.3f}".format(*np.mean([row[column] for row in rows], axis=0))
                for column in columns
            ]
            yield f"| {' | '.join(map(str, key))} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore", PrivacyWarning)
    for line in lines(repeats):
        print(line, flush=True)


if __name__ == "__main__":
    main()
