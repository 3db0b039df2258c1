"""How much of a claim one run with many canaries shows, beside many runs with one.

python examples/benchmarks/one_run.py
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from skdp import DPSGDClassifier, GrpuaLogisticRegression, GrpuaSVC
from skdp.audit import audit_epsilon, audit_in_one_run

EPSILON, DELTA = 16.0, 1e-5
CANARIES, RUNS = (1_000, 10_000), 2_000
X, Y = np.zeros((10, 1)), np.arange(10) % 2


def cases() -> Iterator[tuple[str, Any, dict[str, Any], str]]:
    """Yield what is audited, in words, as a class with parameters, and what the attacker sees."""
    for adjacency in ("replace-one", "add-remove"):
        common = {"adjacency": adjacency, "fit_intercept": False, "data_norm": 1.0}
        full, lots = common | {"share": 1.0, "max_iter": 5}, common | {"share": 0.5, "max_iter": 20}
        yield "5 full batches", GrpuaSVC, full, "all"
        yield "5 full batches", GrpuaLogisticRegression, full, "all"
        yield "5 full batches", DPSGDClassifier, full | {"max_grad_norm": 0.1}, "all"
        yield "20 Poisson batches", DPSGDClassifier, lots | {"max_grad_norm": 0.1}, "all"
        yield "20 Poisson batches", DPSGDClassifier, lots | {"max_grad_norm": 0.1}, "model"


def build(cls: Any, n_rows: int, share: float, **parameters: Any) -> Any:
    """Return a classifier with batches of a share of the rows."""
    return cls(EPSILON, DELTA, batch_size=round(share * n_rows), **parameters)


def measure(audit: Any, *arguments: Any, **settings: Any) -> str:
    """Return the share of the claimed mu that an audit shows, and its seconds of one core."""
    began = time.process_time()
    try:
        found = audit(*arguments, X, Y, random_state=0, **settings)
    except ValueError:
        return "-"
    wrong = " DISPROVED" if found.violated else ""
    return f"{found.tightness:.2f}{wrong} ({time.process_time() - began:.1f} s)"


def table() -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    methods = [(m, method) for m in CANARIES for method in ("f-dp", "binomial", "gaussian")]
    heads = ["classifier", "fit", "adjacency", "attacker sees", f"{2 * RUNS:,} runs"]
    heads += [f"{method}, {m:,}" for m, method in methods]
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for words, cls, parameters, release in cases():
        name, adjacency = f"`{cls.__name__}`", parameters["adjacency"]
        few = build(cls, len(X) + 1, **parameters)
        cells = [measure(audit_epsilon, few, n_trials=RUNS, release=release)]
        for m, method in methods:
            many = build(cls, len(X) + m, **parameters)
            options = {"n_canaries": m, "method": method, "release": release}
            cells.append(measure(audit_in_one_run, many, **options))
        yield f"| {' | '.join([name, words, adjacency, release, *cells])} |"


if __name__ == "__main__":
    for line in table():
        print(line, flush=True)
