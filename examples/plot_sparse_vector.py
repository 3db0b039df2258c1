"""
Publish alarms from daily counts
================================

A hospital monitors the daily number of cases for outbreaks during a year. Noisy counts for all
days would divide the budget by 365. The sparse vector technique reports every day whether the
count is above a threshold. One epsilon, charged in advance, covers all days until the third
alarm. The number of cases on a day with an alarm is a separate release, with a separate charge.

Each patient is in the count of one day, so counts are monotone and change by at most one. The
cases are made up.
"""

import matplotlib.pyplot as plt
import numpy as np

from skdp.accounting import LaplaceEvent
from skdp.budget import BudgetAccountant
from skdp.mechanisms import RandomStream, SparseVector, laplace_accuracy, laplace_mechanism

THRESHOLD, ALARMS, OUTBREAKS = 90.0, 3, (95, 203, 310)
WATCHING, COUNTING = 1.0, 0.25  # epsilon of all alarms, and of each count

expected = np.full(365, 30.0)
expected[list(OUTBREAKS)] += 130.0
counts = np.random.default_rng(4).poisson(expected).astype(float)

# %%
# Monitor a year within one budget
# --------------------------------

budget = BudgetAccountant(
    WATCHING + ALARMS * COUNTING, 1e-9, adjacency="add-remove", composition="basic"
)
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
    if watch.is_above(count, THRESHOLD):
        budget.reserve(
            LaplaceEvent(1.0 / COUNTING),
            label=f"cases on day {day}",
            epsilon=COUNTING,
            delta=0,
            seeded=True,
        )
        alarms[day] = float(laplace_mechanism(count, 1.0, COUNTING, random_state=day))
    if watch.positives_left == 0:
        break

error = laplace_accuracy(COUNTING, 0.05, ALARMS)
print(f"alarms on days {', '.join(map(str, alarms))}")
print(f"days with outbreaks: {', '.join(map(str, OUTBREAKS))}")
print(f"their counts are off by at most {error:.1f}, with probability 95 %")
print(f"spent: epsilon {budget.total.epsilon:.2f} on {day + 1} answers, {len(alarms)} counts")

# %%
# Plot the released values
# ------------------------
#
# The dots with their bars are released. The grey line and the days with outbreaks printed above are
# private. They are shown here because the cases are made up.

figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
axes.plot(counts, lw=0.8, color="0.6", label="cases (private)")
axes.axhline(THRESHOLD, color="k", ls=":", lw=1, label="threshold")
axes.errorbar(
    list(alarms), list(alarms.values()), yerr=error, fmt="ko", capsize=3, label="alarm, its count"
)
axes.set(xlabel="day", ylabel="cases")
axes.legend(fontsize="small", loc="upper left")
plt.show()

# %%
# After the third alarm, a further answer raises an error, and a new watch needs a new charge.
# ``day`` in the loop above is public, because each answer is public.
