"""Whether a part of a column transformer gives dense output, whatever the rows are."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags


def gives_dense(part: Any, *, framed: bool = False) -> bool:
    """Tell whether the output is known to be dense on every table; `framed`: it gets a frame."""
    if part is None or isinstance(part, str):
        return framed or part == "drop"
    checks_only = vars(type(part)).get("_only_checks_tables") is True
    if type(part) is Pipeline or (checks_only and isinstance(part, Pipeline)):
        steps = [step for _, step in part.steps if step is not None and step != "passthrough"]
        # Only the first step gets the frame.
        return gives_dense(steps[-1] if steps else None, framed=framed and len(steps) < 2)
    if type(part) is FeatureUnion:
        return all(gives_dense(step, framed=framed) for _, step in part.transformer_list)
    if type(part) is ColumnTransformer or checks_only:
        framed = framed or any(_by_name(columns) for _, _, columns in part.transformers)
        parts = [*(step for _, step, _ in part.transformers), part.remainder]
        return part.sparse_threshold == 0 or all(gives_dense(step, framed=framed) for step in parts)
    package = type(part).__module__.partition(".")[0]
    if package == "sklearn" and hasattr(part, "sparse_output"):
        return not part.sparse_output
    # What refuses sparse input has no sparse output in these.
    known = package == "skdp" or (package == "sklearn" and type(part).__name__ == "OrdinalEncoder")
    return known and not get_tags(part).input_tags.sparse


def _by_name(columns: Any) -> bool:
    # scikit-learn takes names of frames only.
    if isinstance(columns, slice):
        columns = (columns.start, columns.stop)
    return any(isinstance(key, str) for key in np.ravel(np.array(columns, dtype=object)))
