"""From any event to approximate Gaussian differential privacy.

For a profile ``D`` and a probability ``d`` we look for a small ``mu`` with, for ``epsilon >= 0``,

    D(epsilon) <= d + (1 - d) delta_G(epsilon; mu)                                              (1)

and prove it. In ``g = e^epsilon`` both sides are convex. Thus ``D`` is below the chords between
upper bounds at some nodes, and ``delta_G`` is above its tangents ``P(x > t) - g Q(x > t)``. Chords
and tangents are linear in ``g``: on each piece of a cell, (1) follows from its two ends. A few
nodes where (1) is tight are enough, and only nodes need the profile itself.
"""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from scipy.special import erfcx, erfinv, ndtri_exp

from skdp.accounting import ComposedEvent, Event, PLDAccountant, RepeatedEvent
from skdp.accounting.accountants.hidden_state import best_window
from skdp.accounting.analysis import analysis_of, exact_sum, square_of
from skdp.accounting.events import leaf_counts
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.numerics.arithmetic import float_up, read_decimal, round_up
from skdp.accounting.pld.composed_bounds import mu_of_all_rows
from skdp.base.parameters import Adjacency
from skdp.budget.currencies.profiles import Profile, is_supported, profile_of
from skdp.exceptions import UnsupportedEventError

_TOLERANCE = 1.005  # of mu: closer than this, no further node is worth its time
_PIECES = 8  # of a cell, when looking for the next node
_STEP = 0.12  # by which the logarithm of a bound may change on a piece of the proof
_MOST_PIECES = 2000
_LARGEST_EPSILON = 700.0  # beyond which exponentials overflow
_ROUNDING = 1e-12
_TRIES = 60


class _Node(NamedTuple):
    epsilon: float
    bound: float


class _Cell(NamedTuple):
    """Two neighbouring nodes, the mu that their chord requires, and where."""

    left: _Node
    right: _Node
    mu: float
    where: float


def cover(profile: Profile, failure: float) -> float:
    """Return a mu with which (1) is proved, near the least."""
    end = profile.reach(failure)
    if end > _LARGEST_EPSILON:
        return math.inf
    first = _Node(0.0, profile.delta(0.0))
    if first.bound <= failure or end <= 0.0:
        return 0.0
    least = require_mu(0.0, first.bound, failure)
    cells = [_cell(first, _Node(end, failure), failure, least)]
    for _ in range(profile.affordable):
        cells.sort(key=lambda cell: cell.mu)
        widest = cells[-1]
        if widest.mu <= _TOLERANCE * least:
            break
        cells.pop()
        node = _Node(widest.where, min(profile.delta(widest.where), widest.left.bound))
        least = max(least, require_mu(node.epsilon, node.bound, failure))
        cells += [
            _cell(widest.left, node, failure, least),
            _cell(node, widest.right, failure, least),
        ]
    mu = max(least, max(cell.mu for cell in cells))
    excess = 1e-4
    for _ in range(_TRIES):
        if all(_is_covered(cell, mu, failure) for cell in cells):
            return mu
        mu *= 1.0 + excess
        excess *= 1.5
    return math.inf


def require_mu(epsilon: float, bound: float, failure: float) -> float:
    """Return the mu with a curve through a point of a profile."""
    height = (bound - failure) / (1.0 - failure)
    if height <= 0.0:
        return 0.0
    return math.inf if height >= 1.0 else gaussian_profile.mu(epsilon, height)


def _share(epsilon: float, left: float, right: float) -> float:
    """Return the position of ``e^epsilon`` between the ends of a cell, from 0 to 1."""
    width = right - left
    if width <= 0.0:
        return 1.0
    past = math.expm1(left - epsilon) / math.expm1(left - right)
    return min(1.0, max(0.0, math.exp(epsilon - right) * past))


def _chord(cell: _Cell, epsilon: float) -> float:
    """Return an upper bound on the profile inside a cell."""
    share = _share(epsilon, cell.left.epsilon, cell.right.epsilon)
    height = cell.left.bound * (1.0 - share) + cell.right.bound * share
    return height * (1.0 + _ROUNDING)


def _cell(left: _Node, right: _Node, failure: float, enough: float) -> _Cell:
    """Find the point of a chord that requires the largest mu, above a sufficient mu."""
    cell = _Cell(left, right, 0.0, 0.5 * (left.epsilon + right.epsilon))
    mu, where = 0.0, cell.where
    for k in range(1, _PIECES):
        epsilon = left.epsilon + (right.epsilon - left.epsilon) * k / _PIECES
        height = (_chord(cell, epsilon) - failure) / (1.0 - failure)
        known = max(mu, enough)
        if height <= 0.0 or (known < math.inf and gaussian_profile.delta(known, epsilon) >= height):
            continue
        mu = require_mu(epsilon, _chord(cell, epsilon), failure)
        where = epsilon
    return cell._replace(mu=mu, where=where)


