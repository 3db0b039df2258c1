"""Base class of all accountants."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.accounting.analysis import ADJACENCIES, sum_of_stated
from skdp.accounting.checks import check_integer, check_real
from skdp.accounting.events import ComposedEvent, Event, RepeatedEvent, check_event, leaf_counts
from skdp.accounting.numerics.trade_off import profile_grid, trade_off_lower
from skdp.accounting.value import (
    PrivacyValue,
    Proved,
    meet,
    named,
    note_certified,
    provers,
    warn_of_contradiction,
)
from skdp.base.parameters import Adjacency
from skdp.exceptions import UnsupportedEventError


class Accountant(ABC):
    """Privacy accountant: computes the cost of a plan of events that is fixed in advance.

    Parameters
    ----------
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        Adjacency relation between neighbouring data sets. ``"add-remove"``: one record is added or
        removed. ``"replace-one"``: one record is replaced, and the number of records is public.

    Notes
    -----
    Every returned number is an upper bound on the true cost, unless its `PrivacyValue.is_guarantee`
    is False. The queries may depend on earlier results; the list of events must not. To stop when a
    bound is reached, use a privacy filter.

    Examples
    --------
    >>> from skdp.accounting import Accountant, GaussianEvent, PLDAccountant
    >>> accountant = PLDAccountant(adjacency="replace-one")
    >>> isinstance(accountant, Accountant)
    True
    >>> epsilon = accountant.compose(GaussianEvent(4.0)).epsilon(1e-5)
    >>> round(epsilon, 3), epsilon.is_guarantee
    (0.926, True)
    """

    name: ClassVar[str]
    # All accountants by name, the tightest first; the package enters them.
    _known: ClassVar[dict[str, type[Accountant]]] = {}
    # Constructor parameters beyond the adjacency, kept as attributes of plain values.
    _parameters: ClassVar[tuple[str, ...]] = ()

    @property
    def is_upper_bound(self) -> bool:
        """Whether results are proved to be at least the true cost."""
        return True

    @property
    def is_differential_privacy(self) -> bool:
        """Whether results are about differential privacy."""
        return True

    def __init__(self, adjacency: Adjacency = "add-remove") -> None:
        if adjacency not in ADJACENCIES:
            raise ValueError(f"adjacency must be one of {ADJACENCIES}, got {adjacency!r}.")
        self._adjacency = adjacency
        self._counts: dict[Event, int] = {}

    @property
    def adjacency(self) -> str:
        """The adjacency relation between neighbouring data sets."""
        return self._adjacency

    @property
    def event(self) -> ComposedEvent:
        """All events composed so far; equal ones are merged."""
        return ComposedEvent(
            tuple(
                leaf if count == 1 else RepeatedEvent(leaf, count)
                for leaf, count in self._counts.items()
            )
        )

    def supports(self, event: Event) -> bool:
        """Return whether a bound is proved for an event under this adjacency.

        Examples
        --------
        >>> from skdp.accounting import GaussianEvent, GDPAccountant, PureDPEvent
        >>> GDPAccountant().supports(GaussianEvent(2.0)), GDPAccountant().supports(PureDPEvent(0.1))
        (True, False)
        """
        return all(self._supports_leaf(leaf) for leaf in leaf_counts(event))

    def compose(self, event: Event, count: int = 1) -> Self:
        """Add an event to the plan, and return this accountant.

        Parameters
        ----------
        event : Event
            Event to add.
        count : int, default=1
            Number of times that it happens, at least 0.

        Raises
        ------
        UnsupportedEventError
            If a part of the event has no proved bound here. The message names the part, and nothing
            is composed.
        """
        owner = f"{type(self).__name__}.compose"
        check_event(owner, "event", event)
        added = leaf_counts(event, check_integer(owner, "count", count, 0))
        for leaf in added:
            if not self._supports_leaf(leaf):
                raise UnsupportedEventError(
                    f"{type(self).__name__} has no proved bound for {leaf!r} under "
                    f"{self._adjacency!r} adjacency. {self._advice(leaf)}"
                )
        for leaf, times in added.items():
            self._counts[leaf] = self._counts.get(leaf, 0) + times
        return self

    def epsilon(self, delta: float) -> PrivacyValue:
        """Return an upper bound on epsilon at a given delta.

        Parameters
        ----------
        delta : float
            Failure probability, in [0, 1).

        Returns
        -------
        PrivacyValue
            Epsilon in nats, ``>= 0``; infinite when there is no bound at this delta. It carries a
            lower bound and unpacks as ``lower, upper``.

        Examples
        --------
        >>> from skdp.accounting import GaussianEvent, PLDAccountant, PoissonSampledEvent
        >>> step = PoissonSampledEvent(0.01, GaussianEvent(2.0))
        >>> epsilon = PLDAccountant().compose(step, count=1000).epsilon(1e-5)
        >>> lower, upper = epsilon
        >>> round(epsilon, 3), lower <= upper == epsilon
        (0.622, True)
        """
        delta = check_real(f"{type(self).__name__}.epsilon", "delta", delta)
        if not 0 <= delta < 1:
            raise ValueError(f"delta must lie in [0, 1), got {delta!r}.")
        return self._value(self._guarded(self._bounded_epsilon, delta, math.inf))

    def delta(self, epsilon: float) -> PrivacyValue:
        """Return an upper bound on delta at a given epsilon.

        Parameters
        ----------
        epsilon : float
            Privacy parameter in nats, ``>= 0``.

        Returns
        -------
        PrivacyValue
            Failure probability, in [0, 1]. It carries a lower bound and unpacks as ``lower,
            upper``.

        Examples
        --------
        >>> from skdp.accounting import GDPAccountant, GaussianEvent
        >>> f"{float(GDPAccountant().compose(GaussianEvent(4.0)).delta(1.0)):.3e}"
        '2.924e-06'
        """
        epsilon = check_real(f"{type(self).__name__}.delta", "epsilon", epsilon)
        if not epsilon >= 0:
            raise ValueError(f"epsilon must be >= 0, got {epsilon!r}.")
        return self._value(self._guarded(self._bounded_delta, epsilon, 1.0))

    def trade_off(self, alphas: ArrayLike) -> NDArray[np.float64]:
        """Return a lower bound on the trade-off function of the composed events.

        A test that decides between two neighbours with a false-alarm rate of at most alpha has at
        least the returned miss rate. This is f-differential privacy.

        Parameters
        ----------
        alphas : array-like of float
            False-alarm rates, in [0, 1].

        Returns
        -------
        ndarray
            Miss rates in [0, 1], with the shape of `alphas`. The true function is nowhere below
            them.

        Raises
        ------
        ValueError
            If a rate lies outside [0, 1], or results of this accountant are not upper bounds on
            differential privacy.

        Notes
        -----
        The (epsilon, delta) bounds at 101 epsilons give lines below the trade-off function. The
        result is the largest of these lines, and touches the function wherever the bounds are
        exact.

        References
        ----------
        Dong, Roth & Su (2022), "Gaussian Differential Privacy", Proposition 6.

        Examples
        --------
        >>> from skdp.accounting import GaussianEvent, PLDAccountant
        >>> PLDAccountant().compose(GaussianEvent(1.0)).trade_off([0.01, 0.05, 0.5]).round(3)
        array([0.908, 0.74 , 0.159])
        """
        rates = np.asarray(alphas, dtype=np.float64)
        if not np.all((rates >= 0.0) & (rates <= 1.0)):
            raise ValueError(f"alphas must lie in [0, 1], got {alphas!r}.")
        if not (self.is_upper_bound and self.is_differential_privacy):
            raise ValueError(
                f"{type(self).__name__} does not return upper bounds on differential privacy, so "
                "no trade-off function follows. Use PLDAccountant."
            )
        epsilons = profile_grid(self.epsilon)
        deltas = np.array([float(self.delta(float(point))) for point in epsilons])
        return trade_off_lower(epsilons, deltas, rates.ravel()).reshape(rates.shape)

    def to_dict(self) -> dict[str, Any]:
        """Return kind, parameters and history as plain values, ready for JSON.

        Examples
        --------
        >>> from skdp.accounting import Accountant, GaussianEvent, PLDAccountant
        >>> accountant = PLDAccountant().compose(GaussianEvent(4.0), count=3)
        >>> again = Accountant.from_dict(accountant.to_dict())
        >>> type(again).__name__, again.epsilon(1e-5) == accountant.epsilon(1e-5)
        ('PLDAccountant', True)
        """
        parameters = {name: getattr(self, name) for name in self._parameters}
        return {
            "type": self.name,
            "adjacency": self._adjacency,
            **parameters,
            "event": self.event.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild an accountant from the output of `to_dict`.

        Parameters
        ----------
        data : mapping
            Output of `to_dict` of this class; ``Accountant.from_dict`` reads any accountant.

        Raises
        ------
        TypeError, ValueError
            If the data are not a mapping, are incomplete, or describe another kind of accountant.
        """
        if not isinstance(data, Mapping):
            raise TypeError(f"{cls.__name__}.from_dict needs the output of to_dict, got {data!r}.")
        if cls is Accountant:
            return cast(Self, cls._named(data.get("type", "")).from_dict(data))
        if data.get("type") != cls.name:
            raise ValueError(
                f"data describe an accountant of type {data.get('type')!r}; {cls.__name__} reads "
                f"{cls.name!r}."
            )
        missing = sorted({"adjacency", "event"} - data.keys())
        if missing:
            raise ValueError(
                f"data lack {missing}; {cls.__name__}.from_dict needs the output of to_dict."
            )
        parameters = {name: data[name] for name in cls._parameters if name in data}
        accountant = cls(adjacency=data["adjacency"], **parameters)
        return accountant.compose(Event.from_dict(data["event"]))

    @classmethod
    def _named(cls, accountant: object) -> type[Accountant]:
        """Return the class with a name, or the class itself."""
        if isinstance(accountant, type) and issubclass(accountant, Accountant):
            return accountant
        if not isinstance(accountant, str) or accountant not in cls._known:
            raise ValueError(
                f"accountant must be one of {tuple(cls._known)} or an Accountant class, got "
                f"{accountant!r}."
            )
        return cls._known[accountant]

    def __repr__(self) -> str:
        parameters = "".join(f", {name}={getattr(self, name)!r}" for name in self._parameters)
        return (
            f"{type(self).__name__}(adjacency={self._adjacency!r}{parameters}, "
            f"event={self.event!r})"
        )

    def _value(self, interval: tuple[float, float]) -> PrivacyValue:
        """Wrap bounds; if they contradict each other, the larger counts."""
        lower, upper = interval
        if lower > upper:
            warn_of_contradiction(interval)
            upper = lower
        below, above = provers(interval)
        return PrivacyValue(
            upper,
            lower,
            proved_by=(below if lower > 0.0 else "", above or self.name),
            is_upper_bound=self.is_upper_bound,
            is_differential_privacy=self.is_differential_privacy,
        )

    @staticmethod
    def _guarded(
        bounds: Callable[[float], tuple[float, float]], argument: float, largest: float
    ) -> tuple[float, float]:
        """Return the bounds, or trivial ones for numbers out of range."""
        try:
            with np.errstate(all="ignore"):
                lower, upper = interval = bounds(argument)
        except ArithmeticError:
            return 0.0, largest
        kept = 0.0 if math.isnan(lower) else lower, largest if math.isnan(upper) else upper
        return Proved(kept, provers(interval))

    def _bounded_epsilon(self, delta: float) -> tuple[float, float]:
        """Return lower and upper bounds on epsilon for a valid delta."""
        basic = self._basic_epsilon(delta)
        if basic == 0.0 or delta == 0.0:
            return 0.0, basic
        interval = self._epsilon_interval(delta)
        if self.is_upper_bound:
            note_certified(self._counts, self._adjacency, delta, interval)
        found = Proved((max(0.0, interval[0]), max(0.0, interval[1])), provers(interval))
        return meet(found, named((0.0, basic), "basic composition"))

    def _bounded_delta(self, epsilon: float) -> tuple[float, float]:
        """Return lower and upper bounds on delta for a valid epsilon."""
        basic = self._basic_epsilon(0.0)
        if math.isfinite(basic) and epsilon >= basic:
            return 0.0, 0.0
        interval = self._delta_interval(epsilon)
        lower, upper = (min(1.0, max(0.0, bound)) for bound in interval)
        # No likelihood ratio exceeds e^basic: a sum that is rounded up costs no more than that.
        rounded = -math.expm1(epsilon - basic) * (1.0 + 1e-15)
        below, above = provers(interval)
        if rounded < upper:
            lower, upper, above = min(lower, rounded), rounded, "basic composition"
        return Proved((lower, upper), (below, above))

    def _epsilon_interval(self, delta: float) -> tuple[float, float]:
        """Return bounds on epsilon; the lower one is 0 by default."""
        return 0.0, self._epsilon(delta)

    def _delta_interval(self, epsilon: float) -> tuple[float, float]:
        """Return bounds on delta; the lower one is 0 by default."""
        return 0.0, self._delta(epsilon)

    def _basic_epsilon(self, delta: float) -> float:
        """Bound epsilon by basic composition, if leaves state one."""
        stated = sum_of_stated(self._counts, self._adjacency)
        return stated[0] if stated is not None and stated[1] <= delta else math.inf

    def _advice(self, leaf: Event) -> str:
        """Name an accountant that supports a leaf."""
        known = [cls for cls in Accountant._known.values() if cls().is_differential_privacy]
        for adjacency in (self._adjacency, *ADJACENCIES):
            # Under the other adjacency relation, name this kind of accountant first.
            for cls in known if adjacency == self._adjacency else [type(self), *known]:
                if cls(adjacency).supports(leaf):
                    where = "" if adjacency == self._adjacency else f" under {adjacency!r}"
                    return f"{cls.__name__} has one{where}."
        return (
            "No accountant has one under either adjacency relation. If the release is known to be "
            "(epsilon, delta)-DP, compose an ApproxDPEvent instead."
        )

    @abstractmethod
    def _supports_leaf(self, leaf: Event) -> bool:
        """Return whether a bound is proved for one leaf."""

    @abstractmethod
    def _epsilon(self, delta: float) -> float:
        """Bound epsilon for a non-empty history and ``0 < delta < 1``."""

    @abstractmethod
    def _delta(self, epsilon: float) -> float:
        """Bound delta for a non-empty history and ``epsilon >= 0``."""
