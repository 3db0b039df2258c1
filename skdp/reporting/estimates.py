"""Table of coefficients with intervals."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from skdp.accounting.records import html_row, safe_text

_WIDTH = 100
# "step" of rows without a coefficient in a variant.
LEFT_OUT = "left out"


# Characters that LaTeX reads as commands.
_LATEX = str.maketrans({letter: f"\\{letter}" for letter in "&%$#_{}"} | {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "[": "{[}", "]": "{]}",
})  # fmt: skip


def _shown(*numbers: float, ratio: bool = False) -> list[str]:
    """Return an estimate and its interval to two digits of the width, relative for ratios."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        ends = np.log(numbers[1:]) if ratio else np.asarray(numbers[1:], dtype=np.float64)
        width = abs(float(ends[1] - ends[0])) * (numbers[1] if ratio else 1.0)
    if not np.isfinite(width) or width == 0.0 or (ratio and numbers[2] > 100.0 * numbers[1]):
        return [f"{number:.3g}" if np.isfinite(number) else "-" for number in numbers]
    digits = 1 - int(np.floor(np.log10(width)))
    return [f"{round(number, digits):,.{max(digits, 0)}f}" for number in numbers]


def shortened(text: str, width: int) -> str:
    """Return a text without its middle if it is too long: what sets levels apart is at its ends."""
    left = (width - 3) // 2
    return text if len(text) <= width else f"{text[:left]}...{text[left + 3 - width :]}"


def _extra(value: Any) -> str:
    """Return a p-value to three decimals, or a text."""
    if isinstance(value, str):
        return value
    return "" if np.isnan(value) else "<0.001" if value < 0.001 else f"{value:.3f}"


class CoefficientIntervals(dict[str, np.ndarray]):
    """Coefficients and intervals, as a dictionary of columns for ``pandas.DataFrame``.

    It prints as a table and displays as HTML in notebooks. `PrivateInference` creates it.

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
    ratio : str, default=""
        Prefix of columns of exponentials, such as "odds": "odds_ratio", "odds_low" and "odds_high"
        are then added, and shown in place of the coefficients. `target` is without "log odds of".
    extra : sequence of str, default=()
        Further columns that are shown, of p-values or text.

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
        ratio: str = "",
        extra: Sequence[str] = (),
    ) -> None:
        super().__init__({name: np.asarray(values) for name, values in columns.items()})
        self.ratio, self.extra = ratio, tuple(extra)
        own = self._shown_columns = (estimate, "low", "high")
        if ratio:
            self._shown_columns = (f"{ratio}_ratio", f"{ratio}_low", f"{ratio}_high")
            with np.errstate(over="ignore"):
                powers = [np.exp(self[key]) for key in own]
            after = list(self)[1 + list(self).index("high") :]
            self.update(zip(self._shown_columns, powers, strict=True))
            self.update([(name, self.pop(name)) for name in after])  # in their order, last
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
        keys = (*self._shown_columns, *self.extra)
        head = (self._shown_columns[0], "low", "high", *self.extra)
        found: list[tuple[str, ...]] = [("", *(key.replace("_", " ") for key in head))]
        cells = zip(*(self[key] for key in keys), strict=True)
        rows = zip(self.labels, self.is_reference, self.is_left_out, cells, strict=True)
        for label, is_reference, is_left_out, own in rows:
            texts = [*_shown(*own[:3], ratio=bool(self.ratio)), *map(_extra, own[3:])]
            if not is_left_out:
                found.append((label, *([""] * len(keys) if is_reference else texts)))
        return found

    @property
    def _headline(self) -> str:
        of = f" of {self.target}" if self.target else ""
        at = f"; the intercept is at {self.intercept_at}" if self.intercept_at else ""
        what = f"{self.ratio.capitalize()} ratios" if self.ratio else "Coefficients"
        return f"{what}{of}, with {100.0 * self.confidence:.4g}% intervals{at}"

    @property
    def _notes(self) -> list[str]:
        names = ", ".join(self["name"][self.is_left_out])
        return [note for note in (self.reason, names and f"Left out: {names}.") if note]

    def __repr__(self) -> str:
        lines = self._lines()
        # Long labels are shortened, to keep the width.
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        widths[0] = min(widths[0], max(_WIDTH - sum(widths[1:]) - 2 * len(widths) + 2, 20))
        lines = [(shortened(line[0], widths[0]), *line[1:]) for line in lines]
        text = [
            "  ".join([line[0].ljust(widths[0]), *(map(str.rjust, line[1:], widths[1:]))]).rstrip()
            for line in lines
        ]
        notes = [line for note in self._notes for line in textwrap.wrap(note, _WIDTH)]
        return "\n".join([*textwrap.wrap(self._headline, _WIDTH), *text, *notes])

    def _repr_html_(self) -> str:
        head, *lines = self._lines()
        rows = [html_row(head, header=len(head)), *(html_row(line, header=1) for line in lines)]
        about, *notes = (html.escape(safe_text(text)) for text in (self._headline, *self._notes))
        below = "".join(f"<p>{note}</p>" for note in notes)
        return f"<div><table><caption>{about}</caption>{''.join(rows)}</table>{below}</div>"

    def to_latex(self) -> str:
        """Return the table for LaTeX, with ``booktabs``, the caption above and notes below."""

        def tex(text: str) -> str:
            return safe_text(text).translate(_LATEX)

        head, *rows = (" & ".join(map(tex, line)) + r" \\" for line in self._lines())
        columns = "l" + "r" * (3 + len(self.extra))
        return "\n".join([
            r"\begin{table}", rf"\caption{{{tex(self._headline)}}}",
            rf"\begin{{tabular}}{{{columns}}}", r"\toprule",
            head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}",
            *(rf"\par\footnotesize {tex(note)}" for note in self._notes), r"\end{table}",
        ])  # fmt: skip
