"""The context that ties a seeded stream to one fit: its data and its parameters."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse, stats


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
    digest.update(f"{type(estimator).__name__}{describe(own)}{X.shape}".encode())
    parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    for part in (*parts, *others):
        digest.update(f"{part.shape}{part.dtype}".encode())
        digest.update(np.ascontiguousarray(part).data)
    return digest.digest()


def describe(value: Any) -> str:
    """Return a text that tells a parameter from others, and of plain values is always the same.

    Of other objects it is the text that they have themselves, mostly with an address.
    """
    if isinstance(value, type):  # which has the methods of its objects
        return repr(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {describe(value[key])}' for key in value)}}}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}[{', '.join(map(describe, value))}]"
    if isinstance(value, set | frozenset):
        return f"{type(value).__name__}[{', '.join(sorted(map(describe, value)))}]"
    if sparse.issparse(value):
        return f"sparse{describe([value.shape, *sparse.find(value)])}"
    if hasattr(value, "__array__"):
        # The text of an array is rounded and, of a long one, cut short.
        if np.ma.isMaskedArray(value):
            return f"masked{describe([value.data, np.ma.getmaskarray(value)])}"
        array = np.asarray(value)
        if array.dtype.hasobject:
            return describe(array.tolist()) if array.ndim else repr(value)
        content = hashlib.blake2b(array.tobytes(), digest_size=32).hexdigest()
        return f"{array.shape}{array.dtype}{content}"
    if hasattr(value, "get_params"):
        return f"{type(value)!r}{describe(value.get_params(deep=False))}"
    law: Any = getattr(value, "dist", None)
    known = getattr(stats, getattr(law, "name", None) or "", None)
    if known is not None and type(known) is type(law):  # the text of a frozen law is its address
        return f"{law.name}{describe(value.args)}{describe(value.kwds)}"
    return repr(value)
