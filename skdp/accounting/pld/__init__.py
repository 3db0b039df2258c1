"""Privacy-loss distributions: dominating pairs, and two ways to compose them.

A pair of one release says how its privacy loss is distributed. `lattice` puts these losses on a
grid and convolves.
"""

from skdp.accounting.pld.accountant import PLDAccountant

__all__ = ["PLDAccountant"]
