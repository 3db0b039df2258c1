"""Triastcyn and Faltings (2019), section 6.2: variational inference with three accountants.

Abalone (rings above the median or not) and Adult, as in Figures 4 and 5 and in Table 1. Four ways
to a logistic regression that is an average over weights:

- DPVI with the moments accountant (Jalko et al. 2017), gradients in mean and log deviation;
- DP-SGLD (Wang et al. 2015) with noise of two kinds in one, accounted for as Poisson samples of
  Gaussians, step by step;
- the paper's scheme: no noise, and ten samples of the posterior at the end. Its epsilons are
  diagnostics of the rows at hand and **no guarantee** of any record (docs/proofs/variational.md);
- skdp's `VariationalLogisticRegression` with its defaults, by privacy-loss distributions.

The step size of DPVI and of the paper's scheme was chosen of three by accuracy on the rows held
out, which favours them.

    python examples/paper/triastcyn_variational.py         # minutes; writes the results
    python examples/paper/triastcyn_variational.py --fast  # one seed of Abalone: prints
"""

import functools
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _ding_tables import _load_adult
from scipy.special import expit

from skdp import (
    DPSGDClassifier,
    ObjectivePerturbationLogisticRegression,
    OperaLogisticRegression,
    VariationalLogisticRegression,
)
from skdp.accounting import (
    BayesianAccountant,
    GaussianEvent,
    GenericAccountant,
    PLDAccountant,
    PoissonSampledEvent,
    calibrate_noise_multiplier,
)
from skdp.exceptions import CalibrationError

TITLE = "Triastcyn and Faltings: variational inference, section 6.2"
RESULTS = Path(__file__).parent / "results" / "triastcyn_variational.json"
CONDITIONS = (
    ("lists", "values at epsilon 0.1, 0.25, 0.5, 1.0 and 3.0"),
    ("MA", "smallest epsilon tried with an accuracy within .01 of that without noise"),
    ("GA, BA", "**no guarantee**: a diagnostic of the given rows; nothing hides a record"),
    ("GA", "largest of 100 pairs per step"),
    ("slope", "in parentheses; it should be 1"),
)
DELTA = {"Abalone": 1e-4, "Adult": 1e-5}  # the paper's are not in the text that we have
EPSILONS = (0.1, 0.25, 0.5, 1.0, 3.0)
STEPS, RATE, CLIP, PAIRS = 1000, 0.02, 1.0, 100
PRINTED = {"Abalone": ("7.6", "4.54", "0.11"), "Adult": ("2.90", "2.70", "0.08")}


def load(name: str) -> tuple[Any, ...]:
    """Return rows of norm 1 and labels 0 and 1, to train and to test on."""
    if name == "Adult":
        table = _load_adult()
        X, X_test = table.X.toarray(), table.X_test.toarray()
        return X, (table.signs > 0).astype(int), X_test, (table.signs_test > 0).astype(int)
    frame = pd.read_csv(Path(os.environ["SKDP_DATA"]) / "abalone.csv.gz")
    # Bounds in units of 200 mm and 200 g, as in its documentation.
    numbers = frame.drop(columns=["sex", "rings"]).to_numpy()
    numbers = np.clip(numbers / [1.0, 1.0, 0.5, 3.0, 1.5, 1.0, 1.2], 0.0, 1.0)
    X = np.column_stack([*(frame["sex"] == sex for sex in "FIM"), 2.0 * numbers - 1.0])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (frame["rings"] > 9).to_numpy().astype(int)  # the median is 9
    order = np.random.default_rng(0).permutation(len(y))
    test, train = np.split(order, [round(0.3 * len(y))])
    return X[train], y[train], X[test], y[test]


def cut(gradients: Any) -> Any:
    return gradients / np.maximum(1.0, np.linalg.norm(gradients, axis=1, keepdims=True) / CLIP)


def row_gradients(X: Any, y: Any, weights: Any) -> Any:
    return (expit(X @ weights) - y)[:, None] * X


