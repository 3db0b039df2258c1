"""From Renyi divergences to (epsilon, delta)."""

from __future__ import annotations

import math

_FEW_ROUNDINGS = 2.0**-49


def conversion(moment: float) -> float:
    """Return ``moment log(1 - 1/order) - log(order)``, without cancellation.

    Log delta is at most the log moment, less ``moment epsilon``, and this (Canonne, Kamath and
    Steinke, 2020, Proposition 12).
    """
    return -(moment * math.log1p(1.0 / moment) + math.log1p(moment))


def sum_up(*terms: float) -> float:
    """Add up terms that are correct but for a few roundings; no less, even if divided once."""
    return sum(terms) + _FEW_ROUNDINGS * sum(map(abs, terms))


def nearby_order(order_minus_one: float) -> float:
    """Return an order at which moments are quickly computed: an integer, if it is large."""
    order = 1.0 + order_minus_one
    # Binomial sums at integer orders are dense enough beyond.
    return order if order <= 64.0 else float(round(order))
