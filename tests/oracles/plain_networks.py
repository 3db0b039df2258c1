"""Gradients of a network record by record, in plain numpy: nothing of this is fast."""

import math

import numpy as np


def forward(model, matrices, row):
    """Return what enters each layer, constants included, and the scores."""
    entries, value = [], model.gain * row
    for layer, matrix in enumerate(matrices):
        entries.append(np.append(value, model.bias_value))
        value = matrix @ entries[-1]
        if layer < len(matrices) - 1:
            value = {"relu": np.maximum(value, 0.0), "tanh": np.tanh(value), "identity": value}[
                model.activation
            ]
    return entries, value


def loss_and_slopes(scores, target, signs):
    """Return the logistic loss, of signs or of classes, and its derivative in the scores."""
    if signs:
        margin = target * scores[0]
        return np.logaddexp(0.0, -margin), np.array([-target / (1.0 + math.exp(margin))])
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    return -math.log(shares[target]), shares - np.eye(scores.size)[target]


def record_gradient(model, matrices, row, target):
    """Return the matrices of one record's gradient, neither cut nor added to others."""
    entries, scores = forward(model, matrices, row)
    errors = loss_and_slopes(scores, target, model.n_outputs == 1)[1]
    gradients = []
    for matrix, entry in zip(matrices[::-1], entries[::-1], strict=True):
        gradients.insert(0, np.outer(errors, entry))
        value = entry[:-1]
        slope = {"relu": value > 0.0, "tanh": 1.0 - value**2, "identity": 1.0}[model.activation]
        errors = (matrix[:, :-1].T @ errors) * slope
    return gradients


def cut(gradients, clip, clipping, floor):
    """Return one record's gradient as it counts."""
    norms = [np.linalg.norm(gradient) for gradient in gradients]
    norm = math.sqrt(sum(length**2 for length in norms))
    if clipping == "per-layer":
        bound = clip / math.sqrt(len(norms))
        factors = [min(1.0, bound / length) if length else 1.0 for length in norms]
    elif clipping == "normalize":
        factors = [clip / (norm + floor)] * len(norms)
    else:
        factors = [min(1.0, clip / norm) if norm else 1.0] * len(norms)
    parts = [factor * gradient for factor, gradient in zip(factors, gradients, strict=True)]
    return np.concatenate([part.ravel() for part in parts]), norm


def sum_clipped(model, weights, X, targets, clip, floor=0.01):
    """Return the sum of cut gradients of scaled rows, and how many were within ``clip``."""
    total, within = np.zeros(model.n_weights), 0
    matrices = model.layers.split(model.start + weights)
    for row, target in zip(X, targets, strict=True):
        gradients = record_gradient(model, matrices, row, target)
        part, norm = cut(gradients, clip, model.clipping, floor)
        total += part
        within += norm <= clip
    return total, within
