"""A plain numpy reading of what the kernels compute, and matrices in every layout."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse


def _augmented(X, data_norm, intercept_value):
    dense = np.asarray(X.todense() if sparse.issparse(X) else X, dtype=np.float64)
    # Rows are divided by their largest entry first, so that no square overflows.
    top = np.maximum(np.abs(dense).max(axis=1, keepdims=True, initial=0.0), 1e-300)
    norms = top[:, 0] * np.sqrt(((dense / top) ** 2).sum(axis=1))
    scale = np.minimum(1.0 / data_norm, 1.0 / np.maximum(norms, 1e-300))
    A = dense * scale[:, None]
    if intercept_value > 0.0:
        A = np.column_stack([A, np.full(len(A), intercept_value)])
    return A


def _margin_parts(name, width, margins):
    if name == "LogisticLoss":
        return np.logaddexp(0.0, -margins), -1.0 / (1.0 + np.exp(np.minimum(margins, 700.0)))
    gap = 1.0 - margins
    value = np.where(gap > width, gap, gap**2 / (4 * width) + gap / 2 + width / 4)
    slope = np.where(gap > width, -1.0, -gap / (2 * width) - 0.5)
    return np.where(gap < -width, 0.0, value), np.where(gap < -width, 0.0, slope)


def _per_example(A, loss, targets, weights):
    """Return losses (n,) and per-example gradients (n, n_weights)."""
    scores = A @ weights.reshape(loss.n_outputs, -1).T
    if loss.n_outputs == 1:
        width = getattr(loss, "half_width", 1.0)
        value, slope = _margin_parts(type(loss).__name__, width, targets * scores[:, 0])
        return value, (slope * targets)[:, None] * A
    scores = scores - scores.max(axis=1, keepdims=True)
    log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    slopes = np.exp(log_p)
    slopes[np.arange(len(A)), targets] -= 1.0
    value = -log_p[np.arange(len(A)), targets]
    return value, (slopes[:, :, None] * A[:, None, :]).reshape(len(A), weights.size)


def _clipped_sum(A, loss, targets, weights, clip):
    value, gradients = _per_example(A, loss, targets, weights)
    norms = np.linalg.norm(gradients, axis=1)
    factors = np.minimum(1.0, clip / np.maximum(norms, 1e-300))
    return value.sum(), (gradients * factors[:, None]).sum(axis=0)


@pytest.fixture(scope="session")
def reference():
    return SimpleNamespace(augmented=_augmented, per_example=_per_example, clipped_sum=_clipped_sum)


def _wide_indices(X):
    matrix = sparse.csr_matrix(X)
    matrix.indices = matrix.indices.astype(np.int64)
    matrix.indptr = matrix.indptr.astype(np.int64)
    return matrix


LAYOUTS = {
    "dense64": lambda X: X,
    "dense32": lambda X: X.astype(np.float32),
    "csr64": sparse.csr_matrix,
    "csr64-wide": _wide_indices,
    "csr32": lambda X: sparse.csr_matrix(X.astype(np.float32)),
}


@pytest.fixture(params=LAYOUTS)
def layout(request):
    return LAYOUTS[request.param]


@pytest.fixture
def make_targets():
    def make(loss, n, rng):
        if loss.n_outputs == 1:
            return rng.choice([-1, 1], n).astype(np.int8)
        return rng.integers(0, loss.n_outputs, n).astype(np.int32)

    return make
