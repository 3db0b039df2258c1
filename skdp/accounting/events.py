"""What happened: immutable descriptions of private releases.

An event says which randomised mechanism was run and with which parameters; it holds no data and
no verdict. Accountants turn events into costs. Events are hashable, compare by value and survive
a round trip through plain dictionaries.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from skdp.accounting.checks import check_integer, check_noise_multiplier, check_real


@dataclass(frozen=True)
class Event:
    """Base class of all events."""

    _types: ClassVar[dict[str, type[Event]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Event._types[cls.__name__] = cls

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain values, fit for JSON.

        Returns
        -------
        dict
            ``"type"`` names the class; the other keys are its parameters.
        """
        out: dict[str, Any] = {"type": type(self).__name__}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Event):
                value = value.to_dict()
            elif isinstance(value, tuple):
                value = [event.to_dict() for event in value]
            out[field.name] = value
        return out

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Event:
        """Rebuild an event from the output of `to_dict`.

        Parameters
        ----------
        data : mapping
            What `to_dict` returned.

        Returns
        -------
        Event
            An event equal to the original.

        Raises
        ------
        TypeError, ValueError
            If the data are no mapping, ``data["type"]`` names no known event, or the other keys are
            not its parameters.
        """
        if not isinstance(data, Mapping):
            raise TypeError(f"Event.from_dict reads what to_dict returned, got {data!r}.")
        parameters = dict(data)
        name = parameters.pop("type", None)
        if name not in Event._types:
            raise ValueError(f"unknown event type {name!r}; known: {sorted(Event._types)}.")
        expected = [field.name for field in fields(Event._types[name])]
        if not parameters.keys() <= set(expected):
            raise ValueError(f"{name} has the parameters {expected}, got {sorted(parameters)}.")
        return Event._types[name]._from_parameters(parameters)

    @classmethod
    def _from_parameters(cls, parameters: dict[str, Any]) -> Event:
        """Rebuild an event of this class from what `to_dict` says of its parameters."""
        for key, value in parameters.items():
            if isinstance(value, Mapping):
                parameters[key] = Event.from_dict(value)
            elif isinstance(value, list | tuple):
                parameters[key] = tuple(Event.from_dict(item) for item in value)
        return cls(**parameters)


@dataclass(frozen=True)
class GaussianEvent(Event):
    """One release with Gaussian noise.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over a public bound, positive. Standing alone, the bound is
        the L2 sensitivity of the query under the adjacency in force, so the release is exactly
        ``1 / noise_multiplier``-GDP. Inside a sampled event, the bound is the largest L2 norm of
        one record's contribution to the sum.
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        check_noise_multiplier(self)


@dataclass(frozen=True)
class LaplaceEvent(Event):
    """One release with Laplace noise, of density proportional to ``e^(-|x| / b)``.

    Parameters
    ----------
    noise_multiplier : float
        Scale ``b`` of the noise over a public bound, positive. Standing alone, the bound is the L1
        sensitivity of the query under the adjacency in force, so the release is exactly
        ``1 / noise_multiplier``-DP. Inside a sampled event, the bound is the largest L1 norm of one
        record's contribution to the sum.

    Notes
    -----
    Vectors with independent noise in each coordinate are covered. With coordinates shifted by
    ``t_1 >= t_2 >= ...`` (in units of b) the release is at most as revealing as a single coordinate
    shifted by their sum. A shift t has the profile ``h(eps) = 1 - e^((eps - t)/2)`` for ``|eps| <=
    t``, and 0 above. A further one, by ``s <= t``, is dominated by randomised response, which turns
    it at ``eps >= 0`` into at most ``p h(eps - s) + (1 - p) h(eps + s)``, ``p = 1/(1 + e^-s)``.
    For ``eps <= t - s`` this is ``1 - e^((eps - t)/2) / cosh(s/2)``, and ``cosh(s/2) <= e^(s/2)``;
    above it is ``p (1 - e^((eps - s - t)/2))``: either way at most ``1 - e^((eps - s - t)/2)``.
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        check_noise_multiplier(self)


