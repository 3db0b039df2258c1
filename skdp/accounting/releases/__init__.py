"""One file a release: what is proved about it, and by which theorem.

Importing this package fills the table of `skdp.accounting.analysis.analysis_of`.
"""

from skdp.accounting.releases import (  # noqa: F401
    allocation,
    choice,
    discrete,
    gaussian,
    laplace,
    last_iterate,
    profile,
    renyi,
    samples,
    selection,
    stated,
)
