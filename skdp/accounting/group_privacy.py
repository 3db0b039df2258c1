"""Guarantees for groups of records, from a guarantee for one record."""

from __future__ import annotations

import math

from skdp.accounting.accountants.base import Accountant
from skdp.accounting.accountants.gdp import GDPAccountant
from skdp.accounting.checks import check_integer, check_real
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.numerics.arithmetic import golden_section, narrow_bracket
from skdp.accounting.value import PrivacyValue

_ITERATIONS = 8
_ROUNDS = 2
_LARGEST_EXPONENT = 700.0


def group_privacy(epsilon: float, delta: float, size: int) -> tuple[float, float]:
    """Return the guarantee for groups that follows from one for single records.

    Parameters
    ----------
    epsilon : float
        Privacy parameter for neighbours, in nats, ``>= 0``.
    delta : float
        Failure probability for neighbours, in [0, 1].
    size : int
        Number of records in which data sets may differ, at least 1.

    Returns
    -------
    tuple of two floats
        ``size * epsilon`` and ``delta (e^(size eps) - 1) / (e^eps - 1)``, at most 1.

    Notes
    -----
    A chain of neighbours has ``P(S) <= e^eps P'(S) + delta`` at every link (Dwork and Roth, 2014,
    Theorem 2.2; Vadhan, 2017, Lemma 2.2). To replace a record is to remove one and add another.
    Add-remove guarantees with ``size=2`` are therefore replace-one guarantees, but accounting under
    replace-one is tighter.

    Examples
    --------
    >>> from skdp.accounting import group_privacy
    >>> group_privacy(0.0, 1e-6, 3)
    (0.0, 3e-06)
    """
    size = check_integer("group privacy", "size", size, 1)
    epsilon = check_real("group_privacy", "epsilon", epsilon)
    delta = check_real("group_privacy", "delta", delta)
    if not epsilon >= 0:
        raise ValueError(f"epsilon must be >= 0, got {epsilon!r}.")
    if not 0 <= delta <= 1:
        raise ValueError(f"delta must lie in [0, 1], got {delta!r}.")
    if delta == 0.0:
        return size * epsilon, 0.0
    if (size - 1) * epsilon > _LARGEST_EXPONENT:
        return size * epsilon, 1.0
    factor = math.expm1(size * epsilon) / math.expm1(epsilon) if epsilon > 0.0 else float(size)
    return size * epsilon, min(1.0, delta * factor)


def group_delta(accountant: Accountant, epsilon: float, size: int) -> PrivacyValue:
    """Return an upper bound on delta for data sets that differ in several records.

    Parameters
    ----------
    accountant : Accountant
        Accountant with the plan, whose results are for neighbours.
    epsilon : float
        Privacy parameter in nats, ``>= 0``.
    size : int
        Number of records in which data sets may differ, at least 1.

    Returns
    -------
    PrivacyValue
        Failure probability; a guarantee only if the accountant gives one.

    Notes
    -----
    The chain is that of `group_privacy`, with a different point of the profile at every link. For
    any real e_i, ``delta(e_1) + e^(e_1) delta(e_2) + e^(e_1 + e_2) delta(e_3) + ...`` bounds delta
    at ``e_1 + ... + e_k``. At a negative x the profile is at most ``1 - e^x + e^x delta(-x)``. The
    e_i form an arithmetic progression with the best increment. This is exact for Gaussian plans,
    with increment ``mu^2``: k records are ``k mu``-GDP (Dong, Roth and Su, 2022, Theorem 2.4).

    Examples
    --------
    >>> from skdp.accounting import GaussianEvent, GDPAccountant, group_delta
    >>> one, two = (GDPAccountant().compose(GaussianEvent(z)) for z in (4.0, 2.0))
    >>> round(group_delta(one, 1.0, 2), 9) == round(two.delta(1.0), 9)
    True
    """
    size = _check(accountant, size)
    single = accountant.delta(epsilon)
    if size == 1:
        return single

    if isinstance(accountant, GDPAccountant):
        value = gaussian_profile.delta(size * accountant.mu, epsilon)
    else:
        value = _Chain(accountant, size).best(float(epsilon))[0]
    return PrivacyValue(
        min(1.0, value * (1.0 + 1e-14)),
        min(single.lower, value),
        is_upper_bound=single.is_upper_bound,
        is_differential_privacy=single.is_differential_privacy,
    )


