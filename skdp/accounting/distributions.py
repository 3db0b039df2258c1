"""Distributions of what a mechanism releases, for accountants that work from their divergences.

They are immutable, compare by value, are hashable and survive a round trip through plain
dictionaries. Their Renyi divergences are in `skdp.accounting.numerics.renyi_divergences`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, ClassVar

import numpy as np


def _real(owner: object, name: str, *, positive: bool = False) -> None:
    """Check a field and store it as a float."""
    given = getattr(owner, name)
    kind = type(owner).__name__
    if isinstance(given, bool) or not isinstance(given, Real):
        raise TypeError(f"{kind}: {name} must be a real number, got {given!r}.")
    value = float(given)
    if not math.isfinite(value) or (positive and not value > 0):
        wanted = "a finite number > 0" if positive else "a finite number"
        raise ValueError(f"{kind}: {name} must be {wanted}, got {value!r}.")
    object.__setattr__(owner, name, value)


def _reals(owner: object, name: str, *, positive: bool = False) -> None:
    """Check a field that holds a sequence of numbers and store it as a tuple of floats."""
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
class Distribution:
    """Base class of all distributions."""

    _types: ClassVar[dict[str, type[Distribution]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Distribution._types[cls.__name__] = cls

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain values, fit for JSON.

        Returns
        -------
        dict
            ``"type"`` names the class; the other keys are its parameters.
        """
        return {"type": type(self).__name__} | {f.name: getattr(self, f.name) for f in fields(self)}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Distribution:
        """Rebuild a distribution from the output of `to_dict`.

        Parameters
        ----------
        data : mapping
            What `to_dict` returned.

        Returns
        -------
        Distribution
            A distribution equal to the original.

        Raises
        ------
        ValueError
            If ``data["type"]`` names no known distribution.
        """
        parameters = dict(data)
        name = parameters.pop("type", None)
        if name not in Distribution._types:
            known = sorted(Distribution._types)
            raise ValueError(f"unknown distribution type {name!r}; known: {known}.")
        return Distribution._types[name](**parameters)


@dataclass(frozen=True)
class Normal(Distribution):
    """The normal distribution on the real line.

    Parameters
    ----------
    mean : float
        Its mean.
    scale : float
        Its standard deviation, positive.
    """

    mean: float
    scale: float

    def __post_init__(self) -> None:
        _real(self, "mean")
        _real(self, "scale", positive=True)


@dataclass(frozen=True)
class DiagonalNormal(Distribution):
    """Independent normal coordinates.

    Parameters
    ----------
    means : sequence of float
        Mean of each coordinate.
    scales : sequence of float
        Standard deviation of each coordinate, positive; as many as means.
    """

    means: tuple[float, ...]
    scales: tuple[float, ...]

    def __post_init__(self) -> None:
        _reals(self, "means")
        _reals(self, "scales", positive=True)
        if len(self.means) != len(self.scales):
            raise ValueError(
                f"DiagonalNormal: scales must hold {len(self.means)} numbers, one per mean, "
                f"got {len(self.scales)}."
            )


@dataclass(frozen=True)
class MultivariateNormal(Distribution):
    """A normal distribution in several dimensions.

    Parameters
    ----------
    mean : sequence of float
        Its mean.
    covariance : sequence of sequences of float
        Its covariance matrix, symmetric and positive definite.
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
    """The Laplace distribution, of density proportional to ``e^(-|x - mean| / scale)``.

    Parameters
    ----------
    mean : float
        Its mean.
    scale : float
        Its scale, positive.
    """

    mean: float
    scale: float

    def __post_init__(self) -> None:
        _real(self, "mean")
        _real(self, "scale", positive=True)


@dataclass(frozen=True)
class Exponential(Distribution):
    """The exponential distribution on the positive half line.

    Parameters
    ----------
    rate : float
        One over its mean, positive.
    """

    rate: float

    def __post_init__(self) -> None:
        _real(self, "rate", positive=True)


@dataclass(frozen=True)
class Gamma(Distribution):
    """The gamma distribution, of density proportional to ``x^(shape - 1) e^(-x / scale)``.

    Parameters
    ----------
    shape : float
        Its shape, positive.
    scale : float
        Its scale, positive.
    """

    shape: float
    scale: float

    def __post_init__(self) -> None:
        _real(self, "shape", positive=True)
        _real(self, "scale", positive=True)


@dataclass(frozen=True)
class Beta(Distribution):
    """The beta distribution, of density proportional to ``x^(a - 1) (1 - x)^(b - 1)`` on [0, 1].

    Parameters
    ----------
    a, b : float
        Its shapes, positive.
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        _real(self, "a", positive=True)
        _real(self, "b", positive=True)


@dataclass(frozen=True)
class Uniform(Distribution):
    """The uniform distribution on an interval.

    Parameters
    ----------
    low, high : float
        Its ends, ``low < high``.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        _real(self, "low")
        _real(self, "high")
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
