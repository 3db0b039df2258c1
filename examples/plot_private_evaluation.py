"""What may be published of a model: weights, calibrated probabilities, and figures with intervals.

Whoever fits a private model wants to print how good it is. Read off private rows, an accuracy, an
AUC or a calibration curve is a release like any other, and nobody has paid for it. Here one budget
pays for three releases: the model, its calibration, and one noisy table of scores by label, from
which every figure follows with an interval that counts the noise as well as the sampling.

The table ships with scikit-learn: is a handwritten digit odd? It is small: a third of it, 599 rows,
is what figures are read off, and the intervals say what that is worth. ``expected_widths`` says
beforehand how many rows make them narrow. Needs matplotlib (``pip install ".[plot]"``).

    python examples/plot_private_evaluation.py [picture.png]
"""

import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator

from skdp import OperaLogisticRegression
from skdp.budget import BudgetAccountant
from skdp.metrics import (
    PrivateCalibrationDisplay,
    PrivateCalibrator,
    PrivateEvaluation,
    PrivateRocCurveDisplay,
)
from skdp.reporting import privacy_statement

# Of the model, its calibration and its evaluation.
EPSILONS, DELTA = (2.0, 1.0, 1.0), 1e-5
# Every random number below is fixed, so that the picture does not wander: for a release, None.
SEED = 0


def load_parts():
    """Return three equal parts at random, without looking at labels; pixels are public bounds."""
    X, y = load_digits(return_X_y=True)
    parts = np.array_split(np.random.default_rng(SEED).permutation(len(y)), 3)
    return [(X[part] / 16.0, y[part] % 2) for part in parts]


def draw(raw, calibrated, picture):
    """Draw the ROC curve, and calibration before and after."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    PrivateRocCurveDisplay.from_result(calibrated, ax=left)
    PrivateCalibrationDisplay.from_result(raw, ax=right, color="grey")
    PrivateCalibrationDisplay.from_result(calibrated, ax=right)
    left.set_title(f"one release, n = {calibrated.tables.n}, epsilon {EPSILONS[2]:g}")
    right.set_title("before (grey) and after private calibration")
    right.get_legend().remove()
    figure.savefig(picture, dpi=80)


def main(picture: str | None = None) -> None:
    fitted, calibrating, testing = load_parts()
    budget = BudgetAccountant(sum(EPSILONS), 4 * DELTA, adjacency="replace-one")
    settings = {"delta": DELTA, "adjacency": "replace-one", "random_state": SEED}
    with budget:
        # A public bound, which no picture has shaped: longer rows are shortened to it.
        model = OperaLogisticRegression(EPSILONS[0], **settings, data_norm=4.0, classes=[0, 1])
        frozen = FrozenEstimator(model.fit(*fitted))
        calibrated = PrivateCalibrator(frozen, EPSILONS[1], **settings).fit(*calibrating)
        evaluation = PrivateEvaluation(EPSILONS[2], **settings)
        result = evaluation.evaluate(calibrated, *testing)
        # A second look at the same rows is a second charge. Here it is for the picture alone.
        raw = evaluation.evaluate(model, *testing) if picture else None

    print(result)
    print(f"\nslope {calibrated.slope_[0]:.2f}, intercept {calibrated.intercept_[0]:.2f}")
    print(f"\n{privacy_statement(calibrated, unit='picture')}")
    print(f"\nspent in total: epsilon {budget.spent()[0]:.2f} of {budget.epsilon:g}")

    print("\nhow wide intervals will be, by the number of rows:")
    for n in (600, 6_000, 60_000):
        widths = evaluation.expected_widths(n, prevalence=0.5, auc=0.93)
        shown = {name: f"{width:.3f}" for name, width in widths.items()}
        print(f"{n:6d} rows: AUC {shown['roc_auc']}, sensitivity {shown['sensitivity']}")
    if picture:
        draw(raw, result, picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
