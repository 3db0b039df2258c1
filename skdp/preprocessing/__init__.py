"""Preprocessing that looks at no private value: its parameters are public."""

from skdp.preprocessing.bounded_scaler import BoundedScaler

__all__ = ["BoundedScaler"]
