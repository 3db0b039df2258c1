"""Exact privacy profiles of objective perturbation in one and two dimensions, by quadrature.

Written without the library: a loss is a pair of functions (derivative and second derivative, in
the margin or residual), a record is its row, and the density of the minimiser follows from the
noise that puts the minimum at a given point.
"""

import numpy as np
from scipy.special import expit


def logistic(cap=1.0):
    """Slope and curvature of the log-loss, as a line where its slope would exceed the cap."""
    return (
        lambda m: -np.minimum(expit(-m), cap),
        lambda m: np.where(expit(-m) <= cap, expit(m) * expit(-m), 0.0),
    )


def hinge(h, cap=1.0):
    """Slope and curvature of the smoothed hinge, capped likewise."""
    return (
        lambda m: -np.minimum(np.clip((1.0 + h - m) / (2.0 * h), 0.0, 1.0), cap),
        lambda m: np.where((m < 1.0 + h) & ((1.0 + h - m) / (2.0 * h) < cap), 0.5 / h, 0.0),
    )


def huber(target, width):
    """Slope and curvature of a Huber regression loss with unit slope: its sign is not known."""
    return (
        lambda m: np.clip((m - target) / width, -1.0, 1.0),
        lambda m: np.where(np.abs(m - target) < width, 1.0 / width, 0.0),
    )


def tight(name, rng):
    """Return a loss of one family with what the event must know of it: cap and curvature."""
    if name == "logistic":
        return logistic(), 1.0, 0.25, "logistic"
    if name == "clipped logistic":
        cap = float(rng.uniform(0.05, 0.9))
        curvature = 0.25 if cap >= 0.5 else cap * (1 - cap)
        return logistic(cap), cap, curvature, "known-sign"
    h = float(rng.choice([0.1, 0.5, 2.0]))
    if name == "hinge":
        return hinge(h), 1.0, 0.5 / h, "known-sign"
    if name == "clipped hinge":
        cap = float(rng.uniform(0.1, 0.9))
        return hinge(h, cap), cap, 0.5 / h, "known-sign"
    return huber(float(rng.normal()), h), 1.0, 1.0 / h, "any-sign"


def shared(loss, weight):
    """Return a share of a loss."""
    return lambda m: weight * loss[0](m), lambda m: weight * loss[1](m)


def unit(rng, d):
    row = rng.standard_normal(d)
    return row / np.linalg.norm(row)


def density(records, penalty, noise, points):
    """Return the density of the minimiser at points of shape (k, d), d = 1 or 2.

    Records are pairs of a row (d,), label included, and a loss; null records are left out.
    """
    d = points.shape[1]
    gradient = penalty * points
    hessian = np.zeros((len(points), d, d)) + penalty * np.eye(d)
    for row, (slope, curvature) in records:
        margin = points @ row
        gradient = gradient + slope(margin)[:, None] * row
        hessian = hessian + curvature(margin)[:, None, None] * np.outer(row, row)
    determinant = hessian[:, 0, 0]
    if d == 2:
        determinant = determinant * hessian[:, 1, 1] - hessian[:, 0, 1] ** 2
    normal = np.exp(-0.5 * np.sum(gradient**2, axis=1) / noise**2)
    return normal * determinant / (np.sqrt(2.0 * np.pi) * noise) ** d


def grid(records, penalty, noise, d, count):
    """Return the points and the weight of a grid that holds all but 1e-12 of the mass."""
    reach = (7.5 * noise + sum(np.linalg.norm(row) for row, _ in records)) / penalty
    axis = np.linspace(-reach, reach, count)
    axis = 0.5 * (axis[1:] + axis[:-1])
    points = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)
    return points, (axis[1] - axis[0]) ** d


def profile(p, q, weight, epsilon):
    """Return delta(epsilon) of two densities on a grid, the larger of both orders."""
    factor = np.exp(epsilon)
    return max(
        weight * np.maximum(p - factor * q, 0.0).sum(),
        weight * np.maximum(q - factor * p, 0.0).sum(),
    )


def pure_log_density(records, penalty, scale, weights):
    """Return the logarithm of the density of several minimisers, up to a constant.

    Their linear terms have together a density ~ ``e^(-|b| / scale)``. `weights` has a row for each;
    records are triples of a row (d,), a sign for each minimiser, and a loss.
    """
    total, tilts = 0.0, penalty * weights
    for number, point in enumerate(weights):
        hessian = penalty * np.eye(len(point))
        for row, signs, (slope, curvature) in records:
            signed = signs[number] * row
            margin = np.asarray(point @ signed)
            tilts[number] += slope(margin) * signed
            hessian += curvature(margin) * np.outer(signed, signed)
        total += np.linalg.slogdet(hessian)[1]
    return total - np.linalg.norm(tilts) / scale
