r"""Does a private Gram of the rows help classifiers? The same budget, shared or not.

"gram": a quarter of squared mu goes to noisy second moments of the rows. These are turned and
scaled by what follows from it, shortened to a public length there, and given to a classifier with
what is left. "columns": a twentieth goes to those of single columns. "scaler": a tenth goes to
`DPStandardScaler`, a step that anybody can put in front. Uneven columns are the schemas' times 1
to 1/30, in random order; the bound on rows shrinks as their mean square does. Tables are read from
--data or SKDP_DATA.

    python examples/benchmarks/preconditioning.py --seeds 5
    python examples/benchmarks/preconditioning.py --simulated 30
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from _datasets import load_adult, load_bank, load_cardio, load_support2
from _simulated_tables import draw_table
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from skdp import DPSGDClassifier, GrpuaLogisticRegression
from skdp.mechanisms.analytic_gaussian import analytic_gaussian_epsilon, analytic_gaussian_sigma
from skdp.plans.second_moments import unpack_matrix
from skdp.preprocessing import DPStandardScaler

EPSILONS = (0.1, 0.54, 1.0, 3.0)
# Shares of squared mu.
WAYS = {"none": 0.0, "gram": 0.25, "columns": 0.05, "scaler": 0.1}
# Rows longer than this, in root mean squares of their lengths, are shortened.
REACH = 1.25
ESTIMATORS = {
    "DPSGDClassifier": DPSGDClassifier,
    "GrpuaLogisticRegression": GrpuaLogisticRegression,
}


def shorten(X: Any, norm: float) -> Any:
    """Return rows over the norm, the longer ones of length 1."""
    return X / np.maximum(norm, np.linalg.norm(X, axis=1))[:, np.newaxis]


def even_out(X: Any, way: str, sigma: float, rng: Any) -> tuple[Any, float]:
    """Return a matrix that makes rows even, and about the root mean square of their lengths then.

    It follows from noisy moments; rows have norm 1 at most.
    """
    n, d = X.shape
    noise = unpack_matrix(sigma * rng.standard_normal(d * (d + 1) // 2), d)
    if way == "columns":
        values, vectors = np.einsum("ij,ij->j", X, X) + np.diag(noise), np.eye(d)
        floor = sigma * math.sqrt(2.0 * math.log(d + 1.0))  # about the largest noise
    else:
        values, vectors = np.linalg.eigh(X.T @ X + noise)
        floor = 0.25 * sigma * math.sqrt(2.0 * d)  # a quarter of the edge of the noise's spectrum
    values = np.maximum(values, 0.0)
    lifted = values + floor + 1e-9 * n
    return vectors / np.sqrt(lifted), math.sqrt(max(np.sum(values / lifted), 1e-9) / n)


def judge(cls: Any, way: str, table: Any, norm: float, epsilon: float, seed: int) -> list[float]:
    """Return ROC AUC and accuracy of a classifier on test rows."""
    X, y, X_test, y_test = table
    X, X_test = shorten(X, norm), shorten(X_test, norm)
    delta = 1e-5 if len(y) < 1000 else 1e-6
    sigma = analytic_gaussian_sigma(epsilon, delta)
    relation = "add-remove" if cls is DPSGDClassifier else "replace-one"
    share = WAYS[way]

    def part(share: float) -> float:
        return float(analytic_gaussian_epsilon(sigma / math.sqrt(share), delta))

    left = epsilon if way == "none" else part(1.0 - share)
    model = cls(left, delta, adjacency=relation, data_norm=1.0, random_state=seed)
    if way in ("gram", "columns"):
        diameter = 1.0 if relation == "add-remove" else math.sqrt(2.0)
        noise = diameter * sigma / math.sqrt(share)
        basis, length = even_out(X, way, noise, np.random.default_rng([7, seed]))
        X, X_test = shorten(X @ basis, REACH * length), shorten(X_test @ basis, REACH * length)
    if way == "scaler":
        scaler = DPStandardScaler(part(share), delta, input_norm=1.0, adjacency=relation)
        model.set_params(data_norm=math.sqrt(X.shape[1]))
        model = make_pipeline(scaler.set_params(random_state=seed), model)
    scores = model.fit(X, y).decision_function(X_test)
    return [roc_auc_score(y_test, scores), np.mean((scores > 0.0) == (y_test == 1))]


def splits(arguments: Any) -> Iterator[tuple[str, list[tuple[Any, float, int]]]]:
    """Yield tables by name, each with its splits, its bound on rows and the seeds of noise."""
    if arguments.simulated:
        drawn = (draw_table(arguments.first + k) for k in range(arguments.simulated))
        every = [((t.X, t.y, t.X_test, t.y_test), t.data_norm, k) for k, t in enumerate(drawn)]
        yield "simulated", [case for case in every if len(case[0][1]) <= 20_000]
        return
    for load in (load_support2, load_cardio, load_bank, load_adult):
        table = load(arguments.data)
        if arguments.only and table.name not in arguments.only:
            continue
        parts = enumerate(table.splits(arguments.seeds))
        yield table.name, [(part, table.data_norm, seed) for seed, part in parts]


def spoil(part: Any, norm: float, seed: int) -> tuple[Any, float]:
    """Return a table with uneven columns, and a bound on rows that is as tight as before."""
    X, y, X_test, y_test = part
    scales = np.geomspace(1.0, 1.0 / 30.0, X.shape[1])
    scales = np.random.default_rng([11, seed]).permutation(scales)
    return (X * scales, y, X_test * scales, y_test), norm * math.sqrt(np.mean(scales**2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="directory of the data files")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--simulated", type=int, default=0, help="number of simulated tables")
    parser.add_argument("--first", type=int, default=0, help="seed of the first of them")
    parser.add_argument("--estimators", nargs="*", default=list(ESTIMATORS))
    parser.add_argument("--only", nargs="*", help="names of the tables to run")
    arguments = parser.parse_args()
    print("ROC AUC; accuracy of no Gram, and what each way adds to both (standard error of AUC)\n")
    names = " | ".join(list(WAYS)[1:])
    print(f"| table | columns | estimator | epsilon | none | {names} |\n" + "|---" * 7 + "|")
    for name, cases in splits(arguments):
        for estimator, uneven, epsilon in product(arguments.estimators, (False, True), EPSILONS):
            found: dict[str, Any] = {way: [] for way in WAYS}
            for part, norm, seed in cases:
                rows, bound = spoil(part, norm, seed) if uneven else (part, norm)
                for way in WAYS:
                    figures = judge(ESTIMATORS[estimator], way, rows, bound, epsilon, seed)
                    found[way].append(figures)
            plain, *others = (np.array(figures) for figures in found.values())
            cells = [f"{plain[:, 0].mean():.3f}; {plain[:, 1].mean():.3f}"]
            for other in others:
                more = other - plain
                error = more[:, 0].std() / math.sqrt(len(more))
                cells.append(f"{more[:, 0].mean():+.3f} ({error:.3f}); {more[:, 1].mean():+.3f}")
            columns = "uneven" if uneven else "declared"
            print(
                f"| {name} | {columns} | {estimator} | {epsilon:g} | {' | '.join(cells)} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
