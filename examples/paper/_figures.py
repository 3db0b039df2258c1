"""What scripts of one figure each share: a printed table, remarks, a picture."""

from collections.abc import Mapping, Sequence
from typing import Any


def report(
    label: str, places: Sequence[float], curves: Mapping[str, Sequence[float]], remarks: str
) -> None:
    """Print one line for each curve, and what the paper shows, what we get, why they differ."""
    print(f"{label:34}" + "".join(f"{place:>11g}" for place in places))
    for name, values in curves.items():
        print(f"{name:34}" + "".join(f"{value:>11.4g}" for value in values))
    print(remarks, flush=True)


def draw(
    path: str,
    places: Sequence[float],
    curves: Mapping[str, Sequence[float]],
    dashed: tuple[str, ...],
    **settings: Any,
) -> None:
    """Draw the curves, dashed where they are no bound."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, ax = pyplot.subplots(figsize=(8, 5), layout="constrained")
    for name, values in curves.items():
        ax.plot(places, values, "--" if name.startswith(dashed) else "-", label=name)
    ax.set(**settings)
    ax.legend(fontsize="small")
    figure.savefig(path, dpi=65)
    pyplot.close(figure)
    print(f"wrote {path}")
