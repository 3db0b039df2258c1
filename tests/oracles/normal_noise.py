"""Tell whether numbers are a sample of the standard normal law: false alarm below 3e-7."""

import numpy as np
from scipy import stats


def is_normal(errors):
    """Compare the sum of squares and the distribution, each at a level of 1e-7."""
    square = np.sum(errors**2)
    tails = stats.chi2.cdf(square, errors.size), stats.chi2.sf(square, errors.size)
    return min(*tails, stats.kstest(np.ravel(errors), "norm").pvalue) > 1e-7
