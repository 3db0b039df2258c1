"""Record every noisy release of a fit, and replay a fit on other data.

A recording shows the releases and their declared sensitivities. A replay runs the same code on
neighbouring data, while every mechanism returns its recorded output. The two exact values must then
be within the declared sensitivity, and the sequence of releases must be the same (Cebere et al.
2026, "Privacy in Theory, Bugs in Practice"). A trace contains private values: use it for tests and
never publish it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class TracedRelease:
    """One noisy release: its exact value, its output and its declared properties.

    The sensitivity is a bound in the norm of order ``norm``: 2 for Gaussian noise, 1 for Laplace
    noise, infinity for scores. ``sigma`` is the scale of the noise. ``exponential`` marks a density
    ~ ``e^(-|x| / sigma)`` in that norm; Laplace noise need not set it.
    """

    label: str
    value: np.ndarray
    output: np.ndarray
    sensitivity: float
    sigma: float
    norm: float = 2.0
    exponential: bool = False


@dataclass
class ReleaseTrace:
    """The releases of one fit, in order.

    Parameters
    ----------
    replayed : ReleaseTrace or None, default=None
        Earlier trace whose outputs mechanisms return instead of fresh ones.
    releases : list of TracedRelease
        Releases so far.

    Examples
    --------
    >>> from skdp.mechanisms import gaussian_mechanism, record_releases
    >>> with record_releases() as trace:
    ...     noisy = gaussian_mechanism([3.0], epsilon=1.0, delta=1e-6, sensitivity=1.0)
    >>> release = trace.releases[0]
    >>> release.label, release.value, release.sensitivity
    ('gaussian_mechanism', array([3.]), 1.0)
    """

    replayed: ReleaseTrace | None = None
    releases: list[TracedRelease] = field(default_factory=list)

    def observe(
        self,
        label: str,
        value: np.ndarray,
        output: np.ndarray,
        sensitivity: float,
        sigma: float,
        norm: float,
        exponential: bool = False,
    ) -> np.ndarray:
        """Record a release, and return its output or that of the earlier trace."""
        if self.replayed is not None:
            position = len(self.releases)
            if position >= len(self.replayed.releases):
                raise RuntimeError("The replayed fit makes more releases than the recorded one.")
            output = self.replayed.releases[position].output
        declared = (sensitivity, sigma, norm, exponential)
        self.releases.append(TracedRelease(label, value.copy(), output.copy(), *declared))
        return output


_active: ContextVar[ReleaseTrace | None] = ContextVar("skdp_release_trace", default=None)


def active_trace() -> ReleaseTrace | None:
    """Return the trace that is recorded in this context, or None.

    Examples
    --------
    >>> from skdp.mechanisms import active_trace, record_releases
    >>> active_trace() is None
    True
    >>> with record_releases() as trace:
    ...     active_trace() is trace
    True
    """
    return _active.get()


def note_release(
    label: str,
    value: np.ndarray,
    output: np.ndarray,
    sensitivity: float,
    sigma: float,
    norm: float = 2.0,
    exponential: bool = False,
) -> np.ndarray:
    """Return an output, and record it in the active trace if there is one."""
    trace = active_trace()
    if trace is None:
        return output
    return trace.observe(label, value, output, sensitivity, sigma, norm, exponential)


@contextmanager
def record_releases(replayed: ReleaseTrace | None = None) -> Iterator[ReleaseTrace]:
    """Record the releases made inside the block, optionally replaying an earlier trace.

    Parameters
    ----------
    replayed : ReleaseTrace or None, default=None
        Earlier trace.

    Yields
    ------
    ReleaseTrace
        Trace that grows while the block runs.

    Examples
    --------
    >>> from skdp.mechanisms import gaussian_mechanism, record_releases
    >>> target = {"epsilon": 1.0, "delta": 1e-6, "sensitivity": 1.0}
    >>> with record_releases() as first:
    ...     noisy = gaussian_mechanism([3.0], **target)
    >>> with record_releases(replayed=first) as second:  # the same noise on a neighbour
    ...     again = gaussian_mechanism([4.0], **target)
    >>> bool(again == noisy), abs(second.releases[0].value - first.releases[0].value)
    (True, array([1.]))
    """
    trace = ReleaseTrace(replayed)
    token = _active.set(trace)
    try:
        yield trace
    finally:
        _active.reset(token)