def _is_covered(cell: _Cell, mu: float, failure: float) -> bool:
    """Prove (1) on a cell."""
    if not math.isfinite(mu):
        return False
    left, right = cell.left.epsilon, cell.right.epsilon
    lowest = max(cell.right.bound, cell.left.bound * 1e-6, 1e-300)
    drop = math.log(max(cell.left.bound / lowest, 1.0)) + (right - left)
    pieces = min(_MOST_PIECES, math.ceil(drop / _STEP) + 2)
    ends = [left + (right - left) * k / pieces for k in range(pieces)] + [right]
    return all(_is_piece_covered(cell, mu, failure, start, stop) for start, stop in pairwise(ends))


def _is_piece_covered(cell: _Cell, mu: float, failure: float, start: float, stop: float) -> bool:
    """Compare the chord with the tangent at the middle of a piece, at both ends."""
    middle = 0.5 * (start + stop)
    value = gaussian_profile.delta_bounds(mu, middle)[0]
    # The tangent at g0 = e^middle is value + (g0 - g) Q with Q = Phi(b), the second term of the
    # profile over g0; g0 Q = phi(a) R(-b) has neither overflow nor underflow of its own.
    a, minus_b = 0.5 * mu - middle / mu, 0.5 * mu + middle / mu
    second = math.exp(-0.5 * a * a) * 0.5 * float(erfcx(minus_b / math.sqrt(2.0)))
    margin = _ROUNDING * (1.0 + a * a)
    for epsilon in (start, stop):
        moved = -second * math.expm1(epsilon - middle)
        tangent = value + moved - abs(moved) * margin
        needed = _chord(cell, epsilon) - failure * (1.0 - _ROUNDING)
        if needed > 0.0 and not (1.0 - failure) * tangent * (1.0 - _ROUNDING) >= needed:
            return False
    return True


_RTOL = 1e-2


def replace_runs(event: Event, adjacency: Adjacency, delta: float) -> tuple[Event, float]:
    """Replace runs on sampled batches by events that dominate them."""
    counts = leaf_counts(event)
    runs = [leaf for leaf in counts if _is_sampled_run(leaf, adjacency)]
    if not runs:
        return event, 0.0
    parts: list[Event] = []
    failure = 0.0
    for leaf, count in counts.items():
        if leaf in runs:
            leaf, failing = _dominating(leaf, adjacency, delta)
            failure += count * failing
        parts.append(RepeatedEvent(leaf, count))
    return ComposedEvent(tuple(parts)), failure * (1.0 + 1e-12)


def _is_sampled_run(leaf: Event, adjacency: Adjacency) -> bool:
    card = analysis_of(leaf, adjacency)
    domination = card.dominated_by()
    if domination is None or card.mu() is not None:
        return False
    return PLDAccountant(adjacency).supports(domination.event)


@lru_cache(maxsize=256)
def _dominating(leaf: Event, adjacency: Adjacency, delta: float) -> tuple[Event, float]:
    """Return all steps, or the last ones with a share of the noise, if that is cheaper."""
    domination = analysis_of(leaf, adjacency).dominated_by()
    assert domination is not None
    run = domination.windows
    if run is None:
        return domination.event, 0.0

    def cost(event: Event, failing: float) -> float:
        left = delta - failing
        accountant = PLDAccountant(adjacency, rtol=_RTOL).compose(event)
        return accountant.epsilon(left) if left > 0.0 else math.inf

    window, _ = best_window(
        run,
        run.candidates(delta=delta),
        lambda window: cost(run.event(window), run.failure),
        cost(domination.event, 0.0),
    )
    return (domination.event, 0.0) if window is None else (run.event(window), run.failure)


_SMALL = 1e-6  # epsilons below which the series of mu is used, exactly
_LARGE = 1.0  # epsilons above which the normal quantile is taken of a logarithm
_ROUND_UP = 1.0 + 1e-11
_HALF_PI = Fraction(15707963267949, 10**13)  # rounded up
_WORTHWHILE = 1.01  # of mu: largest factor to avoid slack
_NEGLIGIBLE = 6  # mu squared over the square of a total variation, where both are small
_SMALLEST_FAILURE = 1e-250  # less is not worth a curve of its own


class ApproximateGaussian(NamedTuple):
    """A guarantee that is Gaussian except with a small probability."""

    # ``delta(epsilon) <= slack + (1 - slack) delta_G(epsilon; mu)`` for all ``epsilon >= 0``, in
    # both orders of two neighbours.

    mu_squared: Fraction
    slack: Fraction