def group_epsilon(accountant: Accountant, delta: float, size: int) -> PrivacyValue:
    """Return an upper bound on epsilon for data sets that differ in several records.

    Parameters
    ----------
    accountant : Accountant
        Accountant with the plan, whose results are for neighbours.
    delta : float
        Failure probability, in [0, 1).
    size : int
        Number of records in which data sets may differ, at least 1.

    Returns
    -------
    PrivacyValue
        Epsilon in nats, infinite if nothing is known; a guarantee only if the accountant gives one.

    Notes
    -----
    The least epsilon at which `group_delta` is at most delta, to six digits and rounded up.

    Examples
    --------
    >>> from skdp.accounting import GaussianEvent, GDPAccountant, group_epsilon
    >>> accountant = GDPAccountant().compose(GaussianEvent(4.0))
    >>> [round(group_epsilon(accountant, 1e-5, size), 2) for size in (1, 2, 4)]
    [0.93, 1.99, 4.38]
    """
    size = _check(accountant, size)
    single = accountant.epsilon(delta)
    if size == 1:
        return single
    high = math.inf
    if isinstance(accountant, GDPAccountant):
        high = gaussian_profile.epsilon(size * accountant.mu, delta)
    elif math.isfinite(single.upper):
        high = _Chain(accountant, size).solve(delta, single.lower, size * single.upper)
    return PrivacyValue(
        high,
        min(single.lower, high),
        is_upper_bound=single.is_upper_bound,
        is_differential_privacy=single.is_differential_privacy,
    )


class _Chain:
    """Bounds along a chain of neighbours."""

    def __init__(self, accountant: Accountant, size: int) -> None:
        self._accountant = accountant
        self._size = size
        self._known: dict[float, float] = {}

    def _profile(self, x: float) -> float:
        if x < 0.0:
            return -math.expm1(x) + math.exp(x) * self._profile(-x)
        if x not in self._known:
            self._known[x] = float(self._accountant.delta(x))
        return self._known[x]

    def delta(self, epsilon: float, increment: float) -> float:
        """Sum the deltas of links whose epsilons rise by ``increment``."""
        total, passed = 0.0, 0.0
        for k in range(self._size):
            own = epsilon / self._size + increment * (k - 0.5 * (self._size - 1))
            value = self._profile(own)
            if value > 0.0 and passed > _LARGEST_EXPONENT:
                return math.inf
            total += value * math.exp(min(passed, _LARGEST_EXPONENT))
            passed += own
        return total

    def best(self, epsilon: float) -> tuple[float, float]:
        """Return the least delta found and its increment."""
        plain = self.delta(epsilon, 0.0), 0.0
        middle = self._profile(epsilon / self._size)
        if not (0.0 < middle < 1.0 and math.isfinite(epsilon)):
            return plain
        # The best increment of the Gaussian with that point on its profile.
        guess = 2.0 * math.log(gaussian_profile.mu(epsilon / self._size, middle))
        exponent, value = golden_section(
            lambda x: self.delta(epsilon, math.exp(x)), guess - 1.0, guess + 1.0, _ITERATIONS
        )
        central = self.delta(epsilon, math.exp(guess)), math.exp(guess)
        return min(plain, central, (value, math.exp(exponent)))

    def solve(self, delta: float, low: float, high: float) -> float:
        """Return an epsilon that attains delta, given a rough bracket."""
        while self.delta(high, 0.0) > delta:
            low, high = high, 2.0 * high
            if high > _LARGEST_EXPONENT * self._size:
                return math.inf
        for _ in range(_ROUNDS):
            # Any increment gives a bound; the best one at the last epsilon is good nearby.
            increment = self.best(high)[1]
            if self.delta(high, increment) <= delta:
                high = self._root(delta, increment, min(low, high), high)
        return high

    def _root(self, delta: float, increment: float, low: float, high: float) -> float:
        def excess(epsilon: float) -> float:
            value = self.delta(epsilon, increment)
            return math.log(value / delta) if value > 0.0 < delta else value - delta

        return narrow_bracket(excess, low, high, 1e-6)[1]


def _check(accountant: Accountant, size: int) -> int:
    size = check_integer("group privacy", "size", size, 1)
    if not isinstance(accountant, Accountant):
        raise TypeError(f"accountant must be an Accountant with a plan, got {accountant!r}.")
    return size
