r"""What a private step in front of a private classifier gains, the whole at one epsilon.

The step and the classifier share mu^2 (of Gaussian differential privacy): centring takes a
twentieth for the mean row, whitening a tenth for the second moments of rows. Nothing here is new:
`DPStandardScaler`, `DPPCA` and `RowNormClipper` in a pipeline. Relation: add-remove.

    python examples/benchmarks/priced_steps.py --seeds 10
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
from accuracy import load_tables
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from skdp import DPSGDClassifier, OperaLogisticRegression
from skdp.mechanisms import analytic_gaussian_epsilon, analytic_gaussian_sigma
from skdp.preprocessing import DPPCA, DPStandardScaler, RowNormClipper

DELTA, RELATION = 1e-6, "add-remove"
CLASSIFIERS = (DPSGDClassifier, OperaLogisticRegression)


def share_of(epsilon: float, share: float) -> float:
    """Return the epsilon of Gaussian noise that takes a share of mu^2."""
    sigma = analytic_gaussian_sigma(epsilon, DELTA)
    return float(analytic_gaussian_epsilon(sigma / math.sqrt(share), DELTA))


def plain(cls: Any, epsilon: float, norm: float) -> Any:
    return cls(epsilon, DELTA, data_norm=norm, adjacency=RELATION)


def centred(cls: Any, epsilon: float, norm: float) -> Any:
    mean = DPStandardScaler(
        share_of(epsilon, 0.05),
        DELTA,
        input_norm=norm,
        with_std=False,
        row_norm=norm,
        adjacency=RELATION,
    )
    return make_pipeline(mean, plain(cls, share_of(epsilon, 0.95), norm))


def whitened(cls: Any, epsilon: float, norm: float) -> Any:
    # Directions of which noise is all that is known get a root mean square no smaller than that of
    # noise; rows are cut to the norm that white rows of forty directions have.
    moments = DPPCA(
        None,
        share_of(epsilon, 0.1),
        DELTA,
        data_norm=norm,
        whiten=True,
        adjacency=RELATION,
    )
    length = math.sqrt(40.0)
    clipper = RowNormClipper(length)
    return make_pipeline(moments, clipper, plain(cls, share_of(epsilon, 0.9), length))


STEPS = {"no step": plain, "centred": centred, "whitened": whitened}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="directory of the data files")
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    print(f"| table | epsilon | classifier | {' | '.join(STEPS)} |")
    print("|---|---|---|" + "---|" * len(STEPS))
    for table in load_tables(arguments.data):
        if len(table.y) < 5_000:
            continue
        for epsilon in (0.1, 1.0, 3.0):
            for cls in CLASSIFIERS:
                areas: dict[str, list[float]] = {name: [] for name in STEPS}
                for X, y, X_test, y_test in table.splits(arguments.seeds):
                    for name, make in STEPS.items():
                        model = make(cls, epsilon, table.data_norm).fit(X, y)
                        score = roc_auc_score(y_test, model.decision_function(X_test))
                        areas[name].append(score)
                found = [f"{np.mean(a):.4f} ({np.std(a):.4f})" for a in areas.values()]
                row = " | ".join([table.name, f"{epsilon:g}", cls.__name__, *found])
                print(f"| {row} |", flush=True)


if __name__ == "__main__":
    main()
