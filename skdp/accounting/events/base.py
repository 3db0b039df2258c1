"""What every event can do: be compared, and be written down and read again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from skdp.accounting.checks import Described


@dataclass(frozen=True)
class Event(Described):
    """Base class of all events.

    Examples
    --------
    >>> from skdp.accounting import Event, GaussianEvent
    >>> event = GaussianEvent(noise_multiplier=2.0)
    >>> isinstance(event, Event), event.to_dict()
    (True, {'type': 'GaussianEvent', 'noise_multiplier': 2.0})
    >>> Event.from_dict(event.to_dict()) == event
    True
    """

    # From dp-accounting and back; `skdp.accounting.interchange`, which knows all events, enters it.
    _translate: ClassVar[tuple[Callable[[Any, str], Event], Callable[[Event, str], Any]]]

    @classmethod
    def from_dp_event(cls, dp_event: Any, adjacency: str) -> Event:
        """Return the event that means what one of dp-accounting's does.

        Parameters
        ----------
        dp_event : dp_accounting.DpEvent
            Gaussian, Laplace or discrete Laplace noise, zCDP with ``xi=0``, (epsilon, delta) where
            the installed dp-accounting has it, repeat-and-select, Poisson samples, samples
            without replacement, compositions of these, or nothing at all.
        adjacency : {"add-remove", "replace-one"}
            The relation that both are accounted under, ``ADD_OR_REMOVE_ONE`` or ``REPLACE_ONE``
            there. It matters: their noise multipliers are over the norm of one record's value,
            ours stand, outside samples, over the sensitivity, which is twice that under
            replace-one.

        Returns
        -------
        Event
            An event with the same outcomes; numbers that no float holds are rounded so that the
            cost can only grow.

        Raises
        ------
        UnsupportedEventError
            If there is no exact counterpart, also not of a part; the message names it.
        ImportError
            If dp-accounting is missing: ``pip install 'skdp[dp-accounting]'``.

        Notes
        -----
        ``REPLACE_SPECIAL``, a record replaced by a zero, is no relation of skdp's.

        Examples
        --------
        >>> import dp_accounting
        >>> from skdp.accounting import Event
        >>> theirs = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(4.0))
        >>> Event.from_dp_event(theirs, "add-remove")
        PoissonSampledEvent(sample_rate=0.01, event=GaussianEvent(noise_multiplier=4.0))
        >>> Event.from_dp_event(dp_accounting.GaussianDpEvent(4.0), "replace-one")
        GaussianEvent(noise_multiplier=2.0)
        """
        return cls._translate[0](dp_event, adjacency)

    def to_dp_event(self, adjacency: str) -> Any:
        """Return dp-accounting's event with the same meaning.

        Numbers are rounded, and errors are raised, as by `from_dp_event`.

        Parameters
        ----------
        adjacency : {"add-remove", "replace-one"}
            The relation that both are accounted under, as in `from_dp_event`.

        Examples
        --------
        >>> from skdp.accounting import GaussianEvent
        >>> GaussianEvent(2.0).to_dp_event("replace-one")
        GaussianDpEvent(noise_multiplier=4.0)
        """
        return self._translate[1](self, adjacency)


def check_event(owner: str, name: str, value: object) -> None:
    """Check that a parameter is an event."""
    if not isinstance(value, Event):
        raise TypeError(f"{owner}: {name} must be an Event, got {value!r}.")
