"""Public tables with their schemas, from OpenML, local files or scikit-learn.

Each schema describes its table from public knowledge, with a source for every bound.
"""

from skdp.datasets._loaders import (
    fetch_adult,
    fetch_bank,
    fetch_cardio,
    fetch_heart,
    fetch_support2,
    load_breast_cancer,
    load_schema,
)

__all__ = [
    "fetch_adult",
    "fetch_bank",
    "fetch_cardio",
    "fetch_heart",
    "fetch_support2",
    "load_breast_cancer",
    "load_schema",
]
