"""Scores of canaries from one run: what it releases in the column of each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skdp.audit.bounds import Array
from skdp.audit.runs import AuditedTable
from skdp.mechanisms.random_stream import RandomStream
from skdp.mechanisms.trace import ReleaseTrace, record_releases
from skdp.sklearn_bases import fitted_model, responds

NOT_LINEAR = (
    "In one run, canaries are scored by weights of their own, which linear models have and "
    "networks have not: take audit_epsilon."
)


def score_model(table: AuditedTable, stream: RandomStream, n_canaries: int) -> Array:
    """Fit once, and score canaries by their coefficients."""
    fitted = fitted_model(table.fit(stream))
    if not responds(fitted, "coef_"):
        raise ValueError(NOT_LINEAR)
    weights = np.array(fitted.coef_[-1, -n_canaries:])
    return weights - weights.mean()


def score_sums(
    tables: list[AuditedTable], stream: RandomStream, n_canaries: int
) -> tuple[Array, bool]:
    """Fit the first table; score canaries by the likelihood ratio of the sums in their columns.

    The run is replayed with the outputs that it released on the other two tables, with all coins up
    and with all down. Also told is whether what a canary adds to a sum was always the same.
    """
    plan = tables[0].plan
    if plan.lots is None or plan.last_iterate_only:
        raise ValueError(
            "In one run, release='all' is for noisy gradients that pay for every step: take "
            "release='model'."
        )

    if "linear" not in plan.model.facts:
        raise ValueError(NOT_LINEAR)

    def columns(trace: ReleaseTrace, what: str) -> Array:
        """Return an array of shape (steps, outputs of a row, canaries)."""
        # And no count of labels and no table of scores, which say little of a row.
        sums = [each for each in trace.releases if each.value.size == plan.model.n_weights]
        sums = sums[: plan.steps]
        shape = (len(sums), -1, plan.model.n_weights_per_output)
        table = np.reshape([getattr(release, what) for release in sums], shape)
        return table[:, :, plan.model.n_features - n_canaries : plan.model.n_features]

    with record_releases() as seen:
        tables[0].fit(stream)
    outputs, variance = columns(seen, "output"), plan.sigma**2
    # What a canary adds where it is drawn: all rows in all lots.
    everyone = replace(plan.lots, sampling="full")
    with np.errstate(divide="ignore"):
        drawn, left_out = np.log([plan.lots.sample_rate, 1.0 - plan.lots.sample_rate])
    ratios, steady = [], True
    for table in tables[1:]:
        with record_releases(seen) as trace:
            # Another stream: scores may depend on nothing but what was released.
            table.fit(stream.spawn("replay"), replace(table.plan, lots=everyone))
        added = columns(trace, "value")
        steady = steady and np.allclose(added, added[:1, :, :1], rtol=1e-9, atol=0.0)
        ratio = np.sum(added * (outputs - 0.5 * added), axis=1) / variance
        ratios.append(np.logaddexp(left_out, drawn + ratio).sum(axis=0))
    return ratios[0] - ratios[1], steady
