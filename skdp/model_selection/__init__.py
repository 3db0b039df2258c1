"""Differentially private searches for parameters."""

from skdp.model_selection._classes import PrivateGridSearchCV, PrivateRandomizedSearchCV
from skdp.model_selection._scoring import RowScorer, make_row_scorer

__all__ = ["PrivateGridSearchCV", "PrivateRandomizedSearchCV", "RowScorer", "make_row_scorer"]
