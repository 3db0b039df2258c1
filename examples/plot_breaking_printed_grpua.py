"""
Disprove a published mechanism
==============================

A published algorithm draws one record at a time, multiplies its gradient by the number of records
n, and adds Gaussian noise. The printed noise fits a gradient that counts once, so it is too small
by a factor of 2n. With n = 50, the claim is epsilon = 0.97 at delta = 0.05, for 2,499 steps.

This page disproves the claim by an attack. The two tables are 50 equal records, and the same
records with the sign of one changed. The weights released by many runs distinguish the tables far
better than the claim allows. ``audit_epsilon`` computes a lower bound on epsilon, which is wrong
with probability at most 0.001. The repaired algorithm, with its claim, withstands the attack.
"""

import warnings
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

from skdp import GrpuaSVC
from skdp.accounting import ApproxDPEvent
from skdp.audit import audit_epsilon
from skdp.exceptions import PrivacyWarning

# Every fit warns because the published delta is above 1/n.
warnings.simplefilter("ignore", PrivacyWarning)

# %%
# Set up the attack
# -----------------
#
# All rows are (1,) with label 1, on the straight part of the hinge. One of them becomes (-1,). The
# steps are so short that the weights stay on the straight part, and weights are not averaged. The
# rows are made up, because an audit publishes information about them.

N_ROWS, N_STEPS = 50, 2499
PRINTED_SIGMA = 17.404396  # for (0.1, 0.001) a step, and a gradient of norm 1
CLAIM, DELTA = 0.970447, 0.05  # of all steps, by the printed composition
TABLE = np.ones((N_ROWS, 1)), np.ones(N_ROWS, dtype=int)
NEIGHBOUR = np.vstack([TABLE[0][1:], [[-1.0]]]), TABLE[1]


class PrintedGRPUA(GrpuaSVC):
    """The algorithm with the noise and the claim that were printed."""

    def _build_plan(self, model, numbers):
        self._sound = super()._build_plan(model, numbers)
        # A step here sums the gradients of a batch of one; there it is n times that, with this
        # noise.
        return replace(self._sound, sigma=PRINTED_SIGMA / N_ROWS)

    def _account(self, plan):
        # A record of what runs refuses the printed claim: its event disproves it.
        event = ApproxDPEvent(CLAIM, DELTA)
        return replace(super()._account(self._sound), epsilon=CLAIM, delta=DELTA, event=event)


SETTINGS = {
    **{"epsilon": CLAIM, "delta": DELTA, "data_norm": 1.0, "fit_intercept": False},
    **{"sampling": "uniform", "batch_size": 1, "max_iter": N_STEPS},
    **{"alpha": 0.0, "learning_rate_init": 1e-5, "average": False, "classes": [0, 1]},
}
models = {"as printed": PrintedGRPUA(**SETTINGS), "repaired": GrpuaSVC(**SETTINGS)}

# %%
# Run the audit
# -------------
#
# The bound grows with the number of runs: 30,000 runs prove more than 7.

RUNS = {"as printed": 250, "repaired": 100}
for name, model in models.items():
    found = audit_epsilon(
        model,
        *TABLE,
        neighbour=NEIGHBOUR,
        n_trials=RUNS[name],
        method="clopper-pearson",
        random_state=0,
    )
    verdict = "DISPROVED" if found.violated else "not disproved"
    print(
        f"{name}: claims epsilon {found.claimed:.2f} at delta {found.delta}, loses "
        f"{found.epsilon_lower:.2f} at least; {verdict}"
    )

# %%
# Plot the released weights
# -------------------------
#
# The left plot shows the released weights. The right plot shows the two error rates of all
# thresholds on the weight, and the region that the claim excludes.

SIGHT = 60


def released(model, table):
    """Return the weight that each of several fits releases."""
    return np.array([model.fit(*table).coef_[0, 0] for _ in range(SIGHT)])


def rates(one, other):
    """Return false alarms and misses of all thresholds between two sets of numbers."""
    thresholds = np.sort(np.concatenate([one, other]))
    alarms = 1.0 - np.searchsorted(np.sort(other), thresholds, side="right") / other.size
    return alarms, np.searchsorted(np.sort(one), thresholds, side="right") / one.size


figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for (name, model), style in zip(models.items(), ("k-", "k--"), strict=True):
    one, other = released(model, TABLE), released(model, NEIGHBOUR)
    right.plot(*rates(one, other), style, label=name)
    if name == "as printed":
        left.hist(one, bins=15, color="0.3", label="50 equal rows")
        left.hist(other, bins=15, color="0.75", alpha=0.8, label="one sign changed")
alarms = np.linspace(0.0, 1.0, 400)
lines = 1.0 - DELTA - np.exp(CLAIM) * alarms, np.exp(-CLAIM) * (1.0 - DELTA - alarms)
right.fill_between(
    alarms, np.maximum(np.max(lines, axis=0), 0.0), color="0.85", label="excluded by the claim"
)
left.set(title="as printed: what is released", xlabel="weight", ylabel="runs")
right.set(title="errors of an attacker", xlabel="false alarms", ylabel="misses")
left.legend()
right.legend()
plt.show()