def approximate_gaussian(event: Event, adjacency: Adjacency, slack: float) -> ApproximateGaussian:
    """Convert any event with a bounded profile to approximate Gaussian differential privacy."""
    square = square_of(event, adjacency)
    if square is not None:
        return ApproximateGaussian(round_up(square), Fraction(0))
    return _convert(event, adjacency, slack)


@lru_cache(maxsize=4096)
def _convert(event: Event, adjacency: Adjacency, slack: float) -> ApproximateGaussian:
    """Convert an event that is not Gaussian."""
    event, failing = replace_runs(event, adjacency, slack)
    counts = leaf_counts(event)
    known = exact_sum(event, adjacency, read_decimal)
    found = []
    if known is not None and known[1] < 1 and math.isfinite(float_up(known[0])):
        found.append(ApproximateGaussian(mu_squared_of_pure(known[0]), known[1]))
        alone = sum(counts.values()) == 1
        if known[0] == 0 or (alone and analysis_of(next(iter(counts)), adjacency).only_stated):
            return found[0]  # no slack makes it less
    # Composition fails for scales without a common grid; its parts have prices.
    with suppress(ArithmeticError):
        if is_supported(event, adjacency):
            found += _covers(event, adjacency, slack)
        elif len(counts) == 1:
            profile_of(event, adjacency)  # refuses, and names the remedy
    if not found and len(counts) > 1:
        share, zero = slack / len(counts), Fraction(0)
        parts = [(approximate_gaussian(leaf, adjacency, share), n) for leaf, n in counts.items()]
        sums = (sum((n * part[unit] for part, n in parts), zero) for unit in range(2))
        found.append(ApproximateGaussian(*sums))
    with suppress(ArithmeticError):  # of the infinite, too
        largest = mu_of_all_rows(counts, adjacency)
        square = round_up(Fraction(largest) ** 2 * Fraction(_ROUND_UP))
        found.append(ApproximateGaussian(square, Fraction(0)))
    if not found:
        raise UnsupportedEventError(
            f"No Gaussian curve covers {event!r} except with probability {slack:.3g}: its noise is "
            "too small, or it fails more often. Add noise, or use a budget with a larger delta."
        )
    square, used = _cheapest(found, slack)
    return ApproximateGaussian(square, used + Fraction(failing))


def _covers(event: Event, adjacency: Adjacency, slack: float) -> list[ApproximateGaussian]:
    """Cover the profile except with its failure probability, with and without slack."""
    profile = profile_of(event, adjacency)
    failure = profile.delta(math.inf)
    found: list[ApproximateGaussian] = []
    for share in (0.0, slack):
        together = math.nextafter(failure + share, 1.0) if failure > _SMALLEST_FAILURE else share
        if together >= 1.0:
            continue
        if profile.delta(0.0) <= together:
            together = profile.delta(0.0)
        mu = cover(profile, together)
        if mu == together == 0.0:
            together = math.ulp(0.0)  # not nothing: it was too small for a float
        if math.isfinite(mu):
            found.append(ApproximateGaussian(round_up(Fraction(mu) ** 2), Fraction(together)))
            if mu <= _WORTHWHILE * require_mu(0.0, profile.delta(0.0), slack):
                break  # slack would not help
    return found


def _cheapest(found: list[ApproximateGaussian], slack: float) -> ApproximateGaussian:
    """Return the smallest mu, or one barely larger, or negligible, with less slack."""
    bearable = max(
        min(found).mu_squared * Fraction(_WORTHWHILE**2), Fraction(slack) ** 2 * _NEGLIGIBLE
    )
    within = [one for one in found if one.mu_squared <= bearable]
    return min(within, key=lambda one: (one.slack, one.mu_squared))


def mu_squared_of_pure(epsilon: Fraction) -> Fraction:
    """Return the square of the mu for which every epsilon-DP release is mu-GDP."""
    number = float_up(epsilon)
    if number <= _SMALL:
        # mu = 2 sqrt(2) erfinv(tanh(eps / 2)) with tanh(x) <= x and, for small t,
        # erfinv(t) <= (sqrt(pi) / 2) t (1 + t^2).
        return round_up(_HALF_PI * epsilon**2 * Fraction(1 + 1e-11))
    if number <= _LARGE:
        mu = 2.0 * math.sqrt(2.0) * float(erfinv(math.tanh(0.5 * number)))
    else:
        mu = -2.0 * float(ndtri_exp(-number - math.log1p(math.exp(-number))))
    return round_up(Fraction(mu * _ROUND_UP) ** 2)
