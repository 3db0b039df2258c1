"""Numbers about privacy: events, what they cost, and how much noise a target needs.

Nothing here sees data. Events (`skdp.accounting.events`) say what happened, accountants say what
it costs, and calibration turns a target into a noise multiplier, a number of steps or a rate.
"""

from skdp.accounting._base import Accountant
from skdp.accounting._value import PrivacyValue
from skdp.accounting.advanced_composition import AdvancedCompositionAccountant
from skdp.accounting.basic_composition import BasicCompositionAccountant
from skdp.accounting.bayesian import BayesianAccountant
from skdp.accounting.calibration import (
    calibrate_event,
    calibrate_noise_multiplier,
)
from skdp.accounting.dpsgd import dpsgd_epsilon
from skdp.accounting.events import (
    ApproxDPEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PoissonSampledEvent,
    PureDPEvent,
    RepeatedEvent,
    UniformSampledEvent,
)
from skdp.accounting.gdp import GDPAccountant
from skdp.accounting.generic import GenericAccountant
from skdp.accounting.group_privacy import group_delta, group_epsilon, group_privacy
from skdp.accounting.hidden_state import HiddenStateAccountant
from skdp.accounting.last_iterate import LastIterateEvent
from skdp.accounting.moments import MomentsAccountant
from skdp.accounting.objective_perturbation import ObjectivePerturbationEvent
from skdp.accounting.optimal_composition import OptimalCompositionAccountant
from skdp.accounting.pld import PLDAccountant
from skdp.accounting.profile_events import OneOfEvent, ProfileEvent
from skdp.accounting.rdp import RDPAccountant
from skdp.accounting.renyi_divergences import renyi_divergence
from skdp.accounting.renyi_event import RenyiEvent
from skdp.accounting.repeat_and_select import RepeatAndSelectEvent
from skdp.accounting.strong_composition import composition_noise_multiplier
from skdp.accounting.training_extent import calibrate_sample_rate, calibrate_steps

__all__ = [
    "Accountant",
    "AdvancedCompositionAccountant",
    "ApproxDPEvent",
    "BasicCompositionAccountant",
    "BayesianAccountant",
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
    "ObjectivePerturbationEvent",
    "OneOfEvent",
    "OptimalCompositionAccountant",
    "PLDAccountant",
    "PoissonSampledEvent",
    "PrivacyValue",
    "ProfileEvent",
    "PureDPEvent",
    "RDPAccountant",
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
