"""Fits of tables in files: seconds, what a pass reads, and peak memory, as rows grow.

    python examples/benchmarks/scale.py --rows 1e6 1e7 --folder /tmp/scale

Tables of float32 with 20 columns are made in the folder once, and stay there. Each fit has a
process of its own; its memory is what grew after a fit on a few rows.
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import argparse
import json
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from skdp import (
    DPSGDClassifier,
    GrpuaLogisticRegression,
    ObjectivePerturbationLogisticRegression,
    OperaLogisticRegression,
)
from skdp.data import open_parquet
from skdp.preprocessing import CategoricalColumn, LabelColumn, NumericColumn, TableSchema

N_COLUMNS, LOTS = 20, 1000
AT_ONCE = 1 << 18


def make_files(folder: Path, n_rows: int) -> tuple[Path, Path]:
    """Write rows and labels of a noisy linear rule, unless they are there."""
    paths = folder / f"X{n_rows}.npy", folder / f"y{n_rows}.npy"
    if all(path.exists() for path in paths):
        return paths
    rng = np.random.default_rng(0)
    weights = rng.normal(size=N_COLUMNS)
    shapes = (np.float32, (n_rows, N_COLUMNS)), (np.int8, (n_rows,))
    X, y = (
        np.lib.format.open_memmap(path, "w+", *shape)
        for path, shape in zip(paths, shapes, strict=True)
    )
    for start in range(0, n_rows, AT_ONCE):
        block = slice(start, min(start + AT_ONCE, n_rows))
        X[block] = rng.standard_normal((block.stop - start, N_COLUMNS), dtype=np.float32) / 5
        y[block] = X[block] @ weights + 0.3 * rng.logistic(size=block.stop - start) > 0
    X.flush()
    y.flush()
    return paths


def make_schema() -> TableSchema:
    """Return the description of the Parquet table: 12 numbers and 4 categories, 36 features."""
    levels = [f"level {k}" for k in range(6)]
    columns = [NumericColumn(f"x{j}", -1.0, 1.0) for j in range(12)]
    columns += [CategoricalColumn(f"c{j}", levels) for j in range(4)]
    return TableSchema(columns, label=LabelColumn("y", [0, 1]))


def make_parquet(folder: Path, n_rows: int) -> Path:
    """Write such a table in row groups of AT_ONCE rows, unless it is there."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    path = folder / f"table{n_rows}.parquet"
    if path.exists():
        return path
    rng, writer = np.random.default_rng(0), None
    for start in range(0, n_rows, AT_ONCE):
        n = min(AT_ONCE, n_rows - start)
        numbers = rng.standard_normal((12, n), dtype=np.float32) / 3
        places = rng.integers(0, 6, (4, n), dtype=np.int8)
        score = numbers[0] - numbers[1] + places[0] / 6 + 0.3 * rng.logistic(size=n)
        levels = pa.array([f"level {k}" for k in range(6)])
        cells = {f"x{j}": pa.array(column) for j, column in enumerate(numbers)}
        cells |= {f"c{j}": levels.take(pa.array(column)) for j, column in enumerate(places)}
        batch = pa.table({**cells, "y": pa.array((score > 0.4).astype(np.int8))})
        writer = writer or ParquetWriter(path, batch.schema)
        writer.write_table(batch, row_group_size=AT_ONCE)
    writer.close()
    return path


