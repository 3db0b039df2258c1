"""
Compose many releases
=====================

One release is (0.1, 0)-private. This page computes the epsilon of two hundred releases. Basic and
advanced composition need only the epsilon of each release. Privacy-loss distributions give the
smallest bound that follows from it.

The bound is smaller if more is known. Examples are Laplace noise, and choices by the exponential
mechanism, whose privacy loss varies by at most epsilon. The computation uses public numbers only.
"""

from collections.abc import Callable
from functools import partial

import matplotlib.pyplot as plt
from cycler import cycler

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

# %%
# Define events and accountants
# -----------------------------
#
# An event describes a mechanism, and an accountant computes its privacy cost. Each line of the plot
# is an event with the accountants that bound it. The smallest of their bounds is valid.

PURE = PureDPEvent(STEP)
CHOICE = BoundedRangeEvent(STEP)
PRINTED = partial(AdvancedCompositionAccountant, mean_term="printed")
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


# %%
# Plot the privacy cost
# ---------------------

curves = {name: [epsilon(*line, count) for count in COUNTS] for name, line in LINES.items()}
print(f"{'releases':<38}", *(f"{count:7d}" for count in COUNTS))
for name, epsilons in curves.items():
    print(f"{name:<38}", *(f"{each:7.3f}" for each in epsilons))

look = cycler(color=["0.0", "0.6"]) * cycler(linestyle=["-", "--", ":"])
figure, axes = plt.subplots(figsize=(6, 4.2), layout="constrained")
for (name, epsilons), style in zip(curves.items(), look, strict=True):
    axes.plot(COUNTS, epsilons, label=name, **style)
axes.set(xlabel="releases", ylabel=f"epsilon at delta = {DELTA:g}")
axes.legend(fontsize="small")
plt.show()

# %%
# Compute the cost for groups
# ---------------------------
#
# If one patient has k records, a guarantee for one record is k times weaker for the patient. A fit
# with ``groups=`` avoids this: see the example on patients with several rows.

for size in (2, 5, 10):
    print(f"a group of {size:2d}: epsilon {group_privacy(STEP, 0.0, size)[0]:.1f} for each release")
