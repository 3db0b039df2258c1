"""
Compare accountants for DP-SGD
==============================

This page recomputes Figure 2 of Abadi et al. (2016) with earlier and later accountants. Each row
is included independently with probability 1/100, the noise multiplier is 4, and delta is 1e-5. An
epoch has 100 steps. The computation uses public numbers only. :doc:`/reproductions` compares the
paper's printed values with recomputed ones.
"""

import matplotlib.pyplot as plt

from skdp.accounting import (
    AdvancedCompositionAccountant,
    GaussianEvent,
    GDPAccountant,
    MomentsAccountant,
    PLDAccountant,
    PoissonSampledEvent,
    RDPAccountant,
)

RATE, DELTA, EPOCHS = 0.01, 1e-5, (1, 10, 25, 50, 100, 200, 300, 400)
STEP = PoissonSampledEvent(RATE, GaussianEvent(4.0))

# %%
# Plot five accountants
# ---------------------
#
# All accountants except one give upper bounds. The central limit theorem approximates the sum of
# many privacy losses by a normal variable. It is close here, but it is no guarantee, as its value
# states.

ACCOUNTANTS = {
    "strong composition": (AdvancedCompositionAccountant, "-", "0.6"),
    "moments (Abadi et al.)": (MomentsAccountant, "--", "0.0"),
    "Renyi": (RDPAccountant, "-.", "0.0"),
    "privacy-loss distribution": (PLDAccountant, "-", "0.0"),
    "central limit, no bound": (lambda: GDPAccountant(subsampling="clt"), ":", "0.0"),
}

figure, axes = plt.subplots(figsize=(6, 4.2), layout="constrained")
print(f"{'epochs':<28}", *(f"{epochs:6d}" for epochs in EPOCHS))
for name, (make, line, shade) in ACCOUNTANTS.items():
    values = [make().compose(STEP, round(each / RATE)).epsilon(DELTA) for each in EPOCHS]
    print(f"{name:<28}", *(f"{value:6.2f}" for value in values))
    assert values[-1].is_guarantee == ("no bound" not in name)
    axes.plot(EPOCHS, values, line, color=shade, label=name)
axes.set(xlabel="epochs", ylabel=f"epsilon at delta = {DELTA:g}", yscale="log")
axes.legend(fontsize="small")
plt.show()
