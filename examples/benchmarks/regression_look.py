"""Coverage and width of intervals of regression coefficients from one look.

Columns are uniform in [-1, 1], rows have norm at most the root of their number, and half of the
coefficients are 0. A look has .7 of the squared budget, at the weights of a fit with .3 of it.
Widths are over those without privacy.
Residuals count up to 1.5 times the declared standard deviation of the errors.

    python examples/benchmarks/regression_look.py                    # two minutes of a processor
    python examples/benchmarks/regression_look.py --rows 2000 --tables 100
"""

from __future__ import annotations

import argparse
import math
import warnings

import numpy as np
from scipy.special import ndtri

from skdp import PrivateLinearRegression, PrivateRidge
from skdp.inference import PrivateInference
from skdp.mechanisms import analytic_gaussian_epsilon, analytic_gaussian_sigma

DELTA, FIT_SHARE = 1e-6, 0.3
COLUMNS, ERRORS, ADJACENCIES = (5, 20), (0.1, 0.2, 0.4), ("add-remove", "replace-one")
FITS = {"descent": PrivateLinearRegression, "ridge": PrivateRidge}
# Laws of errors with standard deviation 1.
LAWS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "heavy": lambda rng, n: rng.standard_t(3, n) / math.sqrt(3.0),
    "skewed": lambda rng, n: rng.exponential(size=n) - 1.0,
}


def shares(epsilon: float) -> tuple[float, float]:
    """Return the epsilons of fit and look, which together are one Gaussian event of epsilon."""
    sigma = analytic_gaussian_sigma(epsilon, DELTA)
    parts = (sigma / math.sqrt(share) for share in (FIT_SHARE, 1.0 - FIT_SHARE))
    fit, look = (analytic_gaussian_epsilon(part, DELTA) for part in parts)
    return fit, look


def cell(args: argparse.Namespace, d: int, error: float, adjacency: str) -> list[float]:
    """Return coverage and relative width of slopes, and the share of nulls called."""
    found: list[list[float]] = []
    fit_epsilon, look_epsilon = shares(args.epsilon)
    law = LAWS[args.law]
    for seed in range(args.tables):
        rng = np.random.default_rng([seed, d])
        X = rng.uniform(-1.0, 1.0, (args.rows, d))
        beta = rng.uniform(-1.0, 1.0, d) * (np.arange(d) < (d + 1) // 2)
        beta *= 0.5 / np.abs(beta).sum()
        y = 0.1 + X @ beta + error * law(rng, args.rows)
        rows = np.column_stack([X, np.ones(args.rows)])
        inverse = np.linalg.inv(rows.T @ rows)
        width = 2.0 * ndtri(0.975) * error * np.sqrt(np.diag(inverse)[:d])
        reach = 0.6 + 3.5 * error
        known = {"target_bounds": (-reach, reach), "adjacency": adjacency, "delta": DELTA}
        known |= {"data_norm": math.sqrt(d)}
        model = FITS[args.fit](epsilon=fit_epsilon, **known).fit(X, y)
        inference = PrivateInference(
            look_epsilon, DELTA, adjacency=adjacency, error_sd=args.declared * error
        )
        table = inference.evaluate(model, X, y).table()
        low, high = table["low"][:d], table["high"][:d]
        covered = np.mean((low <= beta) & (beta <= high))
        nulls = np.mean(table["p_value"][:d][beta == 0.0] < 0.05)
        found.append([covered, np.mean((high - low) / width), nulls])
    return np.mean(found, axis=0).tolist()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--tables", type=int, default=40)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--fit", choices=list(FITS), default="descent")
    parser.add_argument("--law", choices=list(LAWS), default="normal")
    parser.add_argument("--declared", type=float, default=1.0, help="declared over true sd")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| columns, sd of errors | adjacency | coverage, width, nulls called |\n|---|---|---|")
    for d in COLUMNS:
        for error in ERRORS:
            for adjacency in ADJACENCIES:
                covered, wide, nulls = cell(args, d, error, adjacency)
                found = f"{covered:.3f}, {wide:.2f}, {nulls:.3f}"
                print(f"| {d}, {error:g} | {adjacency} | {found} |", flush=True)


if __name__ == "__main__":
    main()
