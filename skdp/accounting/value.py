"""What an accountant answers: a number that knows what it promises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self


class PrivacyValue(float):
    """An epsilon or a delta, together with what is proved about it.

    It is a float and can be used as one; it also unpacks as ``lower, upper = value``.

    Parameters
    ----------
    upper : float
        The value itself; at least the truth if ``is_upper_bound``.
    lower : float, default=0.0
        At most the truth, where the truth is that of the dominating pairs: for samples of fixed
        size no release is known that attains their composition. Zero where nothing is proved.
    is_upper_bound : bool, default=True
        Whether the value is proved to be at least the truth. If not, it must not be reported as a
        guarantee, and no budget accepts it.
    is_differential_privacy : bool, default=True
        Whether the value is about differential privacy at all.
    proved_by : tuple of str, default=("", "")
        Short names of what proved the lower and the upper bound, such as ``"inversion"``.

    Raises
    ------
    ValueError
        If ``lower`` exceeds ``upper``, or one of them is no number.

    Examples
    --------
    >>> from skdp.accounting import PrivacyValue
    >>> epsilon = PrivacyValue(1.5, lower=1.4999)
    >>> lower, upper = epsilon
    >>> epsilon <= 2.0, upper - lower < 1e-3
    (True, True)
    """

    lower: float
    is_upper_bound: bool
    is_differential_privacy: bool
    proved_by: tuple[str, str]

    def __new__(
        cls,
        upper: float,
        lower: float = 0.0,
        *,
        is_upper_bound: bool = True,
        is_differential_privacy: bool = True,
        proved_by: tuple[str, str] = ("", ""),
    ) -> Self:
        """Check the order of the bounds."""
        value = super().__new__(cls, upper)
        if not lower <= value:
            raise ValueError(f"lower must be at most upper={float(value)!r}, got {lower!r}.")
        value.lower = float(lower)
        value.is_upper_bound = is_upper_bound
        value.is_differential_privacy = is_differential_privacy
        value.proved_by = proved_by
        return value

    @property
    def upper(self) -> float:
        """The value as a plain float."""
        return float(self)

    @property
    def is_guarantee(self) -> bool:
        """Whether the value may be reported, or charged to a budget."""
        return self.is_upper_bound and self.is_differential_privacy

    def __iter__(self) -> Iterator[float]:
        return iter((self.lower, self.upper))

    def __getnewargs_ex__(self) -> tuple[tuple[float, float], dict[str, Any]]:
        flags = {
            "is_upper_bound": self.is_upper_bound,
            "is_differential_privacy": self.is_differential_privacy,
            "proved_by": self.proved_by,
        }
        return (self.upper, self.lower), flags

    def __repr__(self) -> str:
        if not self.is_differential_privacy:
            return f"PrivacyValue({self.upper!r}, no differential privacy)"
        if not self.is_upper_bound:
            return f"PrivacyValue({self.upper!r}, no upper bound)"
        return f"PrivacyValue({self.upper!r}, lower={self.lower!r})"

    # numpy and json take a float subclass for a float; printing should too.
    __str__ = float.__repr__


def check_guarantee(name: str, value: float) -> None:
    """Refuse a number that says of itself that it is none; a plain float is taken at its word."""
    if not isinstance(value, PrivacyValue) or value.is_guarantee:
        return
    if not value.is_differential_privacy:
        reason = "is not about differential privacy: it depends on the data at hand"
    else:
        reason = "is an estimate or a printed formula, not an upper bound: the truth may be more"
    raise ValueError(
        f"{name}={float(value)!r} {reason}. It is no guarantee and cannot be charged or reported "
        "as one; use an accountant whose results are guarantees, such as PLDAccountant."
    )
