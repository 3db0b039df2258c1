"""
Bound the error of a private histogram
======================================

Ten thousand first names of 300 million people are counted at epsilon = 1. This page computes the
largest error of the counts, and finds the most common name. The names are made up, with counts
proportional to one over the rank.
"""

import matplotlib.pyplot as plt
import numpy as np

from skdp.mechanisms import RandomStream, laplace_accuracy, laplace_mechanism, report_noisy_max

NAMES, PEOPLE, BETA = 10_000, 300_000_000, 0.05
shares = 1.0 / np.arange(1.0, NAMES + 1.0)
counts = np.rint(PEOPLE * shares / shares.sum())

# %%
# Bound the largest error
# -----------------------
#
# Each record is in one cell, so the sensitivity under add-remove is 1 for any number of cells.
# ``laplace_accuracy`` needs no data: it computes a bound on all errors at a given probability, by
# the union bound or exactly. Here, 400 simulated histograms test the bound. A real histogram is
# drawn and charged once.

RUNS = 400
noisy = (laplace_mechanism(counts, 1.0, 1.0, random_state=seed) for seed in range(RUNS))
errors = np.sort([np.abs(each - counts).max() for each in noisy])
bounds = {
    "union bound": laplace_accuracy(1.0, BETA, NAMES, bound="union"),
    "exact": laplace_accuracy(1.0, BETA, NAMES),
}
print(f"no frequency is off by more, with probability {1 - BETA:.0%}:")
for name, bound in bounds.items():
    share = np.mean(errors > bound)
    print(f"  {name:<12} {bound:.3f}; {share:.1%} of {RUNS} histograms have a larger error")
print(f"  whole noise  {laplace_accuracy(1.0, BETA, NAMES, noise='discrete'):.0f}")

# %%
# Find the most common name
# -------------------------
#
# The index of the largest count is a separate release. Among three mechanisms with the same
# privacy, permute-and-flip (exponential noise) is correct most often. The plot shows how often the
# second of two names is reported, against the gap between their counts.

MECHANISMS = {"laplace": "Laplace", "gumbel": "Gumbel", "exponential": "permute-and-flip"}
GAPS, CHOICES = range(0, 7), 1600
stream = RandomStream.from_seed(0)


def wrong_share(noise: str, gap: float) -> float:
    """Return how often the second of two names is reported."""
    scores = [1000.0, 1000.0 - gap]
    chosen = [
        report_noisy_max(scores, 1.0, 1.0, stream, noise=noise, monotone=True)
        for _ in range(CHOICES)
    ]
    return sum(chosen) / CHOICES


wrong = {name: [wrong_share(noise, gap) for gap in GAPS] for noise, name in MECHANISMS.items()}
for name, found in wrong.items():
    print(f"{name:17s}", " ".join(f"{share:.3f}" for share in found))

# %%
# Plot both results
# -----------------

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
left.step(errors, np.arange(1, RUNS + 1) / RUNS, where="post", label=f"{RUNS} histograms")
betas = np.geomspace(1e-3, 0.999, 200)
quantiles = [laplace_accuracy(1.0, beta, NAMES) for beta in betas]
left.plot(quantiles, 1.0 - betas, "k--", lw=1, label="exact quantiles")
left.axvline(bounds["union bound"], color="0.4", ls=":", label="union bound at 95 %")
left.axhline(1.0 - BETA, color="0.8", lw=0.8)
left.set(xlabel="largest error of 10,000 counts", ylabel="share of histograms", xlim=(6, 18))
left.legend(fontsize="small")
for (name, found), marker in zip(wrong.items(), ("o-", "s--", "^:"), strict=True):
    right.plot(GAPS, found, marker, ms=4, label=name)
right.set(xlabel="gap between the two most common names", ylabel="share of wrong choices")
right.legend(fontsize="small")
plt.show()
