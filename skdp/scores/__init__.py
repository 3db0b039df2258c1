"""Scores by label: bins, noisy tables of counts, and the curves that follow from them."""
