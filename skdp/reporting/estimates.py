"""Table of coefficients with intervals."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np

from skdp.accounting.records import html_row, safe_text

_WIDTH = 100
# "step" of rows without a coefficient in a variant.
LEFT_OUT = "left out"


def _shown(*numbers: float) -> list[str]:
    """Return an estimate and its interval to two digits of the interval's width."""
    width = abs(numbers[2] - numbers[1])
    if not np.isfinite(width) or width == 0.0:
        return [f"{number:.3g}" if np.isfinite(number) else "-" for number in numbers]
    digits = 1 - int(np.floor(np.log10(width)))
    return [f"{round(number, digits):,.{max(digits, 0)}f}" for number in numbers]


class CoefficientIntervals(dict[str, np.ndarray]):
    """Coefficients and intervals, as a dictionary of columns for ``pandas.DataFrame``.

    It prints as a table and displays as HTML in notebooks. `coefficient_intervals` creates it.

    Parameters
    ----------
    columns : mapping of ndarray
        Columns of equal length. "name", "low", "high" and `estimate` are required. "step" is the
        change of the feature ("+1 years", "against A"), and "is_reference" marks reference levels.
    estimate : str, default="value"
        Name of the column with the estimates.
    confidence : float, default=0.95
        Coverage of each interval.
    target : str, default=""
        Target and unit of the coefficients, such as "stay (days)".
    intercept_at : str, default=""
        Values of the features at the intercept.
    reason : str, default=""
        Reason for missing intervals, with a remedy.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.reporting import CoefficientIntervals
    >>> columns = {"name": ["age"], "value": [0.5], "low": [0.4], "high": [0.6], "step": ["+1"]}
    >>> CoefficientIntervals(columns, target="stay (days)")
    Coefficients of stay (days), with 95% intervals
            value   low  high
    age +1   0.50  0.40  0.60
    """

    def __init__(
        self,
        columns: Mapping[str, Any],
        *,
        estimate: str = "value",
        confidence: float = 0.95,
        target: str = "",
        intercept_at: str = "",
        reason: str = "",
    ) -> None:
        super().__init__({name: np.asarray(values) for name, values in columns.items()})
        self.estimate, self.confidence, self.target = estimate, confidence, target
        self.intercept_at, self.reason = intercept_at, reason

    def to_frame(self) -> Any:
        """Return the table as a pandas frame, one row per coefficient.

        Returns
        -------
        DataFrame
            Frame with the same columns.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        try:
            from pandas import DataFrame
        except ImportError as missing:
            raise ImportError("to_frame needs pandas: pip install pandas.") from missing
        return DataFrame(dict(self))

    @property
    def is_reference(self) -> np.ndarray:
        """Whether each row is a reference level."""
        none = np.zeros(len(self["name"]), dtype=bool)
        return np.asarray(self.get("is_reference", none))

    @property
    def is_left_out(self) -> np.ndarray:
        """Whether a variant has no coefficient for each row."""
        return np.asarray(self.get("step", self["name"])) == LEFT_OUT

    @property
    def labels(self) -> list[str]:
        """Name and step of each row."""
        steps = self.get("step", np.full(len(self["name"]), "", dtype=object))
        return [f"{name} {step}".rstrip() for name, step in zip(self["name"], steps, strict=True)]

    def _lines(self) -> list[tuple[str, ...]]:
        keys = (self.estimate, "low", "high")
        found: list[tuple[str, ...]] = [("", *keys)]
        numbers = zip(*(self[key] for key in keys), strict=True)
        rows = zip(self.labels, self.is_reference, self.is_left_out, numbers, strict=True)
        for label, is_reference, is_left_out, own in rows:
            if not is_left_out:
                found.append((label, *(("", "", "") if is_reference else _shown(*own))))
        return found

    @property
    def _headline(self) -> str:
        of = f" of {self.target}" if self.target else ""
        at = f"; the intercept is at {self.intercept_at}" if self.intercept_at else ""
        return f"Coefficients{of}, with {100.0 * self.confidence:.4g}% intervals{at}"

    @property
    def _notes(self) -> list[str]:
        names = ", ".join(self["name"][self.is_left_out])
        return [note for note in (self.reason, names and f"Left out: {names}.") if note]

    def __repr__(self) -> str:
        lines = self._lines()
        widths = [max(len(line[place]) for line in lines) for place in range(4)]
        text = [
            "  ".join([line[0].ljust(widths[0]), *(map(str.rjust, line[1:], widths[1:]))])
            for line in lines
        ]
        text = [line.rstrip() for line in text]
        notes = [line for note in self._notes for line in textwrap.wrap(note, _WIDTH)]
        return "\n".join([*textwrap.wrap(self._headline, _WIDTH), *text, *notes])

    def _repr_html_(self) -> str:
        head, *lines = self._lines()
        rows = [html_row(head, header=4), *(html_row(line, header=1) for line in lines)]
        about, *notes = (html.escape(safe_text(text)) for text in (self._headline, *self._notes))
        below = "".join(f"<p>{note}</p>" for note in notes)
        return f"<div><table><caption>{about}</caption>{''.join(rows)}</table>{below}</div>"
