"""Ten thousand first names at epsilon = 1: how wrong their frequencies get, and which one is first.

On the left the largest error of a histogram with Laplace noise, over many of them, beside what
`laplace_accuracy` says without any data: the textbook's 12.2 (the union bound) and the exact
quantile. On the right how often the second name is reported as the most common one, by the gap
between the two: of three mechanisms with the same privacy, permute-and-flip is right most often.
Names are made up: counts that fall like one over the rank, 300 million in all. Needs matplotlib
(``pip install ".[plot]"``).

    python examples/plot_first_names.py first_names.png
"""

import sys
from functools import partial

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from skdp.mechanisms import RandomStream, laplace_accuracy, laplace_mechanism, report_noisy_max

NAMES, PEOPLE, BETA = 10_000, 300_000_000, 0.05
MECHANISMS = {"laplace": "Laplace", "gumbel": "Gumbel", "exponential": "permute-and-flip"}
GAPS = range(0, 7)


def name_counts() -> np.ndarray:
    shares = 1.0 / np.arange(1.0, NAMES + 1.0)
    return np.rint(PEOPLE * shares / shares.sum())


def largest_errors(runs: int) -> np.ndarray:
    """Return the largest error of each of many private histograms."""
    counts = name_counts()
    # A person is in one cell: under add-remove the sensitivity is 1, whatever the number of cells.
    noisy = (laplace_mechanism(counts, 1.0, 1.0, random_state=seed) for seed in range(runs))
    return np.array([np.abs(each - counts).max() for each in noisy])


def wrong_choices(runs: int) -> dict[str, list[float]]:
    """Return how often the second of two names is reported, by their gap."""
    stream = RandomStream.from_seed(0)
    found: dict[str, list[float]] = {}
    for noise, name in MECHANISMS.items():
        choose = partial(report_noisy_max, noise=noise, monotone=True)
        found[name] = [
            sum(choose([1000.0, 1000.0 - gap], 1.0, 1.0, stream) for _ in range(runs)) / runs
            for gap in GAPS
        ]
    return found


def main(path: str, runs: int = 400) -> None:
    errors = np.sort(largest_errors(runs))
    exact = laplace_accuracy(1.0, BETA, NAMES)
    union = laplace_accuracy(1.0, BETA, NAMES, bound="union")
    print(f"no frequency is off by more, with probability {1 - BETA:.0%}:")
    for name, bound in (("union bound", union), ("exact", exact)):
        share = np.mean(errors > bound)
        print(f"  {name:<12} {bound:.3f}; {share:.1%} of {runs} histograms have a larger error")
    print(f"  whole noise  {laplace_accuracy(1.0, BETA, NAMES, noise='discrete'):.0f}")

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    left.step(errors, np.arange(1, runs + 1) / runs, where="post", label=f"{runs} histograms")
    betas = np.geomspace(1e-3, 0.999, 200)
    quantiles = [laplace_accuracy(1.0, beta, NAMES) for beta in betas]
    left.plot(quantiles, 1.0 - betas, "k--", lw=1, label="exact")
    left.axvline(union, color="tab:red", lw=1, label="12.2, of the union bound")
    left.axhline(1.0 - BETA, color="0.8", lw=0.8)
    left.set(xlabel="largest error of 10,000 counts", ylabel="share of histograms", xlim=(6, 18))
    left.legend(fontsize="small")
    for name, shares in wrong_choices(4 * runs).items():
        right.plot(GAPS, shares, "o-", ms=3, label=name)
    right.set(xlabel="gap between the two most common names", ylabel="share of wrong choices")
    right.legend(fontsize="small")
    figure.savefig(path, dpi=75)
    print(f"wrote {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "first_names.png")
