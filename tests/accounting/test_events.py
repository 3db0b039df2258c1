"""Events: validation, value semantics, serialisation, flattening."""

import pytest

from skdp.accounting import (
    ApproxDPEvent,
    ComposedEvent,
    Event,
    GaussianEvent,
    PoissonSampledEvent,
    PureDPEvent,
    RepeatedEvent,
    UniformSampledEvent,
)
from skdp.accounting.events import leaf_counts

STEP = PoissonSampledEvent(0.01, GaussianEvent(2.0))


def test_events_of_different_types_differ():
    assert PureDPEvent(1.0) != GaussianEvent(1.0)


def test_unknown_type_is_named():
    with pytest.raises(ValueError, match="unknown event type 'Nope'"):
        Event.from_dict({"type": "Nope"})


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: PoissonSampledEvent(1.1, GaussianEvent(1)), ValueError, "sample_rate"),
        (lambda: PoissonSampledEvent(float("nan"), GaussianEvent(1)), ValueError, "sample_rate"),
        (lambda: PoissonSampledEvent(0.1, 1.0), TypeError, "event must be an Event"),
        (lambda: UniformSampledEvent(0, 5, GaussianEvent(1)), ValueError, "batch_size"),
        (lambda: UniformSampledEvent(6, 5, GaussianEvent(1)), ValueError, "must not exceed"),
        (lambda: UniformSampledEvent(1.0, 5, GaussianEvent(1)), ValueError, "batch_size"),
        (lambda: RepeatedEvent(STEP, -1), ValueError, "count"),
        (lambda: RepeatedEvent(STEP, 2.5), ValueError, "count"),
        (lambda: ComposedEvent(STEP), TypeError, "sequence"),
        (lambda: ComposedEvent((1,)), TypeError, "each of events"),
        (lambda: PureDPEvent(-1), ValueError, "epsilon"),
        (lambda: ApproxDPEvent(1, 1.5), ValueError, "delta"),
        (lambda: ApproxDPEvent(float("nan"), 0.5), ValueError, "epsilon"),
    ],
)
def test_invalid_parameters_are_named(build, error, message):
    with pytest.raises(error, match=message):
        build()


def test_leaf_counts_flatten_and_merge():
    inner = ComposedEvent((STEP, PureDPEvent(1.0), STEP))
    event = ComposedEvent((RepeatedEvent(inner, 3), STEP, RepeatedEvent(PureDPEvent(2.0), 0)))
    assert leaf_counts(event, 2) == {STEP: 14, PureDPEvent(1.0): 6}
    assert leaf_counts(ComposedEvent(())) == {}
