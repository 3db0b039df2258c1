"""Cards of all releases: their proved bounds, and the theorems behind them.

Importing this package fills the table of `skdp.accounting.analysis.analysis_of`.
"""

from skdp.accounting.releases import (  # noqa: F401
    discrete,
    last_iterate,
    noise,
    samples,
    selection,
    stated,
)
