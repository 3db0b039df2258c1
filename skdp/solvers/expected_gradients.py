"""Sums of per-example gradients of expected logistic losses under Gaussian weights."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np

from skdp.solvers.gradients import check_index, check_shape
from skdp.solvers.rows import Index, Rows, Vector

# Nodes of the quadrature over a margin.
_NODES = 12


def sum_expected_gradients(
    rows: Rows,
    means: Vector,
    variances: Vector,
    out: Vector,
    index: Index,
    clip: float,
    gain: float,
) -> None:
    """Add to ``out`` ``(E[l'] x, gain E[l''] x^2)`` of the rows in ``index``, each cut to ``clip``.

    None stands for all rows. Norms are known in closed form, so that no gradient is ever stored.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.solvers import Rows, sum_expected_gradients
    >>> X, signs = np.array([[1.0, 0.0]]), np.array([1], dtype=np.int8)
    >>> rows = Rows.from_matrix(X, signs, data_norm=1.0)
    >>> means, variances, total = np.zeros(2), np.full(2, 1e-12), np.zeros(4)
    >>> sum_expected_gradients(rows, means, variances, total, None, clip=10.0, gain=1.0)
    >>> total.round(6)  # slope -1/2 and curvature 1/4
    array([-0.5 ,  0.  ,  0.25,  0.  ])
    """
    size = rows.n_weights()
    check_shape("means", means, size)
    check_shape("variances", variances, size)
    check_shape("out", out, 2 * size)
    if rows.target_kind != "signs" or not clip > 0.0:
        raise ValueError("Expected gradients take labels -1 and +1, and a positive clip.")
    index = None if index is None else check_index(index, rows.n_rows)
    for own in rows.map_parts(partial(_sum_part, means, variances, clip, gain), index):
        out += own


def _sum_part(
    means: Vector, variances: Vector, clip: float, gain: float, part: Rows, chosen: Any
) -> Vector:
    from skdp.solvers import _variational_kernels as kernels

    own = np.zeros((2, means.size))
    kernel: Any = kernels.accumulate_sparse if part.is_sparse else kernels.accumulate_dense
    chosen = np.arange(part.n_rows) if chosen is None else chosen
    data = (part.matrix, part.row_scale, part.intercept_value, part.targets)
    kernel(data, (means, variances), chosen, (float(gain), _hermite_rule(), float(clip)), own)
    return own.ravel()


@cache
def _hermite_rule() -> tuple[Vector, Vector]:
    """Return nodes and weights of expectations over a standard normal variable."""
    nodes, shares = np.polynomial.hermite_e.hermegauss(_NODES)
    return nodes, shares / shares.sum()
