"""Speed of private networks against the same network without privacy and against other libraries.

    python examples/benchmarks/networks.py --before ../older-checkout --markdown docs/speed.md

All take the same work: steps on lots of 1,024 of 100,000 rows of 100 numbers in single precision,
two hidden layers of 256 rectified units, one logistic output, momentum 0.9, two threads. PyTorch
and Opacus have rows of their own where they can be imported. An epoch's time is the difference of a
long and a short run, so that compiling, planning and accounting do not count; runs take turns and
the shortest of each kind counts, so that a busy machine disturbs all alike. Linear models are timed
beside those of an older checkout, if one is named.
"""

from __future__ import annotations

import os

THREADS = 2
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = str(THREADS)

import argparse
import itertools
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn.neural_network import MLPClassifier

from skdp import DPSGDClassifier

HEADING = "## Networks"
LOT, HIDDEN, RATE, MOMENTUM = 1024, (256, 256), 0.1, 0.9
PLAIN, PRIVATE = "plain numpy, not private", "**skdp, `DPSGDClassifier`**"
GHOST = "Opacus, ghost clipping, batches prepared in advance"
Run = Callable[[int], object]  # takes so many epochs
LINEAR = """
import time
import numpy as np
from skdp import DPSGDClassifier

rng = np.random.default_rng(0)
X = rng.standard_normal((100_000, 20)) / 20**0.5
y = (X[:, 0] + 0.2 * rng.standard_normal(len(X)) > 0).astype(int)
fits = (
    DPSGDClassifier(1.0, 1e-6, adjacency='add-remove', data_norm=2.0),
    DPSGDClassifier(None, 1e-6, noise_multiplier=1.0, data_norm=2.0, batch_size=1024, max_iter=977),
)
for fit in fits:
    fit.fit(X, y)
    start = time.perf_counter()
    fit.fit(X, y)
    print(time.perf_counter() - start)
"""


