"""
What DP-SGD costs, by one accountant after the other
====================================================

The plan of Figure 2 of Abadi et al. (2016): lots of a hundredth of the rows, each row drawn by a
coin of its own, noise of 4 clipping norms, delta = 1e-5. An epoch has 100 steps. Their moments
accountant is drawn beside what was known before it and what came after. All of it is arithmetic on
public numbers: no data are involved. The paper's own figures, printed and recomputed, stand in
:doc:`/reproductions`.
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
# Five accountants
# ----------------
#
# All but one give upper bounds. The central limit takes the sum of many privacy losses for normal:
# it is close here, and no guarantee, which the value says itself.

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
