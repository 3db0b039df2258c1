"""One (epsilon, delta) for a private fit and the look at its model, charged before both."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor

from skdp.accounting import ComposedEvent, Event, GaussianEvent, calibrate_event
from skdp.accounting.numerics import gaussian_profile
from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.parameters import Adjacency, Unit
from skdp.base.pipelines import take_apart, walk
from skdp.base.scikit_learn import is_private, last_step, responds, whom_it_protects
from skdp.budget.charging import charge_fit, is_counted
from skdp.budget.planning import find_epsilon
from skdp.estimators.labels import encode_labels
from skdp.exceptions import BudgetExceededError
from skdp.inference._models import compared_classes
from skdp.inference._release import LookPlan
from skdp.mechanisms.contribution import ROUND_UP
from skdp.tables.inputs import note_fit, validate_column

# Shares of the squared mu for the fit.
_OBJECTIVE, _OTHER = 0.4, 0.3
_PLANNED = ("epsilon", "delta", "adjacency", "accountant")
_WANTED = (
    "fit_evaluate is for a linear private estimator of skdp with `epsilon` and without "
    "`noise_multiplier`, or a pipeline of which only the last step is private. Fit other models "
    "first, and use evaluate."
)


class JointCharge:
    """Accountant of one fit, which charges fit and look together before the fit uses rows."""

    def __init__(self, look: Any, adjacency: Adjacency) -> None:
        self.look, self.adjacency = look, adjacency
        self.event: Any = None
        self.own: Any = None  # of the look
        self.fitted: Any = None

    def fit(self, estimator: Any, X: Any, y: Any, groups: Any) -> Any:
        """Return a fitted clone of an estimator, or refuse it before the charge."""
        linear, look, delta = last_step(estimator), self.look, float(self.look.delta)
        prefix = find_epsilon(estimator).removesuffix("epsilon")
        own = linear.get_params(deep=False)
        private = [step for step in walk(clone(estimator)) if is_private(step.estimator)]
        bound = hasattr(linear, "_row_bound") and np.size(own.get("hidden_layer_sizes", ())) == 0
        given = own.get("noise_multiplier") is not None or not set(_PLANNED) <= own.keys()
        if len(private) != 1 or given or not bound:
            raise TypeError(_WANTED)
        labels = take_apart(estimator, X, y, groups)[1]
        if is_regressor(linear) and look.error_sd is None:
            raise ValueError("declare error_sd, a rough standard deviation of the errors.")
        if not is_regressor(linear) and labels is not None:
            known = encode_labels(validate_column(labels), linear.classes)[0]
            compared_classes(linear, known.tolist(), look.reference)
        share = _OBJECTIVE if type(linear).__name__.startswith("ObjectivePert") else _OTHER
        mu = gaussian_profile.mu(float(look.epsilon), delta)
        mu *= math.sqrt(share if look.share == "auto" else look.share)
        values = gaussian_profile.epsilon(mu, delta), delta, self.adjacency, self
        planned = zip([prefix + name for name in _PLANNED], values, strict=True)
        model = clone(estimator).set_params(**dict(planned))
        look._protects = whom_it_protects(model)
        name = "groups" if responds(model, "_take_apart") else f"{prefix}groups"
        model.fit(X, y, **({} if groups is None else {name: groups}))
        if self.event is None:
            raise BudgetExceededError("the estimator did not charge its fit to its accountant.")
        note_fit(model, X, charged=is_counted(look))
        self.fitted = last_step(model).privacy_spent_
        return model.set_params(**{f"{prefix}accountant": linear.accountant})

    def reserve(
        self, event: Event, *, adjacency: Adjacency, seeded: bool, unit: Unit, **_: Any
    ) -> None:
        """Charge both, with the least noise of the look for which they meet the target."""
        if self.event is not None:
            raise BudgetExceededError("the estimator charges twice in one fit; one was planned.")
        if adjacency != self.adjacency:
            raise BudgetExceededError(f"the fit was planned for adjacency={self.adjacency!r}.")
        look = self.look

        def both(multiplier: float) -> Event:
            return ComposedEvent((event, GaussianEvent(multiplier)))

        target = float(look.epsilon), float(look.delta)
        self.own = GaussianEvent(calibrate_event(both, *target, adjacency=adjacency))
        self.event = both(self.own.noise_multiplier)
        spent = look._record_of(self.event, adjacency, "a fit and a look at it", (), ())
        spent = replace(spent, seeded=seeded or spent.seeded, unit=unit)
        charge_fit(look, spent, None, ".fit_evaluate")

    def with_noise(self, plan: LookPlan) -> LookPlan:
        """Return the plan of a look with the noise that was charged."""
        sums = plan.sums.continuous(self.own.noise_multiplier * ROUND_UP)
        # The event also ties a seed's noise to its scale: two scales of it would show the rows.
        return replace(plan, sums=sums, event=self.own)

    def total(self, spent: PrivacySpent) -> PrivacySpent:
        """Return the record of fit and look, from that of the look."""
        fitted: PrivacySpent = self.fitted
        if fitted.unit != spent.unit:
            raise ValueError("fit and look must protect the same records: pass the same groups=.")
        return replace(
            spent,
            event=self.event,
            mechanism=f"{fitted.mechanism}; then {spent.mechanism}",
            assumptions=tuple(dict.fromkeys((*fitted.assumptions, *spent.assumptions))),
            released=(*fitted.released, *spent.released),
            seeded=fitted.seeded or spent.seeded,
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> JointCharge:
        return self  # a clone in the fit charges the same
