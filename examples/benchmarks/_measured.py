"""Tables of docs/: all rows in a CSV file under docs/measured/, some of them in markdown."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write all rows."""
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([columns, *rows])


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in markdown, with a line break after each row."""
    lines = [f"| {' | '.join(row)} |\n" for row in (columns, *rows)]
    return "".join([lines[0], "|" + "---|" * len(columns) + "\n", *lines[1:]])