def make_models(n_rows: int) -> dict[str, object]:
    """Return what is measured; of noisy descent one epoch, in lots of a thousandth of the rows."""
    public = {"epsilon": 1.0, "delta": 1e-9, "data_norm": 1.0}
    lots = {"batch_size": n_rows // LOTS, "max_iter": LOTS}
    return {
        "output perturbation": OperaLogisticRegression(**public),
        "objective perturbation": ObjectivePerturbationLogisticRegression(**public),
        "GRPUA, 10 steps": GrpuaLogisticRegression(**public, max_iter=10),
        "DP-SGD, one epoch": DPSGDClassifier(**public, **lots, adjacency="add-remove"),
    }


class Watch:
    """Peak memory in MiB beyond that at the start, of the process's own and with mapped files."""

    def __enter__(self) -> Watch:
        self.start, self.peak, self._done = self._now(), {}, False
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done = True
        self._thread.join()

    def _now(self) -> dict[str, int]:
        lines = [line.split() for line in Path("/proc/self/status").read_text().splitlines()]
        return {line[0]: int(line[1]) >> 10 for line in lines if line[0] in ("RssAnon:", "VmRSS:")}

    def _look(self) -> None:
        while not self._done:
            for name, size in self._now().items():
                grown = max(0, size - self.start[name])
                self.peak[name] = max(self.peak.get(name, 0), grown)
            time.sleep(0.005)


def measure(name: str, n_rows: int, folder: Path, in_memory: bool, parquet: bool) -> dict:
    """Fit once, and return seconds and memory."""
    model, few = (make_models(n)[name] for n in (n_rows, 20_000))
    if parquet:
        schema = make_schema()
        path = make_parquet(folder, n_rows)
        model, few = (schema.pipeline(each.set_params(data_norm=None)) for each in (model, few))
        few.fit(open_parquet(make_parquet(folder, 20_000)))
        X, y = (schema.read_parquet if in_memory else open_parquet)(path), None
    else:
        X, y = (np.load(path, mmap_mode="r") for path in make_files(folder, n_rows))
        few.fit(np.array(X[:20_000]), np.array(y[:20_000]))  # loads and compiles
        if in_memory:
            X, y = np.array(X), np.array(y)
    clock, processor = time.perf_counter(), time.process_time()
    with Watch() as watch:
        model.fit(X, y)
    seconds = time.perf_counter() - clock, time.process_time() - processor
    own, resident = watch.peak["RssAnon:"], watch.peak["VmRSS:"]
    return {"clock": seconds[0], "processor": seconds[1], "own": own, "resident": resident}


def time_passes(folder: Path, n_rows: int) -> str:
    """Return gigabytes a second of a check, a pass for a gradient, scores, and `cat`."""
    from skdp.losses import LogisticLoss
    from skdp.solvers import Rows, sum_gradients
    from skdp.tables.inputs import validate_rows

    X, y = (np.load(path, mmap_mode="r") for path in make_files(folder, n_rows))
    model = OperaLogisticRegression(data_norm=1.0, classes=[0, 1], epsilon=1.0)
    model.fit(np.array(X[:20_000]), np.array(y[:20_000]))
    model_check = OperaLogisticRegression()
    source = validate_rows(model_check, X)
    signs = np.where(y == 1, np.int8(1), np.int8(-1))
    rows = Rows.from_matrix(source, signs, data_norm=1.0)
    total, weights = np.zeros(N_COLUMNS), np.full(N_COLUMNS, 0.1)
    sum_gradients(rows, LogisticLoss(), weights, total)
    calls = {
        "the check before the charge": lambda: validate_rows(model_check, X),
        "norms of rows": lambda: Rows.from_matrix(source, signs, data_norm=1.0),
        "a gradient": lambda: sum_gradients(rows, LogisticLoss(), weights, total),
        "`decision_function`": lambda: model.decision_function(X),
    }
    lines = []
    for name, call in calls.items():
        start = time.perf_counter(), time.process_time()
        call()
        speeds = (X.nbytes / 1e9 / (now() - then) for now, then in zip(CLOCKS, start, strict=True))
        lines.append("| {} | {:.2f} | {:.2f} |".format(name, *speeds))
    with make_files(folder, n_rows)[0].open("rb") as file:
        start = time.perf_counter()
        subprocess.run(["cat"], stdin=file, stdout=subprocess.DEVNULL, check=True)
        lines.append(f"| `cat` | {X.nbytes / 1e9 / (time.perf_counter() - start):.2f} | |")
    return "\n".join(lines)


def read_part(path: Path, start: int, stop: int) -> np.ndarray:
    """Return some rows of a file."""
    return np.array(np.load(path, mmap_mode="r")[start:stop])


def time_dask(folder: Path, n_rows: int, count: int) -> Iterator[str]:
    """Yield seconds of each method in memory, and with partitions that two processes keep."""
    import dask.array as da
    from dask import delayed
    from dask.distributed import Client, LocalCluster

    path, y = make_files(folder, n_rows)[0], np.load(make_files(folder, n_rows)[1])
    X, cuts = np.load(path), np.linspace(0, n_rows, count + 1).astype(int)
    few = slice(0, 20_000)
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        parts = [
            da.from_delayed(
                delayed(read_part)(path, *ends), (ends[1] - ends[0], N_COLUMNS), X.dtype
            )
            for ends in pairwise(map(int, cuts))
        ]
        tables = {"in memory": X, "dask": da.concatenate(parts).persist()}

        def processor() -> float:
            return time.process_time() + sum(client.run(time.process_time).values())

        for name, model in make_models(n_rows).items():
            for where, table in tables.items():
                make_models(20_000)[name].fit(table[few], y[few])  # loads and compiles
                start = time.perf_counter(), processor()
                model.fit(table, y)
                seconds = time.perf_counter() - start[0], processor() - start[1]
                yield "| {}, {} | {:.1f} | {:.1f} |".format(name, where, *seconds)


CLOCKS = time.perf_counter, time.process_time


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="+", type=float, default=[1e6, 1e7])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--only", help="a name of a method, and only that")
    parser.add_argument("--in-memory", action="store_true", help="also with rows in memory")
    parser.add_argument("--passes", action="store_true", help="gigabytes a second instead")
    parser.add_argument("--parquet", action="store_true", help="a Parquet table and a schema")
    parser.add_argument("--dask", type=int, help="so many partitions that two processes keep")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.one:
        name, n_rows, in_memory = options.one
        print(
            json.dumps(
                measure(name, int(n_rows), options.folder, in_memory == "True", options.parquet)
            )
        )
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.passes:
        print("| pass | GB a second | GB a second of processor time |\n|---|---|---|")
        print(time_passes(options.folder, int(options.rows[-1])))
        return
    if options.dask:
        print("| method | seconds | of processor |\n|---|---|---|")
        for line in time_dask(options.folder, int(options.rows[-1]), options.dask):
            print(line, flush=True)
        return
    print("| method | rows | seconds | of processor | own MiB | with mapped files |")
    print("|---|---|---|---|---|---|")
    for name in [options.only] if options.only else make_models(LOTS):
        for n_rows in map(int, options.rows):
            (make_parquet if options.parquet else make_files)(options.folder, n_rows)
            for in_memory in [False, True] if options.in_memory else [False]:
                command = [sys.executable, __file__, "--folder", str(options.folder)]
                command += ["--one", name, str(n_rows), str(in_memory)]
                command += ["--parquet"] * options.parquet
                found = json.loads(subprocess.check_output(command))
                where = ", in memory" if in_memory else ""
                print(
                    f"| {name}{where} | {n_rows:,} | {found['clock']:.1f} | "
                    f"{found['processor']:.1f} | {found['own']:.0f} | {found['resident']:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
