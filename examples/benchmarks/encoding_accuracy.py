"""ROC AUC by encoding: what a schema declares, the automatic encoding, and bounds alone.

Estimators keep their defaults and fit under add-remove adjacency; of their mean areas the larger
one counts. The tables are read from the directory that --data or SKDP_DATA names; the
simulated ones, on which the encoding's constants were chosen, need none.

    python examples/benchmarks/encoding_accuracy.py --seeds 10
    python examples/benchmarks/encoding_accuracy.py --only simulated --seeds 8
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from _datasets import data_directory
from sklearn.metrics import roc_auc_score

from skdp import DPSGDClassifier, ObjectivePerturbationLogisticRegression, datasets
from skdp.preprocessing import NumericColumn, TableSchema

DELTA = 1e-6
ESTIMATORS = {"objective": ObjectivePerturbationLogisticRegression, "dpsgd": DPSGDClassifier}
TABLES = ("adult", "bank", "cardio", "support2")
PAIRS = {"bank": [("day", "month")]}
Rows = np.ndarray
Parts = tuple[Rows, Rows, Rows, Rows]  # rows and labels to fit on, and to test on


def frames(name: str, seeds: int, directory: Any) -> Iterator[tuple[Any, Any]]:
    """Yield a frame to fit on and one to test on for each seed; Adult has a split of its own."""
    if name == "adult":
        parts = [datasets.fetch_adult(path=directory, subset=s).frame for s in ("train", "test")]
        for _ in range(seeds):
            yield parts[0].dropna(), parts[1].dropna()
        return
    frame = getattr(datasets, f"fetch_{name}")(path=directory).frame
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(frame))
        held = round(0.3 * len(frame))
        yield frame.iloc[order[held:]], frame.iloc[order[:held]]


def schemas(name: str) -> dict[str, TableSchema]:
    """Return the schemas that are compared, by the name of the encoding."""
    ready = datasets.load_schema(name)
    found = {"declared": ready, "auto": ready.with_encoding("auto"), "bounds": by_bounds(ready)}
    if name in PAIRS:
        found["auto, pair"] = found["auto"].replace(interactions=PAIRS[name])
    return found


def by_bounds(ready: TableSchema) -> TableSchema:
    """Return a schema that knows of a ready one its bounds, lists and ignored columns alone."""
    known: dict[str, Any] = {
        column.name: (column.lower, column.upper)
        if isinstance(column, NumericColumn)
        else list(column.listed())
        for column in ready.columns
        if column.is_feature
    }
    target = ready.label.name
    plain = TableSchema.from_bounds({**known, target: ready.label.classes}, label=target)
    ignored = tuple(column for column in ready.columns if not column.is_feature)
    return plain.replace(columns=(*plain.columns, *ignored), label=ready.label)


def encode(schema: TableSchema, frame: Any, test: Any) -> Parts:
    """Return encoded rows and labels, True for the second class."""
    preprocessor = schema.preprocessor()
    (X, y), (X_test, y_test) = schema.split(frame), schema.split(test)
    positive = schema.label.classes[1]
    return (
        preprocessor.fit_transform(X),
        y == positive,
        preprocessor.transform(X_test),
        y_test == positive,
    )


def area(estimator: Any, epsilon: float, norm: float, parts: Parts, seed: int) -> float:
    """Return the ROC AUC on test rows."""
    X, y, X_test, y_test = parts
    model = estimator(
        epsilon=epsilon,
        delta=DELTA,
        adjacency="add-remove",
        data_norm=norm,
        classes=[False, True],
        random_state=seed,
    ).fit(X, y)
    return float(roc_auc_score(y_test, model.decision_function(X_test)))


def compare_tables(options: argparse.Namespace, name: str) -> Iterator[str]:
    """Yield one line of markdown for each encoding of a table."""
    compared = schemas(name)
    splits = list(frames(name, options.seeds, data_directory(options.data)))
    for encoding, schema in compared.items():
        found: dict[tuple[str, float], list[float]] = {}
        for seed, split in enumerate(splits):
            parts = encode(schema, *split)
            for chosen in options.estimators:
                for epsilon in options.epsilons:
                    reached = area(ESTIMATORS[chosen], epsilon, schema.data_norm, parts, seed)
                    found.setdefault((chosen, epsilon), []).append(reached)
        best = [
            max(float(np.mean(found[chosen, epsilon])) for chosen in options.estimators)
            for epsilon in options.epsilons
        ]
        yield row(f"{name} | {encoding} | {parts[0].shape[1]}", best)


# ------------------------------------------------------------------------------ simulated tables
def steps(count: int) -> Callable[[Rows], Rows]:
    """Return steps at equally spaced cuts, of norm 1."""
    cuts = (np.arange(count) + 0.5) / count
    return lambda u: np.where(u[:, None] >= cuts, 1.0, -1.0) / np.sqrt(count)


def waves(count: int) -> Callable[[Rows], Rows]:
    """Return cosines and sines of the first odd numbers of half waves, of norm 1."""
    odd = 2 * np.arange(count) + 1

    def block(u: Rows) -> Rows:
        turns = np.pi * u[:, None] * odd
        return np.hstack([np.cos(turns) / odd, np.sin(turns) / odd]) / np.sqrt((1.0 / odd**2).sum())

    return block


def mixed(share: float, block: Callable[[Rows], Rows]) -> Callable[[Rows], Rows]:
    """Return a block beside a linear feature, which has a share of the squared norm."""
    return lambda u: np.hstack(
        [np.sqrt(share) * (2.0 * u[:, None] - 1.0), np.sqrt(1.0 - share) * block(u)]
    )


BLOCKS = {
    "linear": lambda u: 2.0 * u[:, None] - 1.0,
    "64 steps, half linear": mixed(0.5, steps(64)),
    "8 waves, half linear": mixed(0.5, waves(8)),
    "4 waves": waves(4),
    "8 waves": waves(8),
    "16 waves": waves(16),
}


def simulate(seed: int, n: int) -> tuple[list[Rows], Rows]:
    """Draw positions between bounds (on the square-root scale), and labels.

    Columns are bell-shaped, skewed, uniform or often zero, and act by their ranks: in a line, a
    valley, a step or a wave.
    """
    rng = np.random.default_rng(seed)
    common, score, columns = rng.standard_normal(n), np.zeros(n), []
    for _ in range(rng.integers(5, 15)):
        normal = 0.4 * common + np.sqrt(0.84) * rng.standard_normal(n)
        values, upper = [
            (50.0 + 12.0 * normal, 120.0),
            (np.exp(1.0 + 1.2 * normal), 300.0),
            (rng.uniform(0.0, 100.0, n), 100.0),
            (np.where(rng.random(n) < 0.6, 0.0, np.exp(3.0 + normal)), 1000.0),
        ][rng.integers(4)]
        rank = np.argsort(np.argsort(values + 1e-9 * rng.random(n))) / n
        cut = rng.uniform(0.2, 0.9)
        curve = [
            rank,
            rank,
            4.0 * (rank - 0.5) ** 2,
            rank > cut,
            0.7 * np.sin(2.0 * np.pi * rank),
        ][rng.integers(5)]
        score += rng.choice([-1.0, 1.0]) * rng.uniform(0.3, 2.5) * (curve - np.mean(curve))
        columns.append(np.sqrt(np.clip(values / upper, 0.0, 1.0)))
    score -= rng.choice([0.0, 2.0])
    return columns, rng.random(n) < 1.0 / (1.0 + np.exp(-score))


def compare_simulated(options: argparse.Namespace) -> Iterator[str]:
    """Yield one line of markdown for each block of features and number of rows."""
    for n in (1500, 15_000):
        tables = [simulate(seed, n + 10_000) for seed in range(options.seeds)]
        for name, block in BLOCKS.items():
            means = []
            for epsilon in options.epsilons:
                areas = []
                for seed, (columns, y) in enumerate(tables):
                    rows = np.hstack([block(column) for column in columns])
                    parts = rows[:n], y[:n], rows[n:], y[n:]
                    estimator = ESTIMATORS[options.estimators[0]]
                    areas.append(area(estimator, epsilon, len(columns) ** 0.5, parts, seed))
                means.append(float(np.mean(areas)))
            yield row(f"n = {n:,} | {name} | {rows.shape[1] // len(columns)}", means)


def row(start: str, areas: list[float]) -> str:
    return " | ".join([f"| {start}", *(f"{mean:.4f}" for mean in areas)]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="directory of the data files")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 0.5, 1.0, 3.0, 8.0])
    parser.add_argument("--estimators", nargs="+", choices=ESTIMATORS, default=list(ESTIMATORS))
    parser.add_argument("--only", nargs="+", choices=("simulated", *TABLES), default=TABLES)
    options = parser.parse_args()
    print(row("table | encoding | columns", []) + " | ".join(map(str, options.epsilons)) + " |")
    print("|---" * (3 + len(options.epsilons)) + "|")
    for name in options.only:
        lines = compare_simulated(options) if name == "simulated" else compare_tables(options, name)
        for line in lines:
            print(line, flush=True)


if __name__ == "__main__":
    main()