def make_table(n_rows: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of norm about 1 and labels of a rule that is not linear."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features), dtype=np.float32) / np.sqrt(n_features)
    scores = np.abs(X @ rng.standard_normal((n_features, 8))).sum(axis=1)
    return X.astype(np.float32), (scores > np.median(scores)).astype(int)


class PlainNetwork:
    """What a step costs at least: preallocated arrays, and three products a layer by the BLAS."""

    def __init__(self, n_features: int) -> None:
        rng = np.random.default_rng(0)
        sizes = (n_features, *HIDDEN, 1)
        shapes = list(itertools.pairwise(sizes))
        count = sum((m + 1) * n for m, n in shapes)
        self.weights, self.gradient, self.speed = np.zeros((3, count), dtype=np.float32)
        self.layers, self.slopes = (
            self.split(self.weights, shapes),
            self.split(self.gradient, shapes),
        )
        for matrix, _ in self.layers:
            matrix[:] = rng.standard_normal(matrix.shape) * np.sqrt(2.0 / len(matrix))
        self.rows = np.empty((LOT, n_features), dtype=np.float32)
        self.outputs = [np.empty((LOT, n), dtype=np.float32) for n in sizes[1:]]
        self.errors = [np.empty_like(output) for output in self.outputs]
        self.positive = [np.empty(output.shape, dtype=bool) for output in self.outputs]
        self.ones = np.ones(LOT, dtype=np.float32)

    @staticmethod
    def split(flat: np.ndarray, shapes: list[tuple[int, int]]) -> list[tuple[np.ndarray, ...]]:
        """Return weights and intercepts of each layer as views of one vector."""
        views, start = [], 0
        for m, n in shapes:
            middle, end = start + m * n, start + (m + 1) * n
            views.append((flat[start:middle].reshape(m, n), flat[middle:end]))
            start = end
        return views

    def step(self, X: np.ndarray, y: np.ndarray, lot: np.ndarray) -> None:
        """Take one step on the mean loss of the rows of a lot."""
        np.take(X, lot, axis=0, out=self.rows, mode="clip")
        inputs = [self.rows, *self.outputs]
        last = len(self.layers) - 1
        for k, (matrix, intercepts) in enumerate(self.layers):
            np.dot(inputs[k], matrix, out=self.outputs[k])
            self.outputs[k] += intercepts
            if k < last:
                np.maximum(self.outputs[k], 0.0, out=self.outputs[k])
        scores, error = self.outputs[-1][:, 0], self.errors[-1][:, 0]
        np.divide(1.0, 1.0 + np.exp(-scores), out=error)
        error -= y[lot]
        error /= LOT
        for k in range(last, -1, -1):
            matrix, intercepts = self.slopes[k]
            np.dot(inputs[k].T, self.errors[k], out=matrix)
            np.dot(self.ones, self.errors[k], out=intercepts)
            if k > 0:
                np.dot(self.errors[k], self.layers[k][0].T, out=self.errors[k - 1])
                np.greater(inputs[k], 0.0, out=self.positive[k - 1])
                self.errors[k - 1] *= self.positive[k - 1]
        self.speed *= MOMENTUM
        self.speed += self.gradient
        np.multiply(self.speed, RATE, out=self.gradient)
        self.weights -= self.gradient


def plain(X: np.ndarray, y: np.ndarray) -> Run:
    """Train the network without privacy, on lots of fixed size."""
    rng, labels = np.random.default_rng(0), y.astype(np.float32)

    def run(epochs: int) -> None:
        network = PlainNetwork(X.shape[1])
        for _ in range(steps_of(epochs, X)):
            network.step(X, labels, rng.integers(len(X), size=LOT))

    return run


def private(X: np.ndarray, y: np.ndarray) -> Run:
    """Fit by DP-SGD on Poisson lots."""

    def run(epochs: int) -> None:
        DPSGDClassifier(
            None,
            1e-6,
            noise_multiplier=1.0,
            hidden_layer_sizes=HIDDEN,
            data_norm=2.0,
            classes=(0, 1),
            max_grad_norm=1.0,
            batch_size=LOT,
            max_iter=steps_of(epochs, X),
            momentum=MOMENTUM,
            learning_rate_init=RATE,
        ).fit(X, y)

    return run


def of_sklearn(X: np.ndarray, y: np.ndarray, solver: str) -> Run:
    """Fit scikit-learn's network, which is not private."""

    def run(epochs: int) -> None:
        model = MLPClassifier(
            HIDDEN, solver=solver, batch_size=LOT, max_iter=epochs, n_iter_no_change=10**6
        )
        model.fit(X, y)

    return run


def of_torch(X: np.ndarray, y: np.ndarray) -> dict[str, Run]:
    """Train with PyTorch and Opacus, where they can be imported."""
    try:
        import opacus
        import torch
    except ImportError as missing:
        print(f"left out: {missing}", file=sys.stderr)
        return {}
    torch.set_num_threads(THREADS)
    rows, labels = torch.from_numpy(X), torch.from_numpy(y.astype(np.float32))[:, None]
    rng = np.random.default_rng(0)

    def prepare(lots: list[np.ndarray]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        return [(rows[lot], labels[lot]) for lot in lots]

    def fixed_lots(count: int) -> list[np.ndarray]:
        return [rng.integers(len(X), size=LOT) for _ in range(count)]

    def poisson_lots(count: int) -> list[np.ndarray]:
        counts = rng.binomial(len(X), LOT / len(X), size=count)
        return [rng.choice(len(X), size, replace=False) for size in counts]

    def build() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
        sizes, layers = (X.shape[1], *HIDDEN), []
        for m, n in itertools.pairwise(sizes):
            layers += [torch.nn.Linear(m, n), torch.nn.ReLU()]
        model = torch.nn.Sequential(*layers, torch.nn.Linear(sizes[-1], 1))
        return model, torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)

    def train(model, optimizer, loss, batches) -> None:
        for X_lot, y_lot in batches:
            optimizer.zero_grad()
            loss(model(X_lot), y_lot).backward()
            optimizer.step()

    lots = {"fixed": prepare(fixed_lots(50)), "Poisson": prepare(poisson_lots(50))}

    def not_private(epochs: int) -> None:
        batches = itertools.islice(itertools.cycle(lots["fixed"]), steps_of(epochs, X))
        train(*build(), torch.nn.BCEWithLogitsLoss(), batches)

    def ghost(epochs: int, own_loader: bool) -> None:
        model, optimizer = build()
        data = torch.utils.data.TensorDataset(rows, labels)
        model, optimizer, loss, loader = opacus.PrivacyEngine().make_private(
            module=model,
            optimizer=optimizer,
            criterion=torch.nn.BCEWithLogitsLoss(),
            data_loader=torch.utils.data.DataLoader(data, batch_size=LOT),
            noise_multiplier=1.0,
            max_grad_norm=1.0,
            grad_sample_mode="ghost",
        )
        own = (batch for _ in range(epochs + 1) for batch in loader)
        batches = own if own_loader else itertools.cycle(lots["Poisson"])
        train(model, optimizer, loss, itertools.islice(batches, steps_of(epochs, X)))

    return {
        "PyTorch, not private, batches prepared in advance": not_private,
        GHOST: lambda epochs: ghost(epochs, False),
        "Opacus, ghost clipping, its own loader": lambda epochs: ghost(epochs, True),
    }


def steps_of(epochs: int, X: np.ndarray) -> int:
    """Return how many lots hold as many rows as so many epochs."""
    return round(epochs * len(X) / LOT)


def epoch_seconds(runs: dict[str, Run], epochs: int, repeats: int) -> dict[str, float]:
    """Return the seconds of an epoch of each run, by the shortest of several; see the module."""
    shortest: dict[tuple[str, int], float] = {}
    for _ in range(repeats):
        for name, run in runs.items():
            for length in (1, 1 + epochs):
                start = time.perf_counter()
                run(length)
                took = time.perf_counter() - start
                shortest[name, length] = min(took, shortest.get((name, length), np.inf))
    return {name: (shortest[name, 1 + epochs] - shortest[name, 1]) / epochs for name in runs}


def networks(n_rows: int, n_features: int, epochs: int, repeats: int) -> Iterator[str]:
    """Yield one line for each way to train the network."""
    X, y = make_table(n_rows, n_features)
    runs = {PLAIN: plain(X, y), PRIVATE: private(X, y), **of_torch(X, y)}
    for solver in ("sgd", "adam"):
        runs[f"scikit-learn, `MLPClassifier(solver={solver!r})`, not private"] = of_sklearn(
            X, y, solver
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Too few epochs to converge; Opacus has its own remarks.
        seconds = epoch_seconds(runs, epochs, repeats)
    yield "| network | examples per second | ms per batch | plain step's time | skdp's time |\n"
    yield "|---|---|---|---|---|\n"
    for name, took in seconds.items():
        yield f"| {name} | {n_rows / took:,.0f} | {1e3 * took * LOT / n_rows:.2f} | "
        yield f"{took / seconds[PLAIN]:.2f} x | {took / seconds[PRIVATE]:.2f} x |\n"


def linear_models(before: Path, repeats: int) -> Iterator[str]:
    """Yield how long linear fits take now and in an older checkout, in processes of their own."""
    shortest = {}
    for _ in range(repeats):
        for place in (before, Path(__file__).parents[2]):
            environment = {**os.environ, "PYTHONPATH": str(place.resolve())}
            printed = subprocess.run(
                [sys.executable, "-c", LINEAR],
                check=True,
                capture_output=True,
                text=True,
                env=environment,
                cwd=place,
            ).stdout
            found = np.array(printed.split(), dtype=float)
            shortest[place] = np.minimum(found, shortest.get(place, np.inf))
    yield "| linear `DPSGDClassifier`, n = 100,000, d = 20 | before | now | now over before |\n"
    yield "|---|---|---|---|\n"
    names = ("defaults, complete fit", "ten epochs in batches of 1,024")
    for name, old, new in zip(names, *shortest.values(), strict=True):
        yield f"| {name} | {old:.3f} s | {new:.3f} s | {new / old:.2f} x |\n"


def main() -> None:
    """Print the tables, or put them at the end of a page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--before", type=Path, help="checkout to compare linear models with")
    parser.add_argument("--markdown", type=Path, help="the page whose last section to replace")
    arguments = parser.parse_args()
    busy = os.getloadavg()[0]
    table = networks(arguments.rows, arguments.columns, arguments.epochs, arguments.repeats)
    parts = [
        "| condition | value |\n|---|---|\n"
        f"| data | n = {arguments.rows:,}, d = {arguments.columns}, float32 |\n"
        f"| network | hidden layers {HIDDEN}, batches of {LOT:,} |\n"
        f"| repetitions | shortest of {arguments.repeats} alternating runs |\n"
        f"| machine | {THREADS} threads, load {busy:.1f} at the start |\n"
        f"| script | `python {Path(__file__).name}` in `examples/benchmarks` |\n",
        "".join(table),
    ]
    if arguments.before:
        parts.append("".join(linear_models(arguments.before, arguments.repeats)))
    text = "\n".join(parts)
    print(text)
    if arguments.markdown:
        kept = arguments.markdown.read_text().partition(HEADING)[0].rstrip()
        arguments.markdown.write_text(f"{kept}\n\n{HEADING}\n\n{text}")


if __name__ == "__main__":
    main()