def dpvi(X: Any, y: Any, noise: float, rng: Any, *, clip: bool = True, watch: Any = None) -> Any:
    """Return means and log deviations; one draw of the weights in each step, as printed."""
    n, d = X.shape
    mean, log_deviation = np.zeros(d), np.full(d, -2.0)
    squares = np.full(2 * d, (0.1 * n) ** 2)  # columns that are seldom used take no long steps
    for step in range(STEPS):
        rows = np.flatnonzero(rng.random(n) < RATE)
        draw = rng.standard_normal(d)
        each = row_gradients(X[rows], y[rows], mean + np.exp(log_deviation) * draw)
        both = np.hstack([each, each * draw * np.exp(log_deviation)])
        total = (cut(both) if clip else both).sum(axis=0) + noise * CLIP * rng.standard_normal(
            2 * d
        )
        public = np.concatenate([0.1 * mean, 0.1 * np.exp(2.0 * log_deviation) - 1.0])
        gradient = total / RATE + public  # of the whole table
        squares += gradient**2
        change = gradient / np.sqrt(squares)  # AdaGrad, as the papers take
        if watch is not None:
            watch(step, mean, log_deviation, draw, 1.0 / RATE / np.sqrt(squares))
        mean, log_deviation = mean - change[:d], np.clip(log_deviation - change[d:], -6.0, 1.0)
    return mean, log_deviation


