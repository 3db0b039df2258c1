"""Private statistics of a table: counts, means, quantiles, and a descriptive table of them."""

from skdp.statistics.counts import (
    private_contingency_table,
    private_count,
    private_histogram,
    private_top_k,
)
from skdp.statistics.moments import private_mean, private_quantile, private_variance
from skdp.statistics.results import PrivateCounts, PrivateStatistic, PrivateTopK
from skdp.statistics.table_one import PrivateTableOne, private_table_one

__all__ = [
    "PrivateCounts",
    "PrivateStatistic",
    "PrivateTableOne",
    "PrivateTopK",
    "private_contingency_table",
    "private_count",
    "private_histogram",
    "private_mean",
    "private_quantile",
    "private_table_one",
    "private_top_k",
    "private_variance",
]
