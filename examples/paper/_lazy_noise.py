r"""Stochastic gradient descent on sparse rows whose noise is drawn only where it is read.

The algorithm: from weights 0, steps ``t = 1, ..., T`` draw one of n rows uniformly and set

    w <- w - eta_t (n (s x + m w) + z_t),   eta_t = 1 / (m n t),   z_t ~ N(0, sigma^2 I),

where s is the loss's slope at the row and m the penalty. Each z_t has a value in every coordinate,
so that a plain loop costs the number of columns. With ``v_t = (t - 1) w_t`` the shrinkage by
``1 - eta_t n m = 1 - 1/t`` cancels against the growth of the factor:

    v_{t+1} = t w_{t+1} = v_t - (s_t x_t + z_t / n) / m.

In v every step's noise has the same weight. A coordinate that no row touches for k steps has gained
k independent normals of variance ``(sigma / (n m))^2``, of which nothing else depends: they are
drawn as one normal of k times that variance when the coordinate is next read, or at the end. The
joint law of all that is read, and of the last iterate, is that of the plain loop. In terms of w the
weights are those of shrinkage and step sizes together: of what step r adds, ``1 / (m n (t - 1))``
times z_r is in w_t, for every r < t.

No projection is made. One onto a ball would read all coordinates in every step and end laziness.
Privacy does not need it (it is post-processing, and the penalty's gradient is no function of the
rows, so that sensitivities do not grow with w); theorems on accuracy assume one.
"""

import math

import numpy as np
from numba import njit

from skdp.losses.scalar import loss_slope

# Rows that are drawn and looked at together, so that their cache misses overlap.
LOT = 32


@njit(cache=True, nogil=True)
def descend(rows, signs, tag, numbers, penalty, sigma, steps, rng, weights, last):
    """Take all steps from zero and leave the last iterate in ``weights``.

    ``rows`` is (data, indices, indptr); ``weights`` and ``last``, the step up to which a
    coordinate has its noise, come filled with zeros. A step costs the stored entries of its row.
    What is returned has no meaning; it keeps the compiler from leaving out the looks ahead.
    """
    data, indices, indptr = rows
    n = signs.size
    spread = sigma / (penalty * n)
    drawn = np.empty((LOT, 2), dtype=np.int64)
    labels = np.empty(LOT)
    seen = 0.0
    for t in range(1, steps + 1):
        place = (t - 1) % LOT
        if place == 0:
            for k in range(LOT):
                i = int(rng.random() * n)
                drawn[k, 0], drawn[k, 1], labels[k] = indptr[i], indptr[i + 1], signs[i]
            for begin, end in drawn:
                if begin < end:
                    seen += data[begin] + data[end - 1] + indices[begin] + indices[end - 1]
        begin, end, sign = drawn[place, 0], drawn[place, 1], labels[place]
        score = 0.0
        for e in range(begin, end):
            j = indices[e]
            missed = t - 1 - last[j]
            if missed > 0:
                weights[j] += spread * math.sqrt(missed) * rng.standard_normal()
                last[j] = t - 1
            score += data[e] * weights[j]
        slope = loss_slope(tag, numbers, sign * score / max(t - 1, 1), sign) * sign / penalty
        for e in range(begin, end):
            weights[indices[e]] -= slope * data[e]
    for j in range(weights.size):
        late = spread * math.sqrt(steps - last[j]) * rng.standard_normal()
        weights[j] = (weights[j] + late) / steps
    return seen
