"""Delta at a fixed epsilon over 100 epochs of DP-SGD: Figure 2 of Triastcyn and Faltings.

Dashed curves are no bounds. The picture needs matplotlib (``pip install ".[plot]"``).

    python examples/paper/plot_generic_delta.py generic_delta.png
"""

import sys

from _figures import show
from triastcyn import FIXED_EPSILON, NO_BOUND, SETTING, over_epochs

REMARKS = """
The paper shows: at one epsilon, GA's delta is smaller than MA's by a factor, which our copy of the
text has lost, as it has epsilon; we take 2.
We get: a delta by GA that is smaller at every epoch, by orders of magnitude.
Why: the factor q^2 shrinks the exponent. It does not hold: PLD, certified from both sides, lies
above GA at every epoch, so that GA's delta is none. Nor is BA's, which cannot fall below
gamma = 1e-6, the share that it keeps for the uncertainty of its averages."""


def main(path: str) -> None:
    places, curves = over_epochs(lambda accountant: accountant.delta(FIXED_EPSILON))
    label = f"delta at epsilon = {FIXED_EPSILON:g}"
    axes = {"xlabel": "epoch", "ylabel": label, "yscale": "log", "ylim": (1e-20, 1)}
    show(path, f"{label}, by epoch", places, curves, REMARKS, NO_BOUND, title=SETTING, **axes)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "generic_delta.png")
