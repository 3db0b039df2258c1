"""Tramer and Boneh (2021): linear models on scattering features of images.

Scattering features are the same for all images in the world, and cost no privacy. Behind them
stands a private step: the mean row of features that were scaled to norm 1, released with a small
share of the budget. DP-SGD spends the rest on a softmax regression; a record is added or removed,
as in the paper.

Settings were chosen on MNIST's training rows alone: fits on rows 10,000 to 49,999, by a faster
stand-in for DP-SGD with the noise that all 60,000 rows allow, scored on the other 20,000. At
epsilon = 2 they had 98.34 % with momentum 0.9 and 98.67 % without, with longer steps and more
averaging; without noise the features gave 98.8 %. What the choice itself reveals is not charged.
Fashion-MNIST has the same settings but for twice as many steps of half the length: on the same part
of its own training rows 90.3 %, not 89.6 %, at epsilon = 2.7 (91.6 % without noise).

Tests with earlier settings: on MNIST with momentum 98.06 and 98.12 % at epsilon = 1.2, 98.07 % at 2
and 98.18 % at 2.43, one fit each; on Fashion-MNIST with 200 steps 89.05 % at 2.7 and 89.08 % at 3,
means of three.

    python examples/paper/scattering.py         # of SKDP_DATA: writes results/scattering.json
    python examples/paper/scattering.py --fast  # digits, seconds: prints
"""

import json
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from _images import load_arrays
from sklearn.linear_model import LogisticRegression

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
from skdp.preprocessing import DPStandardScaler, RowNormClipper, ScatteringTransform

TITLE = "Tramer and Boneh: better features"
RESULTS = Path(__file__).parent / "results" / "scattering.json"
CONDITIONS = (
    ("cells", "test accuracy of a linear model on scattering features; mean and range of 3 fits"),
    ("adjacency", "add-remove; epsilon includes the mean"),
    ("settings", "chosen on training rows"),
)
DELTA, SEEDS = 1e-5, 3
MEAN_NOISE = 20.0  # of the sum of rows, over its sensitivity
LOT, CLIP = 8192, 0.03
STEPS = {"mnist": 200, "fashion_mnist": 400, "digits": 30}
# Length of all steps together for each unit of epsilon: the less noise, the longer they may be.
TRAVEL = 1.3e6
# Sets of images, and what the paper prints for each epsilon.
PRINTED = {
    "mnist": {1.2: "98.1 %", 2.0: "98.5 %", 2.43: "98.6 %"},
    "fashion_mnist": {2.7: "89.5 %", 3.0: "89.7 %"},
}
NAMES = {"mnist": "MNIST", "fashion_mnist": "Fashion-MNIST", "digits": "digits"}
BLOCK = 2000


def plan(noise: float, rate: float, steps: int) -> Event:
    """Return all releases: the mean, then steps on lots."""
    step = PoissonSampledEvent(rate, GaussianEvent(noise))
    return ComposedEvent((GaussianEvent(MEAN_NOISE), RepeatedEvent(step, steps)))


def scatter(images: Any) -> Any:
    """Return features of images of pixels in [0, 1], each row of norm 1."""
    scattering = ScatteringTransform(images.shape[1:], normalize_groups=27)
    rows = images.reshape(len(images), -1)
    scattering.fit(rows[:1])
    unit = RowNormClipper(1.0, method="scale").fit(scattering.transform(rows[:1]))
    return in_blocks(rows, scattering, unit)


def in_blocks(rows: Any, *transformers: Any) -> Any:
    """Transform rows a block at a time, so that memory holds little but the outcome."""
    outcome = None
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        for transformer in transformers:
            block = transformer.transform(block)
        if outcome is None:
            outcome = np.empty((len(rows), block.shape[1]), np.float32)
        outcome[start : start + BLOCK] = block
    return outcome