@dataclass(frozen=True)
class DiscreteGaussianEvent(Event):
    """One release of an integer with discrete Gaussian noise (Canonne, Kamath and Steinke, 2020).

    Parameters
    ----------
    noise_multiplier : float
        ``sigma / sensitivity``, positive, where ``P(X = x)`` is proportional to
        ``e^(-x^2 / (2 sigma^2))`` on the integers. ``sigma`` is not quite the standard deviation.
    sensitivity : int, default=1
        Largest change of the query, a single integer, under the adjacency in force; inside a
        sampled event, the largest contribution of one record.
    """

    noise_multiplier: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        check_noise_multiplier(self)
        size = check_integer(type(self).__name__, "sensitivity", self.sensitivity, 1)
        object.__setattr__(self, "sensitivity", size)


@dataclass(frozen=True)
class DiscreteLaplaceEvent(Event):
    """One release of integers with discrete Laplace (two-sided geometric) noise.

    Parameters
    ----------
    noise_multiplier : float
        ``b / sensitivity``, positive, where ``P(X = x)`` is proportional to ``e^(-|x| / b)`` on
        the integers. The release is exactly ``1 / noise_multiplier``-DP.
    sensitivity : int, default=1
        Largest change of the query under the adjacency in force: of an integer, or in the L1 norm
        of a vector of integers with independent noise. Inside a sampled event, the largest
        contribution of one record.

    Notes
    -----
    At losses that it attains, the profile is that of a `LaplaceEvent` with the same multiplier, and
    between them linear in ``e^eps``: a little more, and most at a sensitivity of 1, where this is
    randomised response.
    """

    noise_multiplier: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        check_noise_multiplier(self)
        size = check_integer(type(self).__name__, "sensitivity", self.sensitivity, 1)
        object.__setattr__(self, "sensitivity", size)


@dataclass(frozen=True)
class PoissonSampledEvent(Event):
    """A release computed on a Poisson sample: each record enters independently.

    Parameters
    ----------
    sample_rate : float
        Probability that a record enters, in [0, 1].
    event : Event
        What is done with the sample.

    Notes
    -----
    With an inner ``GaussianEvent(z)`` the dominating pair is, in units of the noise, ``(1-q) N(0) +
    q N(1/z)`` against ``N(0)`` under add-remove and against ``(1-q) N(0) + q N(-1/z)`` under
    replace-one; with an inner ``LaplaceEvent(z)`` they are the same with Laplace distributions. The
    divisor of the released mean must not depend on the realised size of the sample.

    Whatever is inside is meant under add-remove between samples, also where the data sets differ by
    a replaced record: a noise multiplier or a guarantee inside says what happens if one record
    joins the sample or leaves it. Everything with a known profile in that sense can be accounted
    for: ``docs/proofs/sampled_releases.md``.
    """

    sample_rate: float
    event: Event

    def __post_init__(self) -> None:
        q = check_real("PoissonSampledEvent", "sample_rate", self.sample_rate)
        if not 0 <= q <= 1:
            raise ValueError(f"PoissonSampledEvent: sample_rate must lie in [0, 1], got {q!r}.")
        object.__setattr__(self, "sample_rate", q)
        check_event("PoissonSampledEvent", "event", self.event)


@dataclass(frozen=True)
class UniformSampledEvent(Event):
    """A release computed on a uniformly drawn subset of fixed size, without replacement.

    Parameters
    ----------
    batch_size : int
        Number of records in the subset, from 1 to ``dataset_size``.
    dataset_size : int
        Public number of records.
    event : Event
        What is done with the subset.

    Notes
    -----
    Defined under replace-one adjacency, where the number of records is public. An inner
    ``GaussianEvent(z)`` has ``z = sigma / C`` with ``C`` the largest norm of one record's
    contribution, so replacing a sampled record moves the query by ``2 / z`` noise deviations; so
    does Laplace and discrete noise. What else is inside is meant under replace-one between subsets.
    """

    batch_size: int
    dataset_size: int
    event: Event

    def __post_init__(self) -> None:
        owner = "UniformSampledEvent"
        n = check_integer(owner, "dataset_size", self.dataset_size, 1)
        b = check_integer(owner, "batch_size", self.batch_size, 1)
        if b > n:
            raise ValueError(f"{owner}: batch_size must not exceed dataset_size={n}, got {b}.")
        object.__setattr__(self, "dataset_size", n)
        object.__setattr__(self, "batch_size", b)
        check_event(owner, "event", self.event)


