"""Made-up populations of scores and labels of ten kinds, and the figures that are true of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.metrics import average_precision_score, roc_auc_score

ROWS = 60_000
KINDS = "weak normal shifted tied tree rare perfect few heavy subgroup".split()


@dataclass(frozen=True)
class Population:
    """Scores in rising order with labels, and how it is to be evaluated."""

    kind: str
    scores: np.ndarray
    labels: np.ndarray
    n: int
    epsilon: float
    adjacency: str
    threshold: float
    values: Any = None
    share: float = 1.0  # of the subgroup that is looked at


def population(seed: int) -> Population:
    """Return one of the kinds, by the remainder of the seed, with parameters drawn by it."""
    rng, kind = np.random.default_rng(seed), KINDS[seed % len(KINDS)]
    n, epsilon = int(rng.choice([400, 1000, 4000, 15_000])), float(rng.choice([0.3, 1.0, 3.0, 8.0]))
    threshold, share, values = 0.5, 1.0, None
    normal, pick = rng.standard_normal(ROWS), lambda *of: float(rng.choice(of))
    if kind == "weak":
        centre, spread = pick(0.0, -0.2, 1.0, -3.0), pick(0.03, 0.05, 0.1, 0.2, 0.3)
        odds, risk = centre + spread * normal, centre + pick(0.0, 0.2, 0.5, 0.8) * normal
    elif kind == "perfect":
        label = rng.random(ROWS) < pick(0.1, 0.3, 0.5)
        odds = (2.0 * label - 1.0) * pick(3.0, 5.0, 8.0) + normal
        risk = np.where(label, 40.0, -40.0)
    elif kind == "few":  # errors, all of them sure: those that are expected, and where it errs
        odds = np.where(rng.random(ROWS) < pick(0.1, 0.5), 1.0, -1.0) * pick(3.0, 4.0, 6.0)
        odds = odds + pick(0.2, 0.5) * normal
        wrong = rng.random(ROWS) < pick(1.6, 3.0, 8.0) / n
        risk = np.where((odds > 0.0) != wrong, 40.0, -40.0)
    elif kind == "rare":
        centre, spread = pick(-6.0, -5.0, -4.0, -3.5), pick(0.5, 1.0, 1.5)
        odds = centre + spread * normal
        risk, threshold = odds, pick(0.5, 0.05, 0.02)
    elif kind == "heavy":
        odds = pick(0.0, -1.0) + pick(0.2, 0.7, 2.0) * rng.standard_t(pick(1.0, 2.0, 3.0), ROWS)
        risk = np.clip(pick(0.5, 1.0) * odds, -3.0, 3.0)
    else:
        odds = pick(0.0, -1.0, -2.0) + pick(0.4, 0.8, 1.5, 2.5) * normal
        risk = pick(0.4, 1.0, 1.5) * odds
    if kind == "shifted":
        risk = risk + pick(-2.0, -1.0, 1.0)
    if kind == "tied":  # rounded, of which half the evaluations are told
        levels = pick(4.0, 10.0, 20.0, 50.0)
        odds = logit(np.clip(np.rint(expit(odds) * levels) / levels, 1e-3, 1.0 - 1e-3))
        if rng.random() < 0.5:
            values = np.unique(expit(odds))
    if kind == "tree":  # leaves, of which nobody is told; or one constant and others
        leaves = np.sort(rng.normal(-0.5, pick(0.3, 1.0), int(pick(2, 5, 8, 15))))
        odds = leaves[rng.integers(leaves.size, size=ROWS)]
        risk = odds + 0.3 * rng.standard_normal(leaves.size)[np.searchsorted(leaves, odds)]
        if rng.random() < 0.3:
            odds = np.where(rng.random(ROWS) < 0.5, odds, -0.5 + normal)
    if kind == "subgroup":
        share = pick(30.0, 60.0, 150.0) / n
    labels = (rng.random(ROWS) < expit(risk)).astype(int)
    order = np.argsort(odds, kind="stable")
    relation = ("add-remove", "replace-one")[int(rng.integers(2))]
    ordered = expit(odds)[order], labels[order]
    return Population(kind, *ordered, n, epsilon, relation, threshold, values, share)


def truth(scores: Any, labels: Any, threshold: float) -> dict[str, float]:
    """Return the figures of a population that do not depend on bins; NaN where there are none."""
    said, ill = scores >= threshold, labels == 1
    both = 0 < ill.sum() < ill.size
    with np.errstate(all="ignore"):
        sensitivity = (said & ill).sum() / ill.sum()
        specificity = (~said & ~ill).sum() / (~ill).sum()
        ppv, npv = (said & ill).sum() / said.sum(), (~said & ~ill).sum() / (~said).sum()
    return {
        **{"accuracy": (said == ill).mean(), "prevalence": ill.mean()},
        **{"sensitivity": sensitivity, "specificity": specificity, "ppv": ppv, "npv": npv},
        "balanced_accuracy": 0.5 * (sensitivity + specificity),
        "roc_auc": roc_auc_score(labels, scores) if both else np.nan,
        "average_precision": average_precision_score(labels, scores) if both else np.nan,
        "brier_score": ((scores - labels) ** 2).mean(),
        "calibration_in_the_large": (labels - scores).mean(),
    }


class OfBins:
    """The true slope and calibration error, which depend on where bins lie."""

    def __init__(self, scores: Any, labels: Any) -> None:
        self._scores = scores
        self._gaps = np.concatenate([[0.0], np.cumsum(labels - scores)])
        odds = np.clip(logit(np.clip(scores, 1e-12, 1.0 - 1e-12)), -25.0, 25.0)
        starts = np.linspace(0, scores.size, 601).astype(int)[:-1]
        rows = np.diff(starts, append=scores.size)
        self._odds, self._rows = np.add.reduceat(odds, starts) / rows, rows
        self._positives = np.add.reduceat(labels.astype(float), starts)

    def slope(self, low: float, high: float) -> float:
        """Return the slope on log odds that are clipped at the outermost edges."""
        x = np.clip(self._odds, low, high)
        if np.ptp(x) < 1e-6:
            return float("nan")
        middle, unit = x.mean(), max(x.std(), 1e-9)
        design, beta = np.stack([np.ones_like(x), (x - middle) / unit]), np.zeros(2)
        for _ in range(60):
            risk = expit(beta @ design)
            weight = self._rows * risk * (1.0 - risk) + 1e-12
            step = np.linalg.solve(
                (design * weight) @ design.T + 1e-9 * np.eye(2),
                design @ (self._positives - self._rows * risk),
            )
            beta = beta + step / max(1.0, np.abs(step).max())
            if np.abs(step).max() < 1e-8:
                return float(beta[1] / unit)
        return float("inf")

    def error(self, edges: np.ndarray, cells: np.ndarray) -> float:
        """Return the calibration error over cells of bins."""
        at = np.searchsorted(self._scores, edges)
        sums = np.diff(self._gaps[np.concatenate([[0], at, [self._scores.size]])])
        return float(np.abs(cells @ sums).sum() / self._scores.size)
