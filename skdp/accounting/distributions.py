"""Distributions of outcomes, for accountants that use their divergences.

They are immutable, hashable, compared by value, and convertible to plain dictionaries and back.
Their Renyi divergences are in `skdp.accounting.numerics.renyi_divergences`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from skdp.accounting.checks import Described, store_number


def _reals(owner: object, name: str, *, positive: bool = False) -> None:
    """Store a sequence of numbers as a tuple of floats."""
    values = getattr(owner, name)
    kind = type(owner).__name__
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{kind}: {name} must be a sequence of real numbers, got {values!r}.")
    numbers = tuple(float(value) for value in values)
    if not numbers or not all(math.isfinite(x) and (x > 0 or not positive) for x in numbers):
        wanted = "finite numbers > 0" if positive else "finite numbers"
        raise ValueError(f"{kind}: {name} must hold {wanted}, at least one, got {numbers!r}.")
    object.__setattr__(owner, name, numbers)


@dataclass(frozen=True)
class Distribution(Described):
    """Base class of all distributions.

    Examples
    --------
    >>> from skdp.accounting.distributions import Distribution, Normal
    >>> law = Normal(mean=0.0, scale=2.0)
    >>> isinstance(law, Distribution), Distribution.from_dict(law.to_dict()) == law
    (True, True)
    """

    _positive: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            positive = field.name in self._positive
            if field.type in ("float", float):
                store_number(self, field.name, "> 0" if positive else "")
            else:
                _reals(self, field.name, positive=positive)


@dataclass(frozen=True)
class Normal(Distribution):
    """Normal distribution on the real line.

    Parameters
    ----------
    mean : float
        Mean.
    scale : float
        Standard deviation, positive.

    Examples
    --------
    >>> from skdp.accounting import GenericAccountant, RenyiEvent
    >>> from skdp.accounting.distributions import Normal
    >>> release = RenyiEvent(Normal(0.0, 4.0), Normal(1.0, 4.0))
    >>> round(GenericAccountant().compose(release).epsilon(1e-5), 2)
    1.23
    """

    mean: float
    scale: float
    _positive = ("scale",)


@dataclass(frozen=True)
class DiagonalNormal(Distribution):
    """Independent normal coordinates.

    Parameters
    ----------
    means : sequence of float
        Mean of each coordinate.
    scales : sequence of float
        Standard deviation of each coordinate, positive, with the length of `means`.

    Examples
    --------
    >>> from skdp.accounting import GenericAccountant, RenyiEvent
    >>> from skdp.accounting.distributions import DiagonalNormal
    >>> left, right = DiagonalNormal([0.0, 0.0], [4.0, 8.0]), DiagonalNormal([1.0, 2.0], [4.0, 8.0])
    >>> round(GenericAccountant().compose(RenyiEvent(left, right)).epsilon(1e-5), 2)
    1.76
    """

    means: tuple[float, ...]
    scales: tuple[float, ...]
    _positive = ("scales",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.means) != len(self.scales):
            raise ValueError(
                f"DiagonalNormal: scales must hold {len(self.means)} numbers, one per mean, "
                f"got {len(self.scales)}."
            )


@dataclass(frozen=True)
class MultivariateNormal(Distribution):
    """Normal distribution in several dimensions.

    Parameters
    ----------
    mean : sequence of float
        Mean.
    covariance : sequence of sequences of float
        Covariance matrix, symmetric and positive definite.

    Examples
    --------
    >>> from skdp.accounting import GenericAccountant, RenyiEvent
    >>> from skdp.accounting.distributions import MultivariateNormal
    >>> covariance = [[16.0, 4.0], [4.0, 16.0]]
    >>> release = RenyiEvent(
    ...     MultivariateNormal([0.0, 0.0], covariance), MultivariateNormal([1.0, 0.0], covariance)
    ... )
    >>> round(GenericAccountant().compose(release).epsilon(1e-5), 2)
    1.27
    """

    mean: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        _reals(self, "mean")
        size = len(self.mean)
        matrix = np.array(self.covariance, dtype=np.float64)
        if matrix.shape != (size, size):
            raise ValueError(
                f"MultivariateNormal: covariance must have shape {(size, size)}, like the mean, "
                f"got {matrix.shape}."
            )
        symmetric = bool(np.isfinite(matrix).all() and (matrix == matrix.T).all())
        if not symmetric or not np.linalg.eigvalsh(matrix)[0] > 0.0:
            raise ValueError(
                "MultivariateNormal: covariance must be symmetric and positive definite, got "
                f"{matrix.tolist()!r}."
            )
        object.__setattr__(self, "covariance", tuple(tuple(row) for row in matrix.tolist()))


@dataclass(frozen=True)
class Laplace(Distribution):
    """Laplace distribution, with density proportional to ``e^(-|x - mean| / scale)``.

    Parameters
    ----------
    mean : float
        Mean.
    scale : float
        Scale, positive.

    Examples
    --------
    >>> from skdp.accounting import GenericAccountant, RenyiEvent
    >>> from skdp.accounting.distributions import Laplace
    >>> release = RenyiEvent(Laplace(0.0, 10.0), Laplace(1.0, 10.0))
    >>> round(GenericAccountant().compose(release, count=20).epsilon(1e-5), 2)
    1.92
    """

    mean: float
    scale: float
    _positive = ("scale",)


@dataclass(frozen=True)
class Exponential(Distribution):
    """Exponential distribution on the positive half line.

    Parameters
    ----------
    rate : float
        Inverse of the mean, positive.

    Examples
    --------
    >>> from skdp.accounting import GenericAccountant, RenyiEvent
    >>> from skdp.accounting.distributions import Exponential
    >>> release = RenyiEvent(Exponential(1.0), Exponential(1.1))
    >>> round(GenericAccountant().compose(release).epsilon(1e-5), 2)
    1.43
    """

    rate: float
    _positive = ("rate",)


@dataclass(frozen=True)
class Gamma(Distribution):
    """Gamma distribution, with density proportional to ``x^(shape - 1) e^(-x / scale)``.

    Parameters
    ----------
    shape : float
        Shape, positive.
    scale : float
        Scale, positive.

    Examples
    --------
    >>> from skdp.accounting import GenericAccountant, RenyiEvent
    >>> from skdp.accounting.distributions import Gamma
    >>> release = RenyiEvent(Gamma(3.0, 1.0), Gamma(3.0, 0.9))
    >>> round(GenericAccountant().compose(release).epsilon(1e-5), 2)
    1.93
    """

    shape: float
    scale: float
    _positive = ("shape", "scale")


@dataclass(frozen=True)
class Beta(Distribution):
    """Beta distribution, with density proportional to ``x^(a - 1) (1 - x)^(b - 1)`` on [0, 1].

    Parameters
    ----------
    a, b : float
        Shapes, positive.

    Examples
    --------
    >>> from skdp.accounting import GenericAccountant, RenyiEvent
    >>> from skdp.accounting.distributions import Beta
    >>> release = RenyiEvent(Beta(20.0, 10.0), Beta(21.0, 10.0))  # a draw from a posterior
    >>> round(GenericAccountant().compose(release).epsilon(1e-5), 2)
    1.01
    """

    a: float
    b: float
    _positive = ("a", "b")


@dataclass(frozen=True)
class Uniform(Distribution):
    """Uniform distribution on an interval.

    Parameters
    ----------
    low, high : float
        Ends of the interval, ``low < high``.

    Examples
    --------
    >>> from skdp.accounting.distributions import Uniform
    >>> Uniform(0.0, 1.0)
    Uniform(low=0.0, high=1.0)
    >>> Uniform(1.0, 0.0)
    Traceback (most recent call last):
        ...
    ValueError: Uniform: high must exceed low=1.0, got 0.0.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low < self.high:
            raise ValueError(f"Uniform: high must exceed low={self.low!r}, got {self.high!r}.")


__all__ = [
    "Beta",
    "DiagonalNormal",
    "Distribution",
    "Exponential",
    "Gamma",
    "Laplace",
    "MultivariateNormal",
    "Normal",
    "Uniform",
]