@dataclass(frozen=True)
class RepeatedEvent(Event):
    """The same event, a number of times fixed in advance.

    Parameters
    ----------
    event : Event
        The event that is repeated; later runs may look at the results of earlier ones.
    count : int
        How often, at least 0.
    """

    event: Event
    count: int

    def __post_init__(self) -> None:
        check_event("RepeatedEvent", "event", self.event)
        count = check_integer("RepeatedEvent", "count", self.count, 0)
        object.__setattr__(self, "count", count)


@dataclass(frozen=True)
class ComposedEvent(Event):
    """A list of events, fixed in advance, on the same records.

    Parameters
    ----------
    events : iterable of Event
        The events; none at all stands for "nothing was released".
    """

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        if isinstance(self.events, Event) or not isinstance(self.events, Iterable):
            raise TypeError(f"ComposedEvent: events must be a sequence, got {self.events!r}.")
        object.__setattr__(self, "events", tuple(self.events))
        for event in self.events:
            check_event("ComposedEvent", "each of events", event)


@dataclass(frozen=True)
class PureDPEvent(Event):
    """A release known to satisfy epsilon-differential privacy, and nothing more about it.

    Parameters
    ----------
    epsilon : float
        Privacy parameter in nats under the adjacency in force, finite and ``>= 0``; inside a
        `PoissonSampledEvent`, for a record that joins or leaves the sample.
    """

    epsilon: float

    def __post_init__(self) -> None:
        eps = check_real("PureDPEvent", "epsilon", self.epsilon)
        if not (math.isfinite(eps) and eps >= 0):
            raise ValueError(f"PureDPEvent: epsilon must be a finite number >= 0, got {eps!r}.")
        object.__setattr__(self, "epsilon", eps)


@dataclass(frozen=True)
class ApproxDPEvent(Event):
    """A release known to satisfy (epsilon, delta)-differential privacy, and nothing more about it.

    Parameters
    ----------
    epsilon : float
        Privacy parameter in nats under the adjacency in force, finite and ``>= 0``; inside a
        `PoissonSampledEvent`, for a record that joins or leaves the sample.
    delta : float
        Failure probability, in [0, 1].
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        eps = check_real("ApproxDPEvent", "epsilon", self.epsilon)
        if not (math.isfinite(eps) and eps >= 0):
            raise ValueError(f"ApproxDPEvent: epsilon must be a finite number >= 0, got {eps!r}.")
        dlt = check_real("ApproxDPEvent", "delta", self.delta)
        if not 0 <= dlt <= 1:
            raise ValueError(f"ApproxDPEvent: delta must lie in [0, 1], got {dlt!r}.")
        object.__setattr__(self, "epsilon", eps)
        object.__setattr__(self, "delta", dlt)


def leaf_counts(event: Event, count: int = 1) -> dict[Event, int]:
    """Flatten compositions and repetitions into leaves with their multiplicities.

    Parameters
    ----------
    event : Event
        Any event.
    count : int, default=1
        How often the whole event happened.

    Returns
    -------
    dict of Event to int
        Every leaf (an event that is neither composed nor repeated) in order of first appearance,
        equal leaves merged. The order of a composition does not matter to its cost.
    """
    counts: dict[Event, int] = {}
    stack = [(event, count)]
    while stack:
        current, times = stack.pop()
        if times == 0:
            continue
        if isinstance(current, RepeatedEvent):
            stack.append((current.event, times * current.count))
        elif isinstance(current, ComposedEvent):
            stack.extend((part, times) for part in reversed(current.events))
        else:
            counts[current] = counts.get(current, 0) + times
    return counts


def check_event(owner: str, name: str, value: object) -> None:
    """Check that a parameter is an event."""
    if not isinstance(value, Event):
        raise TypeError(f"{owner}: {name} must be an Event, got {value!r}.")
