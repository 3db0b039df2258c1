"""Sadeghzadeh's lecture (2024): the Laplace mechanism, its accuracy, groups and composition.

Each of its numbers beside what is exact. The first names of the 2010 census are made up here:
10,000 counts that fall like one over the rank, 300 million in all. Figures are in
``examples/plot_first_names.py`` and ``examples/plot_composition.py``.

    python examples/paper/slides.py
"""

import math

import numpy as np

from skdp.accounting import (
    AdvancedCompositionAccountant,
    BasicCompositionAccountant,
    BoundedRangeEvent,
    LaplaceEvent,
    PLDAccountant,
    PureDPEvent,
    RDPAccountant,
    group_privacy,
)
from skdp.mechanisms import laplace_accuracy, laplace_mechanism

TITLE = "Sadeghzadeh: lecture on the Laplace mechanism and composition"
NAMES, PEOPLE, BETA, RELEASES = 10_000, 300_000_000, 0.05, 200
COUNT, STEP, DELTA = 100, 0.1, 1e-6  # of the releases that are composed
TEACHERS, VOTE_SCALE = 250, 20.0

Row = tuple[str, str, str, str]


def name_counts() -> np.ndarray:
    """Return made-up frequencies of first names, the most common one first."""
    shares = 1.0 / np.arange(1.0, NAMES + 1.0)
    return np.rint(PEOPLE * shares / shares.sum())


def exceeded(bounds: list[float]) -> list[float]:
    """Return in which share of histograms some frequency is off by more than each bound."""
    counts = name_counts()
    largest = np.array(
        [
            np.abs(laplace_mechanism(counts, 1.0, 1.0, random_state=seed) - counts).max()
            for seed in range(RELEASES)
        ]
    )
    return [float(np.mean(largest > bound)) for bound in bounds]


def accuracy_rows() -> list[Row]:
    union = laplace_accuracy(1.0, BETA, NAMES, bound="union")
    exact = laplace_accuracy(1.0, BETA, NAMES)
    whole = laplace_accuracy(1.0, BETA, NAMES, noise="discrete")
    shares = exceeded([union, exact])
    ten = [laplace_accuracy(1.0, BETA, 10, sensitivity=s) for s in (1.0, 10.0)]
    title = "Theorem 3.8: largest error of 10,000 first names at epsilon = 1"
    return [
        (f"{title}, probability 95 %", "12.2", f"{union:.3f}", "reproduced: the union bound"),
        (
            f"{title}, exact quantile",
            "-",
            f"{exact:.3f}; {whole:.0f} with integer noise",
            "a little less",
        ),
        (
            f"{title}, {RELEASES} histograms of made-up names",
            "at most 5 % beyond 12.2",
            f"{shares[0]:.1%} beyond it, {shares[1]:.1%} beyond {exact:.3f}",
            "reproduced; seeded noise",
        ),
        (
            "Ten counts at epsilon = 1: largest error, as cells of a histogram and as any counts",
            "noise 1/epsilon and 10/epsilon",
            f"{ten[0]:.2f} and {ten[1]:.2f}",
            "the gain of disjoint cells",
        ),
    ]


def wrong_choice(gap: float) -> tuple[float, float, float]:
    """Return how often the second of two counts is reported: Laplace, Gumbel, exponential noise.

    At epsilon = 1, of counts under add-remove.
    """
    return math.exp(-gap) * (2.0 + gap) / 4.0, 1.0 / (1.0 + math.exp(gap)), 0.5 * math.exp(-gap)


def vote_loss(gap: int) -> float:
    """Return what one vote that moves does to the chance of the class that is behind by a gap."""
    before, after = gap / VOTE_SCALE, (gap - 2) / VOTE_SCALE
    return before - after - math.log((2.0 + before) / (2.0 + after))


def choice_rows() -> list[Row]:
    laplace, gumbel, exponential = wrong_choice(5.0)
    return [
        (
            "Claim 3.9: report noisy max of counts, noise Lap(1/epsilon)",
            "epsilon-DP",
            "epsilon-DP under add-remove, 2 epsilon under replace-one",
            "`report_noisy_max(monotone=True)` under add-remove only",
        ),
        (
            "The same: wrong of two names that are 5 apart, epsilon = 1",
            "-",
            f"Laplace {laplace:.2%}, Gumbel {gumbel:.2%}, permute-and-flip {exponential:.2%}",
            "permute-and-flip has the same privacy",
        ),
        (
            "PATE: privacy of one label, votes with Lap(20)",
            "0.05",
            f"0.1; {vote_loss(TEACHERS):.4f} where {TEACHERS} teachers agree",
            "0.05 is **no guarantee**: a moved vote changes two counts",
        ),
    ]


def composed() -> dict[str, float]:
    """Return epsilon of many releases, by theorem."""
    pure, laplace, choices = PureDPEvent(STEP), LaplaceEvent(1.0 / STEP), BoundedRangeEvent(STEP)

    def total(accountant, event) -> float:
        return float(accountant.compose(event, count=COUNT).epsilon(DELTA))

    spread, mean = 2.0 * COUNT * math.log(1.0 / DELTA), COUNT * STEP * math.expm1(STEP)
    return {
        "basic": total(BasicCompositionAccountant(), pure),
        "printed": math.sqrt(spread * STEP) + mean,
        "advanced": math.sqrt(spread) * STEP + mean,
        "ours": total(AdvancedCompositionAccountant(), pure),
        "pld": total(PLDAccountant(), pure),
        "laplace": total(PLDAccountant(), laplace),
        "choices": min(total(PLDAccountant(), choices), total(RDPAccountant(), choices)),
    }


def composition_rows() -> list[Row]:
    found = composed()
    title = f"{COUNT} releases of {STEP}-DP at delta = 1e-06"
    group = group_privacy(STEP, 0.0, 10)[0]
    alone = PLDAccountant().compose(LaplaceEvent(0.1 / STEP)).epsilon(0.0)
    return [
        (
            f"Group privacy: ten records of a {STEP}-DP release",
            "k epsilon",
            f"{group:.1f}; Laplace noise has {float(alone):.1f}",
            "reproduced, and reached",
        ),
        (f"{title}, Theorem 8 (basic)", "k epsilon", f"{found['basic']:.2f}", "reproduced"),
        (
            f"{title}, Theorem 3.20 (advanced)",
            "epsilon inside the root",
            f"{found['printed']:.2f} as printed, {found['advanced']:.2f} as meant",
            "a slip; the printed form is true, but worse than the basic one",
        ),
        (f"{title}, advanced as in skdp", "-", f"{found['ours']:.2f}", "a better mean term"),
        (f"{title}, PLD", "-", f"{found['pld']:.2f}", "the smallest for pure privacy"),
        (f"{title}, Laplace noise, PLD", "-", f"{found['laplace']:.2f}", "known noise costs less"),
        (
            f"{title}, exponential mechanism",
            "-",
            f"{found['choices']:.2f}",
            "bounded range: the smaller of PLD and Renyi",
        ),
    ]


def rows() -> list[Row]:
    return accuracy_rows() + choice_rows() + composition_rows()


if __name__ == "__main__":
    for row in rows():
        print(" | ".join(row))
