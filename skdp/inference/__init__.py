"""Intervals of coefficients from one look at a private model."""
