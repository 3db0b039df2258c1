"""Moments of single losses as balls: quadrature by Arb with a rigorous radius.

Nothing is shared with the library. What is left out of an infinite range is bounded and added to
the radius.
"""

import contextlib

from flint import acb, arb, ctx

REACH = 20  # standard deviations


@contextlib.contextmanager
def precision(bits):
    """Compute with so many bits, and return to those before."""
    before, ctx.prec = ctx.prec, bits
    try:
        yield
    finally:
        ctx.prec = before


def gaussian_moment(kind, rate, mu, z, cut=None, bits=160):
    """Return E[e^(zL)] of a sampled Gaussian release, over x up to a cut or over all of them."""
    with precision(bits):
        q, mu, z = arb(rate), arb(mu), acb(z)

        def log_ratio(x, analytic):
            return (1 - q + q * (mu * x - mu * mu / 2).exp()).log(analytic=analytic)

        def integrand(x, analytic):
            up, log_density = log_ratio(x, analytic), -x * x / 2
            if kind == "poisson-replace-one":
                return (log_density + (1 + z) * up - z * log_ratio(-x, analytic)).exp()
            rising, falling = (log_density + (1 + z) * up).exp(), (log_density - z * up).exp()
            return {"remove": rising, "add": falling}.get(kind, rising + falling)

        shift = mu * (1 + z.real)
        end = shift + (REACH * REACH + shift * shift).sqrt() if cut is None else arb(cut)
        start = -arb(REACH) if kind != "uniform-replace-one" else mu / 2
        if kind == "poisson-replace-one" and cut is not None:
            start = -end
        total = acb.integral(integrand, start, end) / (2 * arb.pi()).sqrt()
        if kind == "uniform-replace-one":
            total += (1 - q) * (mu / 2 / arb(2).sqrt()).erf()
        # M is at most e^(mu x) to the right of mu/2, at most 1 to the left, at least 1 - q; and a
        # normal tail is at most e^(-x^2 / 2).
        left_out = (2 * (1 - q) ** (-z.real) * arb(-REACH * REACH / 2).exp()).upper()
        return total + acb(arb(0, left_out), arb(0, left_out))


def laplace_moment(kind, rate, shift, z, bits=160):
    """Return E[e^(zL)] of a Laplace release: atoms at the ends, and integrals between."""
    with precision(bits):
        q, t, z = arb(rate), arb(shift), acb(z)

        def integrand(x, analytic):
            # Between the locations, both logarithms of densities in units of a half.
            still, up = -x, x - t
            mixed = ((1 - q) * still.exp() + q * up.exp()).log(analytic=analytic)
            if kind == "add":
                return (still + z * (still - mixed)).exp()
            if kind == "poisson-replace-one":
                down = -x - t
                other = ((1 - q) * still.exp() + q * down.exp()).log(analytic=analytic)
                return (mixed + z * (mixed - other)).exp() + (other + z * (other - mixed)).exp()
            return (mixed + z * (mixed - still)).exp()

        between = acb.integral(integrand, 0, t) / 2
        high = (1 - q + q * t.exp()).log()
        low = (1 - q + q * (-t).exp()).log()
        tail = (-t).exp() / 2  # of Q0 beyond the shift
        if kind == "poisson-replace-one":
            # Beyond -t, P is what Q is beyond t.
            up, down = high + z * (high - low), low + z * (low - high)
            return between + tail * (up.exp() + down.exp())
        if kind == "add":
            return between + tail * (-z * high).exp() + (-z * low).exp() / 2
        return between + tail * (high + z * high).exp() + (low + z * low).exp() / 2
