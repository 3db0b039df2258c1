"""Speed and memory against scikit-learn, as ratios in one run on one thread.

    python examples/benchmarks/speed.py --markdown docs/speed.md

Seconds depend on the machine; the ratios are what the documentation quotes. Each pair is timed
alternately and the medians are compared, so that a busy machine disturbs both alike.
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np


def make_table(n_rows: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return correlated rows of norm at most 1 and labels of a noisy linear rule."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features))
    X[:, 1:] += 0.5 * X[:, :-1]
    X /= np.sqrt(np.einsum("ij,ij->i", X, X)).max()
    weights = rng.standard_normal(n_features)
    scores = X @ weights
    y = (scores + 0.5 * scores.std() * rng.standard_normal(n_rows) > 0).astype(int)
    return X, y


def median_seconds(*calls: Callable[[], object], repeats: int) -> list[float]:
    """Time calls alternately; return each one's median."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for call, record in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            record.append(time.perf_counter() - start)
    return [statistics.median(record) for record in times]


def output_perturbation(X: np.ndarray, y: np.ndarray, repeats: int) -> list[str]:
    """Time OPERA logistic regression against scikit-learn's lbfgs at the same penalty."""
    from sklearn.linear_model import LogisticRegression

    from skdp import OperaLogisticRegression

    lines = []
    for alpha in (1e-2, 1e-3, 1e-4):
        ours = OperaLogisticRegression(delta=1e-8, data_norm=1.0, alpha=alpha)
        theirs = LogisticRegression(C=1.0 / (alpha * len(y)), solver="lbfgs", max_iter=1000)
        ours.fit(X[:1000], y[:1000])
        mine, other = median_seconds(
            lambda ours=ours: ours.fit(X, y),
            lambda theirs=theirs: theirs.fit(X, y),
            repeats=repeats,
        )
        lines.append(
            f"| OperaLogisticRegression, alpha={alpha:g} | {mine:.2f} s | "
            f"LogisticRegression(solver='lbfgs') | {other:.2f} s | {mine / other:.2f} x the time |"
        )
    return lines


def objective_perturbation(X: np.ndarray, y: np.ndarray, repeats: int) -> list[str]:
    """Time objective perturbation against scikit-learn's lbfgs without the random term."""
    from sklearn.linear_model import LogisticRegression

    from skdp import ObjectivePerturbationLogisticRegression, ObjectivePerturbationSVC

    lines = []
    # Rows have norm 1, so that C=1 is a penalty of 1/n on the mean: about what "auto" takes.
    theirs = LogisticRegression(C=1.0, solver="lbfgs", max_iter=1000)
    for estimator, settings in (
        (ObjectivePerturbationLogisticRegression, {}),
        (ObjectivePerturbationLogisticRegression, {"alpha": 1.0 / len(y), "max_grad_norm": None}),
        (ObjectivePerturbationSVC, {}),
    ):
        ours = estimator(delta=1e-8, data_norm=1.0, **settings)
        estimator(delta=1e-8, data_norm=1.0).fit(X[:5000], y[:5000])
        mine, other = median_seconds(
            lambda ours=ours: ours.fit(X, y), lambda: theirs.fit(X, y), repeats=repeats
        )
        label = ", alpha=1/n, not clipped" if settings else ""
        lines.append(
            f"| {estimator.__name__}{label} | {mine:.2f} s | "
            f"LogisticRegression(solver='lbfgs'), C=1 | {other:.2f} s | "
            f"{mine / other:.2f} x the time |"
        )
    return lines


def noisy_epochs(X: np.ndarray, y: np.ndarray, repeats: int) -> list[str]:
    """Time one epoch of DP-SGD in lots of 1,024 against one epoch of SGDClassifier."""
    from sklearn.linear_model import SGDClassifier

    from skdp import DPSGDClassifier

    n_rows = len(y)
    steps = round(n_rows / 1024)
    theirs = SGDClassifier(loss="log_loss", max_iter=1, tol=None)
    lines = []
    for label, settings in (
        ("float64", {}),
        ("float64, Adam", {"solver": "adam"}),
        ("float32", {"dtype": np.float32}),
    ):
        rows = X.astype(settings.pop("dtype", np.float64), copy=False)
        ours = DPSGDClassifier(
            None,
            1e-8,
            noise_multiplier=1.0,
            data_norm=1.0,
            batch_size=1024,
            max_iter=steps,
            **settings,
        )
        ours.fit(rows[:5000], y[:5000])
        mine, other = median_seconds(
            lambda ours=ours, rows=rows: ours.fit(rows, y),
            lambda rows=rows: theirs.fit(rows, y),
            repeats=repeats,
        )
        lines.append(
            f"| DPSGDClassifier, an epoch in batches of 1,024, {label} | "
            f"{n_rows / mine / 1e6:.2f} M/s | "
            f"SGDClassifier, an epoch | {n_rows / other / 1e6:.2f} M/s | "
            f"{other / mine:.2f} x the examples per second |"
        )
    return lines


def lot_draws() -> list[str]:
    """Time drawing a Poisson lot of about 1,024 rows from tables of growing size."""
    from skdp.mechanisms import PoissonSampler, RandomStream

    def seconds(n_rows: int) -> float:
        sampler = PoissonSampler(n_rows, 1024 / n_rows, RandomStream.from_entropy())
        return median_seconds(lambda: sampler.draw(1), repeats=200)[0]

    small, large = seconds(10**5), seconds(10**9)
    return [
        f"| Poisson batch of 1,024 from 10^9 rows | {large * 1e6:.0f} us | from 10^5 rows | "
        f"{small * 1e6:.0f} us | {large / small:.2f} x the time |"
    ]


