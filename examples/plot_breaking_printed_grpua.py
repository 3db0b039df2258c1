"""Breaking a published mechanism: gradient perturbation with the noise that was printed.

The algorithm draws one record at a time, multiplies its gradient by the number of records n, and
adds Gaussian noise. The noise that is printed for it fits a gradient that counts once: it is too
small by a factor of 2n. With n = 50 the claim is epsilon = 0.97 at delta = 0.05, for 2,499 steps.

Nobody has to believe that it is wrong. Fifty equal records are trained on, and then the same with
one of them turned round; the released weight of many runs tells the two tables apart, far better
than the claim allows. `audit_epsilon` turns the errors into a lower bound on epsilon that is wrong
with probability at most 0.001. The repaired algorithm, at its own claim, withstands the attack.
With matplotlib (``pip install ".[plot]"``) there is a picture: on the left what was released, on
the right the two error rates of all tests, and where they would have to stay.

    python examples/plot_breaking_printed_grpua.py picture.png --fast
"""

import argparse
import warnings
from dataclasses import replace

import numpy as np

from skdp import GrpuaSVC
from skdp.accounting import ApproxDPEvent
from skdp.audit import audit_epsilon
from skdp.exceptions import PrivacyWarning

N_ROWS, N_STEPS = 50, 2499
PRINTED_SIGMA = 17.404396  # for (0.1, 0.001) a step, and a gradient of norm 1
CLAIM, DELTA = 0.970447, 0.05  # of all steps, by the printed composition
# All rows are (1,) with label 1, on the straight part of the hinge; one of them becomes (-1,).
TABLE = np.ones((N_ROWS, 1)), np.ones(N_ROWS, dtype=int)
NEIGHBOUR = np.vstack([TABLE[0][1:], [[-1.0]]]), TABLE[1]


class PrintedGRPUA(GrpuaSVC):
    """The algorithm with the noise and the claim that were printed."""

    def _build_plan(self, model, numbers):
        plan = super()._build_plan(model, numbers)
        # A step here sums the gradients of a lot of one; there it is n times that, with this noise.
        return replace(plan, sigma=PRINTED_SIGMA / N_ROWS)

    def _account(self, plan):
        event = ApproxDPEvent(CLAIM, DELTA)
        return replace(super()._account(plan), epsilon=CLAIM, delta=DELTA, event=event)


def make(cls, **settings):
    """Return a classifier that runs as published: one record a step, steps of one size."""
    common = {"epsilon": CLAIM, "delta": DELTA, "data_norm": 1.0, "fit_intercept": False}
    lots = {"sampling": "uniform", "batch_size": 1, "max_iter": N_STEPS}
    # Steps so short that weights stay where the hinge is straight, and no momentum at the end.
    steps = {"alpha": 0.0, "learning_rate_init": 1e-5, "average": False, "classes": [0, 1]}
    return cls(**common, **lots, **steps, **settings)


def released(model, table, runs):
    """Return the weight that each of several fits releases."""
    return np.array([model.fit(*table).coef_[0, 0] for _ in range(runs)])


def rates(one, other):
    """Return false alarms and misses of all thresholds between two sets of numbers."""
    thresholds = np.sort(np.concatenate([one, other]))
    alarms = 1.0 - np.searchsorted(np.sort(other), thresholds, side="right") / other.size
    return alarms, np.searchsorted(np.sort(one), thresholds, side="right") / one.size


def draw(path, models, runs):
    """Draw what was released, and the error rates of all thresholds on it."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for name, model in models.items():
        one, other = (released(model, table, runs) for table in (TABLE, NEIGHBOUR))
        axes[1].plot(*rates(one, other), label=name)
        if name == "as printed":
            for values, label in ((one, "50 equal rows"), (other, "one of them turned round")):
                axes[0].hist(values, bins=40, alpha=0.6, label=label)
    alarms = np.linspace(0.0, 1.0, 400)
    lines = 1.0 - DELTA - np.exp(CLAIM) * alarms, np.exp(-CLAIM) * (1.0 - DELTA - alarms)
    axes[1].fill_between(
        alarms, np.maximum(np.max(lines, axis=0), 0.0), color="0.85", label="excluded by the claim"
    )
    axes[0].set(title="as printed: what is released", xlabel="weight", ylabel="runs")
    axes[1].set(title="errors of an attacker", xlabel="false alarms", ylabel="misses")
    for axis in axes:
        axis.legend()
    figure.savefig(path, dpi=75)
    print(f"wrote {path}")


def main():
    """Audit the printed algorithm and the repaired one, and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("picture", nargs="?", help="where to draw; needs matplotlib")
    parser.add_argument("--fast", action="store_true", help="few runs: the bound is lower then")
    arguments = parser.parse_args()
    # The published delta is above 1/n, of which every fit warns.
    warnings.simplefilter("ignore", PrivacyWarning)
    runs, sight = (1000, 100) if arguments.fast else (30_000, 2000)
    models = {"as printed": make(PrintedGRPUA), "repaired": make(GrpuaSVC)}
    for name, model in models.items():
        found = audit_epsilon(
            model,
            *TABLE,
            neighbour=NEIGHBOUR,
            n_trials=runs if name == "as printed" else runs // 10,
            method="clopper-pearson",
            random_state=0,
        )
        verdict = "DISPROVED" if found.violated else "not disproved"
        print(
            f"{name}: claims epsilon {found.claimed:.2f} at delta {found.delta}, loses "
            f"{found.epsilon_lower:.2f} at least; {verdict}"
        )
    if arguments.picture:
        draw(arguments.picture, models, sight)


if __name__ == "__main__":
    main()
