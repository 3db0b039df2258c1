"""A year of daily counts, watched for outbreaks: only alarms cost privacy.

The sparse vector technique answers every day whether a count is above a threshold, for one epsilon
that is charged beforehand; after three alarms it ends. How many cases there were on a day with an
alarm is another release, with noise and a charge of its own. A patient is in one day's count, so
that counts are monotone and change by at most one. Cases are made up. Needs matplotlib
(``pip install ".[plot]"``).

    python examples/plot_sparse_vector.py sparse_vector.png
"""

import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from skdp.accounting import LaplaceEvent
from skdp.budget import BudgetAccountant
from skdp.mechanisms import RandomStream, SparseVector, laplace_accuracy, laplace_mechanism

THRESHOLD, ALARMS = 90.0, 3
WATCHING, COUNTING = 1.0, 0.25  # epsilon of all alarms, and of each count


def daily_counts() -> np.ndarray:
    """Return made-up cases of a year with three outbreaks."""
    rng = np.random.default_rng(4)
    expected = np.full(365, 30.0)
    expected[[95, 203, 310]] += 130.0
    return rng.poisson(expected).astype(float)


def main(path: str) -> None:
    counts = daily_counts()
    everything = WATCHING + ALARMS * COUNTING
    budget = BudgetAccountant(everything, 1e-9, adjacency="add-remove", composition="basic")
    watch = SparseVector(
        WATCHING,
        1.0,
        RandomStream.from_seed(2),
        max_positives=ALARMS,
        monotone=True,
        accountant=budget,
    )
    alarms: dict[int, float] = {}
    for day, count in enumerate(counts):
        if watch.positives_left == 0:
            break
        if watch.is_above(count, THRESHOLD):
            budget.reserve(
                LaplaceEvent(1.0 / COUNTING),
                label=f"cases on day {day}",
                epsilon=COUNTING,
                delta=0,
                seeded=True,
            )
            alarms[day] = float(laplace_mechanism(count, 1.0, COUNTING, random_state=day))
    error = laplace_accuracy(COUNTING, 0.05, ALARMS)
    print(f"alarms on days {', '.join(map(str, alarms))}; days with outbreaks: 95, 203, 310")
    print(f"their counts are off by at most {error:.1f}, with probability 95 %")
    print(f"spent: epsilon {budget.total.epsilon:.2f} on {day + 1} answers, {len(alarms)} counts")

    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    axes.plot(counts, lw=0.8, color="0.6", label="cases (private)")
    axes.axhline(THRESHOLD, color="k", ls=":", lw=1, label="threshold")
    days, cases = zip(*alarms.items(), strict=True)
    axes.errorbar(days, cases, yerr=error, fmt="o", capsize=3, label="alarm, its count")
    axes.set(xlabel="day", ylabel="cases")
    axes.legend(fontsize="small", loc="upper left")
    figure.savefig(path, dpi=75)
    print(f"wrote {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "sparse_vector.png")
