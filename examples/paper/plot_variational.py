"""Figures 4 and 5 of Triastcyn and Faltings: accuracy on Abalone and Adult, and calibration.

Above, accuracy against epsilon: DPVI with the moments accountant and DP-SGLD, which are private,
and the paper's samples of a posterior without noise at the epsilons of its two accountants, which
promise nothing. Below, log loss, and the slope by which scores would have to be multiplied to be
calibrated: 1 is right, and less means probabilities too near to 0 and 1. At the bottom, share of
positives against mean probability in ten parts of the test rows, medians of five fits.

    python examples/paper/plot_variational.py figures.png  # from results
"""

import argparse
from typing import Any

from triastcyn_variational import results

LINES = ("skdp", "skdp, noise ignored", "DP-SGD", "objective perturbation", "DPVI-MA", "DP-SGLD")
CURVES = ("0.1", "1.0")
PANELS = {"accuracy": "accuracy", "loss": "log loss", "slope": "slope of calibration"}


def show(path: str | None) -> None:
    """Print what the figures hold, and draw them into a file."""
    for name, table in results()["tables"].items():
        for key, label in PANELS.items():
            for method in LINES:
                points = points_of(table, method, key)
                if points:
                    print(f"{name}, {label}, {method}:", *(f"{e:g}: {v:.3f}" for e, v in points))
        for epsilon in CURVES:
            print(f"{name}, share of positives above the probability, epsilon {epsilon}:")
            for method in LINES:
                if curve := table["private"][epsilon].get(method, {}).get("curve"):
                    print(f"  {method}:", *(f"{p:.2f}: {q - p:+.2f}" for p, q in curve))
    if path is not None:
        draw(path)


def points_of(table: dict, method: str, key: str) -> list[tuple[float, float]]:
    """Return epsilons and values of one method, as far as there are any."""
    cells = ((float(e), found.get(method, {}).get(key)) for e, found in table["private"].items())
    return [(epsilon, value) for epsilon, value in cells if value is not None]


def draw(path: str) -> None:
    """Draw one column a table and one row a quantity."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    tables = results()["tables"]
    shape = (len(PANELS) + len(CURVES), len(tables))
    figure, axes = pyplot.subplots(*shape, figsize=(7, 13), layout="constrained")
    for column, (name, table) in enumerate(tables.items()):
        for row, (key, label) in enumerate(PANELS.items()):
            ax = axes[row][column]
            for number, method in enumerate(LINES):
                points = points_of(table, method, key)
                if points:
                    ax.plot(*zip(*points, strict=True), "o-", color=f"C{number}", label=method)
            if key == "accuracy":
                sampled = table["sampling"]
                for accountant, marker in (("GA", "x"), ("BA", "+")):
                    label_of = f"samples by {accountant}, no guarantee"
                    at = sampled[accountant], sampled["accuracy"]
                    ax.plot(*at, marker, color="black", label=label_of)
            if key == "slope":
                ax.axhline(1.0, color="grey", linewidth=0.8)
            ax.set(xscale="log", xlabel="epsilon", ylabel=label, title=name)
        for ax, epsilon in zip(axes[len(PANELS) :, column], CURVES, strict=True):
            draw_curves(ax, table["private"][epsilon])
            ax.set_title(f"{name}, epsilon {epsilon}")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize="small")
    figure.savefig(path, dpi=40)
    print(f"wrote {path}")


def draw_curves(ax: Any, found: dict) -> None:
    """Draw share of positives against probability."""
    for number, method in enumerate(LINES):
        if curve := found.get(method, {}).get("curve"):
            ax.plot(*zip(*curve, strict=True), "o-", color=f"C{number}")
    ax.axline((0.0, 0.0), slope=1.0, color="grey", linewidth=0.8)
    ax.set(xlabel="mean probability", ylabel="share of positives")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("picture", nargs="?", help="file to draw into; needs matplotlib")
    show(parser.parse_args().picture)
