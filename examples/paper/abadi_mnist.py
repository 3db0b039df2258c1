"""Abadi et al. (2016), section 5.2: their network on MNIST, within budgets of (epsilon, 1e-5).

One hidden layer of 1,000 ReLU units on 60 private principal components. The paper takes lots of
600 and cuts each layer at 4. Here lots are a seventh or a quarter of the table, gradients are cut
at 0.2 or 0.4, and 100 to 250 steps suffice; components are found around a private mean, and rows
have norm 1 after the projection, each by itself. Components and steps share the budget. The
settings were chosen on 5,000 rows held out of the training rows, not on those to test on.

    python examples/paper/abadi_mnist.py         # MNIST, minutes: writes results/abadi_mnist.json
    python examples/paper/abadi_mnist.py --fast  # digits, seconds: prints
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from _images import load_images
from sklearn.preprocessing import normalize

from skdp import DPSGDClassifier
from skdp.accounting import (
    ComposedEvent,
    Event,
    GaussianEvent,
    PLDAccountant,
    PoissonSampledEvent,
    RepeatedEvent,
    calibrate_event,
)
from skdp.mechanisms import analytic_gaussian_epsilon
from skdp.preprocessing import DPPCA

TITLE = "Abadi et al.: the network on MNIST"
RESULTS = Path(__file__).parent / "results" / "abadi_mnist.json"
DELTA, COMPONENTS, UNITS, SEEDS = 1e-5, 60, 1000, 3
PRINTED = {0.5: 90, 2.0: 95, 8.0: 97}
# epsilon: noise of the components over their sensitivity; lot, steps, clipping norm, step size
SETTINGS = {
    0.5: (12.0, 16_384, 100, 0.2, 8.0),
    2.0: (4.0, 8_192, 200, 0.2, 12.0),
    8.0: (2.0, 8_192, 250, 0.4, 16.0),
}


def project(noise: float, seed: int, X: Any, X_test: Any) -> tuple[Any, Any, Event]:
    """Return rows of norm 1 to train and to test on, and what was released of the former."""
    pca = DPPCA(
        min(COMPONENTS, X.shape[1] // 2),
        analytic_gaussian_epsilon(noise, DELTA),
        DELTA,
        data_norm=1.0,
        center=True,
        adjacency="add-remove",
        random_state=seed,
    ).fit(X)
    X, X_test = (normalize(pca.transform(part)).astype(np.float32) for part in (X, X_test))
    return X, X_test, pca.privacy_spent_.event


def fit(epsilon: float, seed: int, images: Any, fast: bool) -> dict[str, Any]:
    """Project, train with the noise that the rest of the budget affords, and test."""
    X, y, X_test, y_test = images
    noise, lot, steps, clip, step_size = SETTINGS[epsilon]
    if fast:
        lot, steps = 400, 60
    start = time.perf_counter()
    X, X_test, spent = project(noise, seed, X, X_test)

    def all_steps(multiplier: float) -> Event:
        step = PoissonSampledEvent(lot / len(y), GaussianEvent(multiplier))
        return ComposedEvent((spent, RepeatedEvent(step, steps)))

    model = DPSGDClassifier(
        epsilon=None,
        delta=DELTA,
        noise_multiplier=calibrate_event(all_steps, epsilon, DELTA, adjacency="add-remove"),
        hidden_layer_sizes=(50 if fast else UNITS,),
        data_norm=1.0,
        classes=range(10),
        alpha=0.0,
        max_grad_norm=clip,
        batch_size=lot,
        max_iter=steps,
        learning_rate_init=step_size,
        random_state=seed,
    ).fit(X, y)
    events = ComposedEvent((spent, model.privacy_spent_.event))
    return {
        "target": epsilon,
        "epsilon": float(PLDAccountant().compose(events).epsilon(DELTA)),
        "accuracy": model.score(X_test, y_test),
        "seconds": round(time.perf_counter() - start, 1),
    }


def rows() -> list[tuple[str, str, str, str]]:
    """Return experiment, paper's value, our value and verdict of each reproduction."""
    fits = json.loads(RESULTS.read_text())
    return [
        row(epsilon, [each for each in fits if each["target"] == epsilon]) for epsilon in SETTINGS
    ]


def row(epsilon: float, fits: list[dict[str, Any]]) -> tuple[str, str, str, str]:
    """Describe the fits at one epsilon."""
    noise, lot, steps, *_ = SETTINGS[epsilon]
    accuracies = [100.0 * each["accuracy"] for each in fits]
    mean, spent = np.mean(accuracies), max(each["epsilon"] for each in fits)
    verdict = "reproduced" if mean >= PRINTED[epsilon] else "not reached"
    return (
        f"Figure 3: accuracy at ({epsilon:g}, 1e-5), {COMPONENTS} private components",
        f"{PRINTED[epsilon]} %",
        f"{mean:.2f} ± {np.std(accuracies):.2f} % ({len(fits)} seeds)",
        f"{verdict}; epsilon spent {spent:.4f} with the components (noise {noise:g}), "
        f"{steps} steps on batches of {lot}, {np.mean([each['seconds'] for each in fits]):.0f} s",
    )


def main(fast: bool) -> None:
    images, fits = load_images(fast), []
    for epsilon in (8.0,) if fast else SETTINGS:
        for seed in range(1 if fast else SEEDS):
            fits.append(fit(epsilon, seed, images, fast))
            print(fits[-1], flush=True)
    if not fast:
        RESULTS.write_text(json.dumps(fits, indent=1) + "\n")


if __name__ == "__main__":
    main("--fast" in sys.argv[1:])
