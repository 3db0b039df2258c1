"""What scripts of one figure each share: a printed table, remarks, a picture."""

from collections.abc import Mapping, Sequence
from typing import Any

Curves = Mapping[str, Sequence[float]]


def show(
    path: str,
    label: str,
    places: Sequence[float],
    curves: Curves,
    remarks: str,
    dashed: tuple[str, ...],
    **axes: Any,
) -> None:
    """Print one line for each curve and what to make of it; draw, dashed where it is no bound."""
    print(f"{label:34}" + "".join(f"{place:>11g}" for place in places))
    for name, values in curves.items():
        print(f"{name:34}" + "".join(f"{value:>11.4g}" for value in values))
    print(remarks, flush=True)

    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, ax = pyplot.subplots(figsize=(8, 5), layout="constrained")
    for name, values in curves.items():
        ax.plot(places, values, "--" if name.startswith(dashed) else "-", label=name)
    ax.set(**axes)
    ax.legend(fontsize="small")
    figure.savefig(path, dpi=65)
    print(f"wrote {path}")
