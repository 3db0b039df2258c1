"""Bounds on the effect of one record on a sum of per-record vectors."""

from __future__ import annotations

from dataclasses import dataclass

from skdp.base.parameters import Adjacency, plain_arguments

ADJACENCIES: tuple[Adjacency, ...] = ("add-remove", "replace-one")
# Relative excess of sensitivities in closed form: far above their own rounding errors.
ROUND_UP = 1.0 + 1e-14


@plain_arguments
@dataclass(frozen=True)
class ContributionBound:
    """Bounds on one record's contribution to a sum, which give all sensitivities.

    Parameters
    ----------
    norm : float
        Bound on the Euclidean norm of one record's vector. It bounds the change of the sum if the
        record is added or removed, or replaced by one that contributes zero.
    gap : float
        Bound on the distance between the vectors of two records, at most twice `norm`. It bounds
        the change of the sum if a record is replaced.
    reason : str
        Origin of the bound, for the privacy statement.

    Examples
    --------
    >>> from skdp.mechanisms import ContributionBound
    >>> bound = ContributionBound.from_clipping(1.5)
    >>> bound.sensitivity("add-remove"), bound.sensitivity("replace-one")
    (1.5, 3.0)
    """

    norm: float
    gap: float
    reason: str

    def __post_init__(self) -> None:
        if not 0.0 < self.norm < float("inf"):
            raise ValueError(f"norm must be positive and finite, got {self.norm!r}.")
        if not 0.0 < self.gap <= 2.0 * self.norm * (1.0 + 1e-12):
            raise ValueError(f"gap must lie in (0, 2 * norm], got {self.gap!r}.")

    @classmethod
    @plain_arguments
    def from_clipping(cls, max_grad_norm: float) -> ContributionBound:
        """Return the bound for gradients that are clipped to a norm per record."""
        return cls(
            max_grad_norm,
            2.0 * max_grad_norm,
            f"each record's gradient is clipped to norm {max_grad_norm:.6g} (scaled units)",
        )

    def sensitivity(self, adjacency: Adjacency) -> float:
        """Return the L2 sensitivity of the sum under an adjacency relation."""
        return self.norm if adjacency == "add-remove" else self.gap
