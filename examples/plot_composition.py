"""What many releases of 0.1-DP cost together, by the textbook's theorems and by what is known.

Basic and advanced composition ask only for the epsilon of each release. Privacy-loss distributions
say the least that follows from it, and less where more is known: of Laplace noise, or of choices by
the exponential mechanism, whose privacy loss varies by no more than epsilon. Groups of k records
pay k times as much (`group_privacy`). Needs matplotlib (``pip install ".[plot]"``).

    python examples/plot_composition.py composition.png
"""

import sys
from collections.abc import Callable
from functools import partial

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from skdp.accounting import (
    Accountant,
    AdvancedCompositionAccountant,
    BasicCompositionAccountant,
    BoundedRangeEvent,
    Event,
    LaplaceEvent,
    PLDAccountant,
    PureDPEvent,
    RDPAccountant,
    group_privacy,
)

STEP, DELTA = 0.1, 1e-6
COUNTS = (1, 3, 10, 20, 40, 70, 100, 150, 200)
PURE = PureDPEvent(STEP)
CHOICE = BoundedRangeEvent(STEP)

PRINTED = partial(AdvancedCompositionAccountant, mean_term="printed")

# An epsilon is the smallest of those that the accountants of a line give.
LINES: dict[str, tuple[Event, tuple[Callable[[], Accountant], ...]]] = {
    "basic composition": (PURE, (BasicCompositionAccountant,)),
    "advanced composition, original mean": (PURE, (PRINTED,)),
    "advanced composition, best mean": (PURE, (AdvancedCompositionAccountant,)),
    "any 0.1-DP releases, PLD": (PURE, (PLDAccountant,)),
    "Laplace noise, PLD": (LaplaceEvent(1.0 / STEP), (PLDAccountant,)),
    "exponential mechanism, PLD or Renyi": (CHOICE, (PLDAccountant, RDPAccountant)),
}


def epsilon(event: Event, accountants: tuple[Callable[[], Accountant], ...], count: int) -> float:
    return min(float(each().compose(event, count=count).epsilon(DELTA)) for each in accountants)


def main(path: str) -> None:
    figure, axes = plt.subplots(figsize=(6, 4.2), layout="constrained")
    print(f"epsilon at delta = {DELTA:g} of {', '.join(map(str, COUNTS))} releases")
    for name, (event, accountants) in LINES.items():
        epsilons = [epsilon(event, accountants, count) for count in COUNTS]
        axes.plot(COUNTS, epsilons, label=name)
        print(f"{name:<38}", *(f"{each:7.3f}" for each in epsilons))
    print(f"a group of ten: {group_privacy(STEP, 0.0, 10)[0]:.1f} for each release")
    axes.set(xlabel="releases", ylabel=f"epsilon at delta = {DELTA:g}")
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=75)
    print(f"wrote {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "composition.png")
