"""What happened: immutable descriptions of private releases.

An event says which randomised mechanism was run and with which parameters; it holds no data and
no verdict. Its card in `skdp.accounting.releases` says what is proved about it. Events are
hashable, compare by value and survive a round trip through plain dictionaries.

**Charter.** Ledgers keep events for ever. The meaning of an event or of one of its parameters never
changes, and no parameter is removed; a new parameter has a default that says what was true before
it was there. A new meaning is a new event.
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
