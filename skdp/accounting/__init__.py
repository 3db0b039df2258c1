"""Privacy accounting: events, their privacy cost, and the noise that a target needs.

Nothing here sees data. Events describe releases, accountants compute their privacy cost, and
calibration turns a target into a noise multiplier, a number of steps or a sample rate.
"""

import skdp.accounting.interchange
import skdp.accounting.releases  # noqa: F401 - fills the table of cards
from skdp.accounting.accountants.base import Accountant
from skdp.accounting.accountants.composition import (
    AdvancedCompositionAccountant,
    OptimalCompositionAccountant,
)
from skdp.accounting.accountants.gdp import GDPAccountant
from skdp.accounting.accountants.generic import BayesianAccountant, GenericAccountant
from skdp.accounting.accountants.hidden_state import HiddenStateAccountant
from skdp.accounting.accountants.pld import PLDAccountant
from skdp.accounting.accountants.rdp import MomentsAccountant, RDPAccountant
from skdp.accounting.accountants.stepwise import BasicCompositionAccountant
from skdp.accounting.calibration.extent import calibrate_sample_rate, calibrate_steps
from skdp.accounting.calibration.noise import (
    calibrate_event,
    calibrate_noise_multiplier,
    composition_noise_multiplier,
)
from skdp.accounting.dpsgd import dpsgd_epsilon
from skdp.accounting.events import (
    ApproxDPEvent,
    BoundedRangeEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    LastIterateEvent,
    NormExponentialEvent,
    ObjectivePerturbationEvent,
    OneOfEvent,
    PoissonSampledEvent,
    ProfileEvent,
    PureDPEvent,
    RandomAllocationEvent,
    RenyiEvent,
    RepeatAndSelectEvent,
    RepeatedEvent,
    UniformSampledEvent,
)
from skdp.accounting.group_privacy import group_delta, group_epsilon, group_privacy
from skdp.accounting.numerics.renyi_divergences import renyi_divergence
from skdp.accounting.value import PrivacyValue

__all__ = [
    "Accountant",
    "AdvancedCompositionAccountant",
    "ApproxDPEvent",
    "BasicCompositionAccountant",
    "BayesianAccountant",
    "BoundedRangeEvent",
    "ComposedEvent",
    "DiscreteGaussianEvent",
    "DiscreteLaplaceEvent",
    "Event",
    "GDPAccountant",
    "GaussianEvent",
    "GenericAccountant",
    "HiddenStateAccountant",
    "LaplaceEvent",
    "LastIterateEvent",
    "MomentsAccountant",
    "NormExponentialEvent",
    "ObjectivePerturbationEvent",
    "OneOfEvent",
    "OptimalCompositionAccountant",
    "PLDAccountant",
    "PoissonSampledEvent",
    "PrivacyValue",
    "ProfileEvent",
    "PureDPEvent",
    "RDPAccountant",
    "RandomAllocationEvent",
    "RenyiEvent",
    "RepeatAndSelectEvent",
    "RepeatedEvent",
    "UniformSampledEvent",
    "calibrate_event",
    "calibrate_noise_multiplier",
    "calibrate_sample_rate",
    "calibrate_steps",
    "composition_noise_multiplier",
    "dpsgd_epsilon",
    "group_delta",
    "group_epsilon",
    "group_privacy",
    "renyi_divergence",
]
