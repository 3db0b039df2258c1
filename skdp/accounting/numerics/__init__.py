"""Numerics that know no release: profiles, quadrature, divergences, searches."""
