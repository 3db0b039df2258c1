"""Epsilon by each moment lambda and number of epochs: Figure 3 of Triastcyn and Faltings.

Dashed curves are no bounds. The picture needs matplotlib (``pip install ".[plot]"``).

    python examples/paper/plot_generic_moment.py generic_moment.png
"""

import math
import sys

from _figures import show
from triastcyn import BA, DELTA, EXACT, GA, NO_BOUND, SETTING, account, bayesian

PLACES = (1, 2, 4, 6, 8, 10, 12, 13, 14, 16, 24, 32)
REMARKS = """
The paper shows: a best lambda that moves with the length of training, and matters more the longer.
We get: the same by the printed formula and by BA: a smooth valley, at smaller lambda after longer.
Why that is not all: from lambda = 13 on the true moments of this sampled Gaussian (exact; MA's
are the same) leave the printed parabola and are useless as bounds. After 10 epochs and after 100
the printed valley lies there, so that its best lambda is one that proves nothing."""


def curves_after(epochs: int) -> dict[str, list[float]]:
    """Return the bound on epsilon that each moment gives alone."""
    filled = account(epochs)
    curves = {
        f"{name}, {epochs} epochs": [
            (filled[name].log_moment(moment + 1.0) - math.log(DELTA)) / moment for moment in PLACES
        ]
        for name in (GA, EXACT)
    }
    observed = [bayesian(epochs, [moment]).epsilon(DELTA) for moment in PLACES]
    return curves | {f"{BA}, {epochs} epochs": observed}


def main(path: str) -> None:
    curves = curves_after(10) | curves_after(100)
    axes = {"xlabel": "lambda", "ylabel": "epsilon by this moment alone", "ylim": (0.2, 30)}
    axes |= {"xscale": "log", "yscale": "log", "title": SETTING}
    show(path, "epsilon by lambda", PLACES, curves, REMARKS, NO_BOUND, **axes)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "generic_moment.png")
