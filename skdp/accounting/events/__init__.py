"""Events: immutable descriptions of private releases.

An event names a randomised mechanism and its parameters. It contains no data and no verdict; its
card in `skdp.accounting.releases` states the proved bounds. Events are hashable, compared by value,
and convertible to plain dictionaries and back.

**Charter.** Ledgers store events permanently. The meaning of an event or parameter never changes,
and no parameter is removed. A new parameter has a default that describes older events. A new
meaning needs a new event.
"""

from skdp.accounting.events.base import (
    ComposedEvent,
    Event,
    OneOfEvent,
    RepeatedEvent,
    change_leaves,
    check_event,
    leaf_counts,
)
from skdp.accounting.events.guarantees import (
    ApproxDPEvent,
    BoundedRangeEvent,
    ObjectivePerturbationEvent,
    ProfileEvent,
    PureDPEvent,
    RenyiEvent,
    RepeatAndSelectEvent,
)
from skdp.accounting.events.last_iterate import LastIterateEvent
from skdp.accounting.events.noise import (
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    LaplaceEvent,
    NormExponentialEvent,
)
from skdp.accounting.events.samples import (
    PoissonSampledEvent,
    RandomAllocationEvent,
    UniformSampledEvent,
)

__all__ = [
    "ApproxDPEvent",
    "BoundedRangeEvent",
    "ComposedEvent",
    "DiscreteGaussianEvent",
    "DiscreteLaplaceEvent",
    "Event",
    "GaussianEvent",
    "LaplaceEvent",
    "LastIterateEvent",
    "NormExponentialEvent",
    "ObjectivePerturbationEvent",
    "OneOfEvent",
    "PoissonSampledEvent",
    "ProfileEvent",
    "PureDPEvent",
    "RandomAllocationEvent",
    "RenyiEvent",
    "RepeatAndSelectEvent",
    "RepeatedEvent",
    "UniformSampledEvent",
    "change_leaves",
    "check_event",
    "leaf_counts",
]
