"""Accuracy of OPERA behind public bounds, private moments, private quantiles and private PCA.

Every row of a table has one total budget, epsilon = 1 for everything that was learned. A private
transformer takes a share of it: transformer and classifier are Gaussian releases, so that squares
of mu add up to the mu of the total. Numeric columns enter as they stand in the file; categories
follow the code book's schema in all rows. The tables are read from the directory that
--data or the environment variable SKDP_DATA names.

    python examples/benchmarks/preprocessing.py --seeds 10 --markdown preprocessing_table.md
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _datasets import data_directory
from sklearn.preprocessing import StandardScaler

from skdp import OperaLogisticRegression
from skdp.accounting.numerics import gaussian_profile
from skdp.datasets import fetch_adult, fetch_cardio
from skdp.preprocessing import DPPCA, BoundedScaler, DPQuantileClipper, DPStandardScaler

EPSILON, DELTA = 1.0, 1e-6

# Column: narrow public bounds (code book, clinic) and wide ones (whatever can be written down).
ADULT = {
    "age": ((17, 90), (0, 150)),
    "education_num": ((1, 16), (0, 50)),
    "capital_gain": ((0, 15000), (0, 1e6)),
    "capital_loss": ((0, 2500), (0, 1e5)),
    "hours_per_week": ((1, 80), (0, 168)),
}
CARDIO = {
    "age": ((30 * 365.25, 70 * 365.25), (0, 150 * 365.25)),
    "height": ((140, 200), (0, 300)),
    "weight": ((40, 130), (0, 500)),
    "ap_hi": ((80, 200), (0, 500)),
    "ap_lo": ((50, 120), (0, 500)),
}
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def split_budget(share: float) -> tuple[float, float]:
    """Return the epsilons of transformer and classifier for a share of the squared mu."""
    square = gaussian_profile.mu(EPSILON, DELTA) ** 2
    return tuple(  # type: ignore[return-value]
        gaussian_profile.epsilon(math.sqrt(part * square), DELTA) if part else 0.0
        for part in (share, 1.0 - share)
    )


def encoded(table: Any, columns: dict[str, Any], left_out: str = "") -> list[np.ndarray]:
    """Return numeric columns as they stand, the others by their schema, and labels 0 and 1."""
    frame = table.frame.dropna()
    schema = table.schema.select(
        column.name
        for column in table.schema.columns
        if column.is_feature and column.name != left_out and column.kind != "numeric"
    )
    others, labels = schema.split(frame)
    codes = (labels == schema.label.classes[1]).astype(int)
    return [
        frame[list(columns)].to_numpy(dtype=np.float64),
        schema.preprocessor().fit_transform(others),
        codes,
    ]


def adult(seeds: int) -> Iterator[Split]:
    """Yield (numbers, categories, labels) to train on and to test on: the split of UCI."""
    halves: list[np.ndarray] = []
    for subset in ("train", "test"):
        table = fetch_adult(path=data_directory(), subset=subset)
        halves += encoded(table, ADULT, left_out="education")
    for _ in range(seeds):
        yield tuple(halves)  # type: ignore[misc]


def cardio(seeds: int) -> Iterator[Split]:
    """Yield random 70/30 splits."""
    parts = encoded(fetch_cardio(path=data_directory()), CARDIO)
    rows = len(parts[0])
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(rows)
        held = round(0.3 * rows)
        train, test = order[held:], order[:held]
        yield (*(part[train] for part in parts), *(part[test] for part in parts))  # type: ignore


def accuracy(split: Split, scaler: Any, norm: float, epsilon: float, categories: int) -> float:
    """Fit the scaler on the numbers and OPERA on everything; return the accuracy held out."""
    number, category, labels, number_test, category_test, labels_test = split
    scaler = scaler.fit(number)
    train = np.hstack([scaler.transform(number), category])
    test = np.hstack([scaler.transform(number_test), category_test])
    model = OperaLogisticRegression(
        epsilon, DELTA, data_norm=math.hypot(norm, math.sqrt(categories)), classes=[0, 1]
    )
    return float(model.fit(train, labels).score(test, labels_test))


def scalers(columns: dict[str, Any]) -> Iterator[tuple[str, float, Callable[[float], Any]]]:
    """Yield name, share of the squared mu, and a function of epsilon that builds the scaler."""
    narrow, wide = (np.array([bounds[i] for bounds in columns.values()], float) for i in (0, 1))
    bounds = {"narrow": narrow.T, "wide": wide.T}
    for kind, (lower, upper) in bounds.items():
        yield (
            f"BoundedScaler, {kind} bounds",
            0.0,
            lambda e, a=lower, b=upper: BoundedScaler(a, b, row_norm=None),
        )
    for kind, (lower, upper) in bounds.items():
        for share in (0.05, 0.2):
            yield (
                f"DPStandardScaler, {kind} bounds",
                share,
                lambda e, a=lower, b=upper: DPStandardScaler(e, DELTA, lower=a, upper=b),
            )
    for share in (0.05, 0.2):
        yield (
            "DPQuantileClipper, no bounds",
            share,
            lambda e: DPQuantileClipper(e, DELTA, row_norm=None),
        )
    yield "StandardScaler (not private)", 0.0, lambda e: StandardScaler()


def compare_scalers(seeds: int) -> Iterator[str]:
    yield "| table | scaler | share of mu^2 | accuracy | sd |"
    yield "|---|---|---|---|---|"
    tables = (("adult", adult, ADULT, 7), ("cardio", cardio, CARDIO, 6))
    for table, load, columns, categories in tables:
        splits = list(load(seeds))
        for name, share, make in scalers(columns):
            first, second = split_budget(share)
            norm = math.sqrt(len(columns))
            scores = [accuracy(s, make(first), norm, second, categories) for s in splits]
            yield (
                f"| {table} | {name} | {share:.0%} | {np.mean(scores):.4f} | {np.std(scores):.4f} |"
            )


def compare_components(seeds: int) -> Iterator[str]:
    """Fashion-MNIST: 784 pixels of images scaled to norm 1, ten classes."""
    with np.load(data_directory() / "fashion_mnist.npz") as arrays:
        parts = [np.asarray(arrays[key]) for key in ("x_train", "y_train", "x_test", "y_test")]
    X, y, X_test, y_test = parts
    X, X_test = (
        (rows := images.reshape(len(images), -1).astype(np.float64))
        / np.linalg.norm(rows, axis=1, keepdims=True)
        for images in (X, X_test)
    )
    yield "| components | share of mu^2 | data_norm | accuracy | sd | seconds |"
    yield "|---|---|---|---|---|---|"
    variants: tuple[tuple[float, float, dict[str, Any] | None], ...] = (
        (0.0, 1.0, None),
        (0.2, 1.0, {"n_components": 20}),
        (0.1, 0.7, {"n_components": 50, "center": True}),
        (0.1, 3.0, {"n_components": 50, "center": True, "whiten": True}),
    )
    for share, norm, settings in variants:
        first, second = split_budget(share)
        scores, seconds = [], []
        for _ in range(seeds):
            start = time.perf_counter()
            train, test = X, X_test
            if settings is not None:
                pca = DPPCA(epsilon=first, delta=DELTA, data_norm=1.0, **settings).fit(X)
                train, test = pca.transform(X), pca.transform(X_test)
            model = OperaLogisticRegression(second, DELTA, data_norm=norm, classes=range(10))
            model.fit(train, y)
            seconds.append(time.perf_counter() - start)
            scores.append(model.score(test, y_test))
        label = ", ".join(f"{name}={value}" for name, value in (settings or {}).items())
        yield (
            f"| {label or 'all 784 pixels'} | {share:.0%} | {norm:g} | {np.mean(scores):.4f} | "
            f"{np.std(scores):.4f} | {np.median(seconds):.1f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", choices=("scalers", "components"))
    parser.add_argument("--markdown", type=Path, help="write the tables to this file")
    arguments = parser.parse_args()
    lines = []
    for part, compare in (("scalers", compare_scalers), ("components", compare_components)):
        if arguments.only in (None, part):
            for line in compare(arguments.seeds):
                print(line, flush=True)
                lines.append(line)
            lines.append("")
    if arguments.markdown:
        arguments.markdown.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
