"""Numerics without event types: profiles, quadrature, divergences, searches."""
