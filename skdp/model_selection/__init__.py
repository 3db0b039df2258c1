"""Searches for parameters that are differentially private as a whole."""

from skdp.model_selection._classes import PrivateGridSearchCV, PrivateRandomizedSearchCV
from skdp.model_selection._scoring import RowScorer, make_row_scorer

__all__ = ["PrivateGridSearchCV", "PrivateRandomizedSearchCV", "RowScorer", "make_row_scorer"]