# Linux tells the peak since it was last reset, which a fit's own peak needs.
_MEMORY_PROBE = """
import sys
import numpy as np
import skdp

def resident(field):
    lines = open("/proc/self/status").read().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))

X = np.load(sys.argv[1]); y = np.load(sys.argv[2])
model = getattr(skdp, sys.argv[3])(delta=1e-8, data_norm=1.0, **eval(sys.argv[4]))
model.fit(X[:2000], y[:2000])
open("/proc/self/clear_refs", "w").write("5")
before = resident("VmRSS")
model.fit(X, y)
print((resident("VmHWM") - before) / X.nbytes)
"""


def peak_memory(X: np.ndarray, y: np.ndarray) -> list[str]:
    """Measure in processes of their own how far a fit raises the peak above the input."""
    if not Path("/proc/self/clear_refs").exists():
        return ["| peak memory | measured on Linux only | | | |"]
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / name) for name in ("X.npy", "y.npy")]
        np.save(files[0], X)
        np.save(files[1], y)
        for name, settings in (
            ("OperaLogisticRegression", "{}"),
            ("GrpuaLogisticRegression", "{'max_iter': 3}"),
            ("DPSGDClassifier", "{'batch_size': 1024, 'max_iter': 1000}"),
        ):
            probe = [sys.executable, "-c", _MEMORY_PROBE, *files, name, settings]
            extra = float(subprocess.run(probe, check=True, capture_output=True).stdout)
            lines.append(f"| {name}, peak memory | {1 + extra:.2f} x the input | | | |")
    return lines


def processor_seconds_of(code: str) -> float:
    """Return the processor time of a new Python process that runs a piece of code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def start_up(repeats: int) -> list[str]:
    """Time imports and first fits of new processes, with and without kernels on the disk."""
    # Estimators are imported when they are first asked for.
    pairs = {
        "import skdp": ("pass", "an empty Python"),
        "from skdp import OperaLogisticRegression": 2 * ("import sklearn.linear_model",),
    }
    lines = []
    for code, (peer, name) in pairs.items():
        mine, other = (
            statistics.median(processor_seconds_of(each) for _ in range(repeats))
            for each in (code, peer)
        )
        lines.append(
            f"| {code}, processor time | {mine:.2f} s | {name} | {other:.2f} s | "
            f"{mine - other:+.2f} s |"
        )
    first_fit = (
        "import time, numpy as np\nfrom skdp import {name}\n"
        "X = np.random.default_rng(0).standard_normal((500, 10)); y = (X[:, 0] > 0) * 1\n"
        "start = time.process_time(); {name}(data_norm=5.0).fit(X, y)\n"
        "print(time.process_time() - start)"
    )
    for name in ("OperaLogisticRegression", "GrpuaSVC", "DPSGDClassifier"):
        with tempfile.TemporaryDirectory() as cache:
            found = [
                float(
                    subprocess.run(
                        [sys.executable, "-c", first_fit.format(name=name)],
                        check=True,
                        capture_output=True,
                        env={**os.environ, "NUMBA_CACHE_DIR": cache},
                    ).stdout
                )
                for _ in range(2)
            ]
        lines.append(
            f"| {name}, first fit, processor time, kernels on disk | {found[1]:.2f} s | "
            f"with compilation | {found[0]:.2f} s | |"
        )
    return lines


def findings(lines: list[str]) -> list[str]:
    """Return the summary in markdown, from the ratios of a table."""
    ratios: dict[str, list[float]] = {}
    for line in lines:
        cells = line.strip("| ").split(" | ")
        if " x the " in cells[-1]:
            number, unit = cells[-1].split(" x the ")
            kind = "Poisson" if cells[0].startswith("Poisson") else unit
            ratios.setdefault(kind, []).append(float(number))
    time, rate = ratios["time"], ratios["examples per second"]
    return [
        f"- Output and objective perturbation take {min(time):.2f} to {max(time):.2f} of the time "
        "of scikit-learn's `LogisticRegression`.",
        f"- DP-SGD handles {min(rate):.2f} to {max(rate):.2f} times the rows per second of "
        "`SGDClassifier`.",
        "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--markdown", type=Path, help="the page whose first table to replace")
    arguments = parser.parse_args()
    X, y = make_table(arguments.rows, arguments.columns)
    lines = [
        "# Speed and memory",
        "",
        f"This page compares skdp with scikit-learn on {arguments.rows:,} rows and "
        f"{arguments.columns} columns, and networks with other libraries.",
        "",
        "## Summary",
        "",
        "| condition | value |",
        "|---|---|",
        f"| repetitions | medians of {arguments.repeats} alternating runs, one thread |",
        "| seconds | of one machine; compare the ratios |",
        "| script | `python examples/benchmarks/speed.py --repeats "
        f"{arguments.repeats} --markdown docs/speed.md` |",
        "",
        "## Linear models",
        "",
        "| skdp | | peer | | ratio |",
        "|---|---|---|---|---|",
    ]
    heading_at = lines.index("| condition | value |")
    for measure in (
        lambda: output_perturbation(X, y, arguments.repeats),
        lambda: objective_perturbation(X, y, arguments.repeats),
        lambda: noisy_epochs(X, y, arguments.repeats),
        lot_draws,
        lambda: peak_memory(X, y),
        lambda: start_up(arguments.repeats),
    ):
        found = measure()
        print("\n".join(found), flush=True)
        lines += found
    lines[heading_at:heading_at] = findings(lines)
    if arguments.markdown:
        _, heading, networks = arguments.markdown.read_text().partition("\n## Networks")
        arguments.markdown.write_text("\n".join(lines) + "\n" + heading + networks)


if __name__ == "__main__":
    main()