def centre(tables: Any, seed: int) -> tuple[Any, Event]:
    """Return rows of norm 1 behind a private mean, and what was released."""
    scaler = DPStandardScaler(
        analytic_gaussian_epsilon(MEAN_NOISE, DELTA),
        DELTA,
        input_norm=1.0,
        with_std=False,
        adjacency="add-remove",
        random_state=seed,
    ).fit(tables[0])
    unit = RowNormClipper(1.0, method="scale").fit(tables[0][:1])
    X, X_test = (in_blocks(rows, scaler, unit) for rows in tables[::2])
    return (X, tables[1], X_test, tables[3]), scaler.privacy_spent_.event


def fit(tables: Any, mean: Event, epsilon: float, seed: int, steps: int) -> dict[str, Any]:
    """Train within what is left of the budget, and test."""
    X, y, X_test, y_test = tables
    start, wall = time.process_time(), time.perf_counter()
    lot = min(LOT, len(X) // 2)
    model = DPSGDClassifier(
        epsilon=None,
        delta=DELTA,
        noise_multiplier=calibrate_event(
            lambda noise: plan(noise, lot / len(X), steps), epsilon, DELTA
        ),
        adjacency="add-remove",
        data_norm=1.0,
        classes=range(10),
        alpha=0.0,
        max_grad_norm=CLIP,
        batch_size=lot,
        max_iter=steps,
        momentum=0.0,
        learning_rate_init=TRAVEL * epsilon / steps,
        average=0.5,
        random_state=seed,
    ).fit(X, y)
    events = ComposedEvent((mean, model.privacy_spent_.event))
    return {
        "target": epsilon,
        "seed": seed,
        "epsilon": float(PLDAccountant().compose(events).epsilon(DELTA)),
        "accuracy": model.score(X_test, y_test),
        "seconds": [time.process_time() - start, time.perf_counter() - wall],
    }


def rows() -> list[tuple[str, str, str, str]]:
    """Return experiment, paper's value, our value and verdict of each reproduction."""
    results = json.loads(RESULTS.read_text())
    return [row for name, found in results.items() for row in rows_of(name, found)]


def rows_of(name: str, found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Describe the fits on one set of images."""
    fits = defaultdict(list)
    for each in found["private"]:
        fits[each["target"]].append(each)
    lines = []
    for epsilon, same in sorted(fits.items()):
        percents = [100.0 * each["accuracy"] for each in same]
        spent = max(each["epsilon"] for each in same)
        seconds = np.mean([each["seconds"] for each in same], axis=0)
        verdict = (
            f"{min(percents):.2f} to {max(percents):.2f}; epsilon spent {spent:.4f}; "
            f"{seconds[0]:.0f} s per fit, {found['features']:.0f} s for features"
        )
        experiment = f"{NAMES[name]} at ({epsilon:g}, 1e-5)"
        printed = PRINTED.get(name, {}).get(epsilon, "-")
        lines.append((experiment, printed, f"{np.mean(percents):.2f} %", verdict))
    return lines


def main(fast: bool) -> None:
    for name in ("digits",) if fast else sys.argv[1:] or PRINTED:
        images, y, test_images, y_test = load_arrays(name)
        start = time.process_time()
        X, X_test = scatter(images), scatter(test_images)
        tables = X, y, X_test, y_test
        found: dict[str, Any] = {"features": time.process_time() - start, "private": []}
        if fast:
            print(
                "accuracy without privacy:",
                LogisticRegression(max_iter=200).fit(X, y).score(X_test, y_test),
            )
        for seed in range(1 if fast else SEEDS):
            ready, mean = centre(tables, seed)
            for epsilon in (8.0,) if fast else PRINTED[name]:
                found["private"].append(fit(ready, mean, epsilon, seed, STEPS[name]))
                print(*rows_of(name, found), sep="\n", flush=True)
                if not fast:
                    keep(name, found)


def keep(name: str, found: dict[str, Any]) -> None:
    """Write the outcomes on one set of images beside those on others."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps(results | {name: found}, indent=1) + "\n")


if __name__ == "__main__":
    main("--fast" in sys.argv[1:])
