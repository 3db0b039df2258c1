"""Losses on a grid, composed by fast Fourier transforms from above and from below."""
