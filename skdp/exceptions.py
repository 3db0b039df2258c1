"""Exceptions raised by skdp; each also derives from the built-in type users would expect."""


class SkdpError(Exception):
    """Base class of all errors that are specific to skdp."""


class UnsupportedEventError(SkdpError, TypeError):
    """An accountant was given an event for which it has no proved bound."""


class CalibrationError(SkdpError, ValueError):
    """No noise, number of steps or sample rate in the searched range meets the privacy target."""


class BudgetExceededError(SkdpError, RuntimeError):
    """A charge was refused because it would exceed what is left of a budget."""


class PrivacyWarning(UserWarning):
    """A legal choice of parameters weakens or voids the guarantee in practice."""
