"""Epsilon over 100 epochs of DP-SGD by MA, GA, BA and PLD: Figure 1 of Triastcyn and Faltings.

Dashed curves are no bounds. The picture needs matplotlib (``pip install ".[plot]"``).

    python examples/paper/plot_generic_epsilon.py generic_epsilon.png
"""

import sys

from _figures import draw, report
from triastcyn import DELTA, EPOCHS, NO_BOUND, account

PLACES = (1, 5, 10, 20, 40, 60, 80, EPOCHS)
REMARKS = """
The paper shows: GA below MA and BA below GA at every epoch; at the end 2.18, 1.62 and 0.95.
We get: MA and GA to the last printed digit. BA ends below GA too, and starts above it.
Why they differ: BA depends on the model and on how close its records' gradients are; at the start
typical pairs are more than one clipping norm apart, which is what GA takes for the largest change.
What they are worth: MA is a guarantee. GA is none: the exact divergence of a sampled Gaussian puts
it back on MA's curve, and PLD, certified from both sides, lies above the printed GA from epoch 40
on. BA is a diagnostic of typical pairs: it promises nothing to any one record."""


def main(path: str) -> None:
    filled = [account(place) for place in PLACES]
    curves = {name: [each[name].epsilon(DELTA) for each in filled] for name in filled[0]}
    report("epsilon at delta = 1e-5, epoch", PLACES, curves, REMARKS)
    title = "lots of 64 of 60,000, sigma = 1, delta = 1e-5"
    draw(path, PLACES, curves, NO_BOUND, xlabel="epoch", ylabel="epsilon", title=title)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "generic_epsilon.png")
