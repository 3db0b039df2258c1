"""How a fitted search shows what it has released."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr

from skdp.parameters import plain
from skdp.reporting.records import html_table


class ShowsResults(BaseEstimator):
    """The part of a search that shows its results, above scikit-learn's picture in a notebook."""

    candidates_: dict[str, Any]
    best_index_: int
    privacy_spent_: Any

    def __str__(self) -> str:
        if not hasattr(self, "privacy_spent_"):
            return repr(self)
        facts = "; ".join(f"{name}: {value}" for name, value in self._facts())
        return f"{type(self).__name__}: {facts}"

    def _html_repr(self) -> str:
        picture = str(estimator_html_repr(self))
        if not hasattr(self, "privacy_spent_"):
            return picture
        facts = html_table(f"Results of {type(self).__name__}", self._facts())
        candidates = html_table("Candidates", self._candidate_rows())
        scroll = '<div style="max-height: 30em; overflow: auto">'
        return f"<div>{facts}{scroll}{candidates}</div></div>{picture}"

    def _facts(self) -> list[tuple[str, str]]:
        points = self.candidates_["params"]
        found = [("best parameters", _said(points[self.best_index_]))]
        if hasattr(self, "best_score_"):
            found.append(("noisy score", f"{self.best_score_:.4g}"))
        found.append(("candidates", str(len(points))))
        return [*found, ("privacy", repr(self.privacy_spent_))]

    def _candidate_rows(self) -> list[tuple[str, ...]]:
        """Return the candidates with their scores where these were released: of each run, if so."""
        points = self.candidates_["params"]
        scores = np.asarray(getattr(self, "noisy_scores_", ()))
        found: list[tuple[str, ...]] = [
            ("", "parameters", "noisy scores" if scores.size else "", "")
        ]
        for number, point in enumerate(points):
            own = ", ".join(f"{score:.4g}" for score in scores[number :: len(points)])
            chosen = "chosen" if number == self.best_index_ else ""
            found.append((str(number), _said(point), own, chosen))
        return found


def _said(point: dict[str, Any]) -> str:
    text = ", ".join(f"{name}={plain(value)!r}" for name, value in point.items())
    return textwrap.shorten(text, 300, placeholder=" ...") or "the estimator's own"
