"""
Audit a privacy claim
=====================

This page audits DP-SGD, and a faulty copy of it that adds half of the noise that it accounts for.
An audit attacks the code: it fits many times on two tables that differ in one row. The attacker
uses the released values to distinguish the tables. The success rate gives a lower bound on the
privacy loss.

The rows are made up. **Audit made-up rows only**: the result depends on the rows without noise,
and no budget covers it.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

from skdp import DPSGDClassifier
from skdp.audit import AuditDisplay, audit_epsilon, audit_in_one_run

X, y = np.zeros((10, 1)), np.arange(10) % 2


class Careless(DPSGDClassifier):
    """Accounts for the noise of its plan, and adds half of it."""

    def _carry_out(self, plan, *rest):
        return super()._carry_out(replace(plan, sigma=plan.sigma / 2), *rest)


# %%
# Fit many times on two tables
# ----------------------------
#
# The default pair of tables is the worst case that skdp knows for a classifier. They differ in one
# row at the public bound, in a column that no other row uses; its label changes, or the row is
# absent.
#
# With ``release="all"``, the attacker sees every noisy sum, as the accounting of DP-SGD assumes. A
# bound below the claim proves nothing. A bound above the claim proves that the claim is false, at
# the stated confidence.

CLAIM = {"epsilon": 8.0, "delta": 1e-5, "data_norm": 1.0, "fit_intercept": False}
STEPS = {"batch_size": 11, "max_iter": 2, "max_grad_norm": 0.1}
CLASSES = {"as it is": DPSGDClassifier, "half the noise": Careless}
TRIALS = (100, 200, 400, 800)

found = {
    name: [
        audit_epsilon(make(**CLAIM, **STEPS), X, y, n_trials=trials, release="all", random_state=0)
        for trials in TRIALS
    ]
    for name, make in CLASSES.items()
}
for name, results in found.items():
    for trials, result in zip(TRIALS, results, strict=True):
        print(
            f"{name:15s} {trials:4d} fits a table: claims mu {result.mu_claimed:.2f}, shown "
            f"{result.mu_lower:.2f}{', VIOLATED' if result.violated else ''}"
        )

# %%
# The left plot shows the lower bounds against the number of fits. The right plot shows the errors
# of the last test on the faulty copy. The rectangle contains the true error rates with the
# confidence of the audit, and its corner is below the curve that the claim allows.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for (name, results), style in zip(found.items(), ("ko-", "ks--"), strict=True):
    left.plot(TRIALS, [result.mu_lower for result in results], style, label=name)
left.axhline(results[0].mu_claimed, color="0.5", ls=":", label="claimed")
left.set(xlabel="fits on each table", ylabel="mu (of Gaussian differential privacy)", ylim=0)
left.set(xscale="log", title="lower bounds")
left.set_xticks(TRIALS, TRIALS)
left.minorticks_off()
left.legend()
AuditDisplay(found["half the noise"][-1]).plot(ax=right)
right.set(title="half the noise, 800 fits")
right.legend(fontsize="small", loc="upper right")
plt.show()

# %%
# Audit one fit with many canaries
# --------------------------------
#
# A large model cannot be fitted hundreds of times. One fit suffices if many rows may differ. Each
# of 1,000 canaries is included independently with probability 1/2, and the attacker guesses from
# the released values which ones were included. ``method="binomial"`` assumes independent noise in
# the columns, as here. The default needs no such assumption and proves a smaller bound.

for name, make in CLASSES.items():
    model = make(**CLAIM, **STEPS | {"batch_size": 1010})
    for method in ("f-dp", "binomial"):
        result = audit_in_one_run(
            model, X, y, n_canaries=1000, release="all", method=method, random_state=0
        )
        print(
            f"{name:15s} {method:9s} claims mu {result.mu_claimed:.2f}, shown "
            f"{result.mu_lower:.2f}{', VIOLATED' if result.violated else ''}"
        )
