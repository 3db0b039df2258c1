"""Numbers about privacy: events, what they cost, and how much noise a target needs.

Nothing here sees data. Events (`skdp.accounting.events`) say what happened, accountants say what
it costs, and calibration turns a target into a noise multiplier.
"""

from skdp.accounting._base import Accountant
from skdp.accounting._value import PrivacyValue
from skdp.accounting.calibration import (
    calibrate_event,
    calibrate_noise_multiplier,
    dpsgd_epsilon,
)
from skdp.accounting.events import (
    ApproxDPEvent,
    ComposedEvent,
    Event,
    GaussianEvent,
    PoissonSampledEvent,
    PureDPEvent,
    RepeatedEvent,
    UniformSampledEvent,
)
from skdp.accounting.gdp import GDPAccountant
from skdp.accounting.pld import PLDAccountant
from skdp.accounting.rdp import RDPAccountant
from skdp.accounting.strong_composition import composition_noise_multiplier

__all__ = [
    "Accountant",
    "ApproxDPEvent",
    "ComposedEvent",
    "Event",
    "GDPAccountant",
    "GaussianEvent",
    "PLDAccountant",
    "PoissonSampledEvent",
    "PrivacyValue",
    "PureDPEvent",
    "RDPAccountant",
    "RepeatedEvent",
    "UniformSampledEvent",
    "calibrate_event",
    "calibrate_noise_multiplier",
    "composition_noise_multiplier",
    "dpsgd_epsilon",
]
