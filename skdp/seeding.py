"""The context that ties a seeded stream to one fit: its data and its parameters."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from scipy import sparse


def fit_context(estimator: Any, X: Any, *others: np.ndarray) -> bytes:
    """Digest everything that makes a fit this fit; the digest never leaves it.

    Two fits with one seed that differ in a single value or parameter get independent noise;
    with shared noise their difference would cancel it and show the private values.
    """
    digest = hashlib.blake2b(digest_size=32)
    own = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name not in {"accountant", "random_state", "verbose"}
    }
    digest.update(f"{type(estimator).__name__}{sorted(own.items())!r}{X.shape}".encode())
    # The text of an array is rounded and, of a long one, cut short: its bytes count as well.
    arrays = [np.asarray(own[name]) for name in sorted(own) if hasattr(own[name], "__array__")]
    texts = [repr(array.tolist()).encode() for array in arrays if array.dtype.hasobject]
    digest.update(b"".join(texts))
    parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    for part in (*(a for a in arrays if not a.dtype.hasobject), *parts, *others):
        digest.update(f"{part.shape}{part.dtype}".encode())
        digest.update(np.ascontiguousarray(part).data)
    return digest.digest()