def sgld(X: Any, y: Any, noise: float, rng: Any) -> Any:
    """Return the mean of the later weights of Langevin dynamics whose noise is the mechanism's."""
    n, d = X.shape
    weights, total = np.zeros(d), np.zeros(d)
    # A step h adds noise of variance h to the weights; the mechanism's is (h / 2 RATE * noise)^2.
    # Where that asks for more than a stable step, the mechanism's noise stands and runs too hot.
    size = min((2.0 * RATE / (noise * CLIP)) ** 2, 8.0 / n)
    for step in range(STEPS):
        rows = np.flatnonzero(rng.random(n) < RATE)
        gradient = cut(row_gradients(X[rows], y[rows], weights)).sum(axis=0)
        gradient += noise * CLIP * rng.standard_normal(d)
        weights = weights - 0.5 * size * (gradient / RATE + 0.1 * weights)
        total += weights if step >= STEPS // 2 else 0.0
    return total / (STEPS - STEPS // 2)


def sampled_scheme(table: Any, delta: float, rng: Any) -> dict[str, float]:
    """Run the paper's scheme without noise; look at how far pairs of rows move the posterior.

    Its releases are samples of the posterior: one in each step, and ten at the end.
    """
    X, y, X_test, y_test = table
    generic = GenericAccountant(subsampling="printed")
    bayesian = BayesianAccountant(gamma=1e-8, moments=range(1, 129))

    def watch(step: int, mean: Any, log_deviation: Any, draw: Any, pace: Any) -> None:
        if step % 20:  # every twentieth step stands for the next ones
            return
        pairs = rng.integers(len(y), size=(2, PAIRS))
        weights, half = mean + np.exp(log_deviation) * draw, len(mean)
        moved = [row_gradients(X[p], y[p], weights) * pace[:half] for p in pairs]
        squared = (((moved[0] - moved[1]) / np.exp(log_deviation)) ** 2).sum(axis=1)
        count = 20 if step + 20 < STEPS else 20 + round(10 / RATE)
        bayesian.observe(PoissonSampledEvent(RATE, GaussianEvent(1.0)), squared, count)
        far = np.sqrt(squared.max())  # the largest seen, which bounds nothing
        generic.compose(PoissonSampledEvent(RATE, GaussianEvent(1.0 / far)), count)

    mean, log_deviation = dpvi(X, y, 0.0, rng, clip=False, watch=watch)
    ten = mean + np.exp(log_deviation) * rng.standard_normal((10, len(mean)))
    return {
        "accuracy": float(((X_test @ ten.mean(axis=0) > 0) == y_test).mean()),
        "BA": float(bayesian.epsilon(delta)),
        "GA": float(generic.epsilon(delta)),
    }


def quality(clf: Any, X: Any, y: Any) -> dict[str, Any]:
    """Return accuracy, log loss, and the slope that a recalibration would multiply scores by.

    The curve holds mean probability and share of positives in ten parts of equal size.
    """
    p = np.clip(clf.predict_proba(X)[:, 1], 1e-12, 1.0 - 1e-12)
    scores, slope = np.log(p / (1.0 - p)), np.array([0.0, 1.0])
    columns = np.column_stack([np.ones_like(scores), scores])
    for _ in range(50):  # Newton's steps of a logistic regression on the score
        share = expit(columns @ slope)
        hessian = (columns.T * (share * (1.0 - share))) @ columns + 1e-9 * np.eye(2)
        slope = slope + np.clip(np.linalg.solve(hessian, columns.T @ (y - share)), -1.0, 1.0)
    loss = -np.mean(np.where(y == 1, np.log(p), np.log1p(-p)))
    tenths = np.array_split(np.argsort(p, kind="stable"), 10)
    return {
        "accuracy": float(((p > 0.5) == y).mean()),
        "loss": float(loss),
        "slope": slope[1],
        "curve": [[p[part].mean(), y[part].mean()] for part in tenths],
    }


def plain(epsilon: float, delta: float, seed: int) -> dict[str, Any]:
    shared = {"data_norm": 1.0, "classes": [0, 1], "random_state": seed, "adjacency": "add-remove"}
    kinds = {
        "skdp": VariationalLogisticRegression,
        "DP-SGD": DPSGDClassifier,
        "objective perturbation": ObjectivePerturbationLogisticRegression,
        "OPERA": OperaLogisticRegression,
    }
    fits = {name: kind(epsilon, delta, **shared) for name, kind in kinds.items()}
    without = VariationalLogisticRegression(epsilon, delta, noise_aware=False, **shared)
    return fits | {"skdp, noise ignored": without}


def run(name: str, seeds: int) -> dict[str, Any]:
    """Return, for each epsilon and method, the medians over seeds of each figure."""
    X, y, X_test, y_test = load(name)
    delta, found = DELTA[name], {}
    rival_data = (np.column_stack([X, np.ones(len(y))]) / np.sqrt(2.0), y)
    test = np.column_stack([X_test, np.ones(len(y_test))]) / np.sqrt(2.0)
    for epsilon in EPSILONS:
        rows: dict[str, list[Any]] = {}
        try:
            moments = calibrate_noise_multiplier(epsilon, delta, RATE, STEPS, accountant="moments")
        except CalibrationError:  # 32 moments cannot prove an epsilon below log(1 / delta) / 32
            moments = np.inf
        exact = calibrate_noise_multiplier(epsilon, delta, RATE, STEPS)
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            for method, fit in plain(epsilon, delta, seed).items():
                rows.setdefault(method, []).append(quality(fit.fit(X, y), X_test, y_test))
            rivals = {"DP-SGLD": sgld(*rival_data, exact, rng)}
            if moments < np.inf:
                rivals["DPVI-MA"] = dpvi(*rival_data, moments, rng)[0]
            for method, w in rivals.items():
                accuracy = float(((test @ w > 0) == y_test).mean())
                rows.setdefault(method, []).append({"accuracy": accuracy})
        found[str(epsilon)] = {
            method: {
                key: np.median([r[key] for r in each], axis=0).round(4).tolist() for key in each[0]
            }
            for method, each in rows.items()
        }
        print(name, epsilon, found[str(epsilon)], flush=True)
    whole = (*rival_data, test, y_test)
    scheme = [sampled_scheme(whole, delta, np.random.default_rng(s)) for s in range(seeds)]
    medians = {key: float(np.median([each[key] for each in scheme])) for key in scheme[0]}
    print(name, "no noise, ten samples", medians, flush=True)
    return {"private": found, "sampling": medians}


def unseen_record() -> tuple[float, float]:
    """Return BA's epsilon and the true one for a record that no pair holds.

    It is the counterexample of docs/proofs/variational.md, at delta = 1e-5: one sample of a
    posterior that the record moves by five deviations, among rows that are all equal.
    """
    diagnostic = BayesianAccountant(moments=range(1, 129))
    diagnostic.observe(GaussianEvent(1.0), np.zeros(PAIRS))
    truth = PLDAccountant().compose(GaussianEvent(0.2))
    return float(diagnostic.epsilon(1e-5)), float(truth.epsilon(1e-5))


@functools.cache
def results() -> dict[str, Any]:
    return json.loads(RESULTS.read_text())


def least_epsilon(private: dict[str, Any], method: str, accuracy: float) -> str:
    """Return the least epsilon of the list from which a method has an accuracy."""
    every = {e: found[method] for e, found in private.items() if method in found}
    enough = [e for e, found in every.items() if found["accuracy"] >= accuracy]
    return enough[0] if enough else f"more than {EPSILONS[-1]:g}"


def rows() -> list[tuple[str, str, str, str]]:
    """Return experiment, paper's value, our value and verdict of each reproduction."""
    seen, truth = unseen_record()
    case = "(not in the paper) one sample moved by five deviations, by a record in no pair"
    verdict = "**no guarantee**: BA bounds no record's loss"
    table = [(case, "-", f"BA {seen:.2f}, true epsilon {truth:.1f}", verdict)]
    for name, found in results()["tables"].items():
        private, sampled = found["private"], found["sampling"]
        goal = sampled["accuracy"] - 0.01
        what = f"Table 1: epsilon on {name}"
        accuracy = f"{sampled['accuracy']:.3f}"
        within = f"accuracy without noise: {accuracy}"
        ma, ga, ba = PRINTED[name]
        reach = [least_epsilon(private, method, goal) for method in ("DPVI-MA", "DP-SGLD", "skdp")]
        none = "**no guarantee**"
        table += [
            (
                f"{what}, MA",
                ma,
                f"{reach[0]} (DPVI; {within})",
                "a guarantee",
            ),
            (f"{what}, GA", ga, f"{sampled['GA']:.3g}", none),
            (f"{what}, BA", ba, f"{sampled['BA']:.3g}", none),
            (f"{what}, PLD", "-", f"{reach[2]} (skdp); {reach[1]} (DP-SGLD)", "guarantees"),
        ]
        figure = {"Abalone": "Figure 4", "Adult": "Figure 5"}[name]
        for method in ("DPVI-MA", "DP-SGLD", "skdp"):
            every = [each.get(method, {"accuracy": np.nan}) for each in private.values()]
            accuracy = ", ".join(f"{each['accuracy']:.3f}" for each in every).replace("nan", "-")
            what = f"{figure}: accuracy on {name}, {method}"
            table.append((what, "(a picture)", accuracy, "a guarantee"))
        chosen = (*plain(1.0, 1e-5, 0),)
        for method in chosen:
            pairs = (
                f"{e[method]['loss']:.3f} ({e[method]['slope']:.2f})" for e in private.values()
            )
            what = f"(not in the paper) {name}: log loss and slope of {method}"
            table.append((what, "-", ", ".join(pairs), "a guarantee"))
    return table


def main(fast: bool) -> None:
    start = time.process_time()
    tables = {name: run(name, 1 if fast else 5) for name in list(DELTA)[: 1 if fast else 2]}
    print(f"{time.process_time() - start:.0f} s")
    if not fast:
        RESULTS.write_text(json.dumps({"tables": tables}) + "\n")


if __name__ == "__main__":
    main("--fast" in sys.argv[1:])
