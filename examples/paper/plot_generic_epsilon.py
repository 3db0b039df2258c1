"""Epsilon over 100 epochs of DP-SGD by MA, GA, BA and PLD: Figure 1 of Triastcyn and Faltings.

Dashed curves are no bounds. The picture needs matplotlib (``pip install ".[plot]"``).

    python examples/paper/plot_generic_epsilon.py generic_epsilon.png
"""

import sys

from _figures import show
from triastcyn import DELTA, NO_BOUND, SETTING, over_epochs

REMARKS = """
The paper shows: GA below MA and BA below GA at every epoch; at the end 2.18, 1.62 and 0.95.
We get: MA and GA to the last printed digit. BA ends below GA too, and starts above it.
Why they differ: BA depends on the model and on how close its records' gradients are; at the start
typical pairs are more than one clipping norm apart, which is what GA takes for the largest change.
What they are worth: MA is a guarantee. GA is none: the exact divergence of a sampled Gaussian puts
it back on MA's curve, and PLD, certified from both sides, lies above the printed GA from epoch 40
on. BA is a diagnostic of typical pairs: it promises nothing to any one record."""


def main(path: str) -> None:
    places, curves = over_epochs(lambda accountant: accountant.epsilon(DELTA))
    axes = {"xlabel": "epoch", "ylabel": "epsilon", "title": SETTING}
    show(path, "epsilon by epoch", places, curves, REMARKS, NO_BOUND, **axes)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "generic_epsilon.png")
