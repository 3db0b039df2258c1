"""The base of all private models."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp.accounting.privacy_spent import (
    DISCRETE_NOISE,
    REAL_NUMBERS,
    REAL_PURE_NOISE,
    PrivacySpent,
)
from skdp.base.parameters import (
    Auto,
    DeclaredParameters,
    UnitWeighting,
    check_choice,
    check_integer,
    check_real,
    parameter,
    released,
)
from skdp.base.scikit_learn import BaseEstimator
from skdp.fitting import FRAMES_ABOVE, FitProgress, PrivateFit
from skdp.losses.base import Loss, check_loss
from skdp.mechanisms.random_stream import RandomStream
from skdp.models import LinearModel, Model, ScaledUnits
from skdp.models.protocol import refuse_unstated
from skdp.plans.coefficient_noise import coefficient_noise
from skdp.plans.defaults import INTERCEPT_VALUE, PublicNumbers
from skdp.plans.protocol import Plan
from skdp.tables.inputs import resolve_data_norm, validate_rows, warn_of_unbounded_rows
from skdp.tables.records import Records
from skdp.tables.row_sources import in_blocks
from skdp.tables.units import about_units


class InterceptMixin(DeclaredParameters):
    """Models with a parameter for the value of the constant column."""

    intercept_scaling: float | Auto = parameter(
        'float or "auto"',
        """Value of the constant column that the intercept multiplies; it counts towards the row
        norm. ``"auto"`` uses a fixed share of `data_norm`.""",
        default="auto",
    )


class PrivateModel(PrivateFit, BaseEstimator):
    """Base of the private models; mixins define the loss and the predictions.

    Models that are not linear override `_make_model`, `_weights` and `_score_rows`.
    """

    data_norm: float | None = parameter(
        "float or None",
        """Public upper bound on the Euclidean norm of a row. Longer rows are scaled down to it.
        None uses 1.0; `fit` then warns, unless a step of skdp bounds the rows by 1.0.""",
        default=None,
    )
    fit_intercept: bool = parameter("bool", "Whether to fit an intercept.", default=True)
    n_features_in_: int = released("int", "Number of features.")
    feature_names_in_: np.ndarray = released(
        "ndarray of shape (n_features,)", "Feature names, if `X` had any."
    )

    _coef_noise_: Any = released()

    coef_: Any = released()
    intercept_: Any = released()

    # For models without these parameters: one random row of each id is used, noise is calibrated
    # by composition of privacy losses, and probabilities are not recalibrated.
    unit_weighting, max_unit_rows = cast(Any, "random-row"), cast(Any, None)
    alpha = intercept_scaling = cast(Any, "auto")
    calibration, calibrate, noise_multiplier = cast(Any, "pld"), cast(Any, None), cast(Any, None)
    # Public attributes other than the weights.
    _public: ClassVar[tuple[str, ...]] = ()
    _fit_takes = "X, y and groups"
    _beside_rows = ("groups",)

    def fit(self, X: Any, y: Any, *, groups: Any = None, **fit_params: Any) -> Self:
        """Fit the model under differential privacy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows. float64 and float32 are used without conversion; sparse input is converted to
            CSR. Rows longer than `data_norm` are scaled down to it. A `numpy.memmap`, and a CSR
            matrix of such arrays, is read in blocks and never copied. Dask arrays are read
            partition by partition; see ``docs/scale.md``.
        y : array-like of shape (n_samples,)
            Target values. `y` and `groups` may be dask arrays too.
        groups : array-like of shape (n_samples,), default=None
            Id of each row, integers or strings. The guarantee then protects all rows of one id
            together, as one record. n is the public number of ids; the number of rows is private.
            `unit_weighting` sets their weight; estimators without it use one random row
            of each id. None treats each row as a record. See ``docs/patients.md``.
        **fit_params : dict
            Must be empty. `sample_weight` is refused, since a weight multiplies the influence of
            one record, and so the sensitivity, without bound.

        Returns
        -------
        self : estimator
            The fitted estimator. Every attribute with a trailing underscore is covered by the
            guarantee and may be published.

        Raises
        ------
        ValueError, TypeError
            If parameters or input are invalid. Nothing is charged then.
        BudgetExceededError
            If the charge exceeds the remaining budget. No row is used then.
        """
        return self._fit(X, y, fit_params if groups is None else {**fit_params, "groups": groups})

    # Methods that a training algorithm implements.

    @abstractmethod
    def _build_plan(self, model: Any, numbers: PublicNumbers) -> Any:
        """Return the plan that the parameters and the public numbers determine."""

    # Methods that classifiers and regressors implement.

    @abstractmethod
    def _encode_targets(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the encoded targets, and the label set of a classifier."""

    # Returns the loss of one score; models without a loss have none.
    _part_loss: ClassVar[Callable[..., Any]]

    @property
    def _given_loss(self) -> Loss | None:
        """The loss that was given as an object; None for a built-in loss."""
        given = getattr(self, "loss", None)
        return given if isinstance(given, Loss) else None

    def _check_loss(self, kind: Any, *names: str) -> None:
        """Refuse a loss that is neither a known name nor a valid object."""
        given = self.loss  # type: ignore[attr-defined]
        if self._given_loss is None and given not in names:
            known = ", ".join(map(repr, names))
            raise ValueError(
                f"loss must be one of {known}, or an object of a {kind.__name__} from skdp.losses "
                f"or a custom class; got {given!r}."
            )
        if self._given_loss is not None:
            check_loss(given, kind)

    def _about_loss(self) -> tuple[str, ...]:
        """Return the assumption about a loss that was given as an object."""
        given = self._given_loss
        if given is None:
            return ()
        foreign = not type(given).__module__.startswith("skdp.")
        return (
            f"the loss is {given!r}"
            + (", with stated constants that are assumed, not checked" if foreign else ""),
        )

    def _loss(self, n_classes: int) -> Loss:
        """Return the loss for a number of classes; 1 means regression."""
        return self._part_loss()

    @abstractmethod
    def _about_targets(self) -> str:
        """Return the assumption about the targets."""

    # The order of a fit.

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("unit_weighting", self.unit_weighting, ("mean", "random-row", "sum"))
        allowed = () if self.unit_weighting == "sum" else (None,)
        remedy = "unit_weighting='sum' requires this public bound."
        check_integer(
            "max_unit_rows", self.max_unit_rows, at_least=1, allowed=allowed, remedy=remedy
        )
        check_real(
            "data_norm",
            self.data_norm,
            at_least=1e-50,
            at_most=1e50,
            allowed=(None,),
            remedy="Give a public bound on the Euclidean norm of a row, not one from the data.",
        )
        check_real("alpha", self.alpha, at_least=0.0, at_most=1e50, allowed=("auto",))
        check_choice("fit_intercept", self.fit_intercept, (True, False))
        remedy = "The constant column must be comparable to a row."
        self._check_length("intercept_scaling", 1e-10, 1e10, remedy)

    def _check_length(
        self, name: str, least: float, most: float, remedy: str, allowed: tuple[Any, ...] = ()
    ) -> None:
        """Check a positive parameter, and its ratio to `data_norm`."""
        value = getattr(self, name)
        check_real(name, value, above=0.0, allowed=("auto", *allowed))
        if value not in ("auto", *allowed):
            share = value / self._row_bound
            check_real(f"{name} / data_norm", share, at_least=least, at_most=most, remedy=remedy)

    def _choose(self, name: str, convert: Callable[[Any], Any] = lambda value: value) -> Any:
        """Return the user's choice of a parameter in scaled units; None for the default."""
        value = getattr(self, name)
        return None if value is None or value == "auto" else convert(value)

    @property
    def _row_bound(self) -> float:
        return resolve_data_norm(self.data_norm)

    def _read(self, X: Any, y: Any, params: dict[str, Any]) -> Records:
        known: dict[str, Any] = {"dtype": [np.float64, np.float32], "order": "C"}
        given = self, X, y, params.get("groups"), self._encode_targets, self._most
        records = Records.read(*given, **known)
        warn_of_unbounded_rows(self, (records.X, X), 4 + FRAMES_ABOVE)
        return records

    def _plan(self, records: Records) -> Any:
        n_classes = 1 if records.labels is None else records.labels.size
        return self._plan_shape((records.n_rows, records.n_features), n_classes, records.by_unit)

    def _plan_shape(self, shape: tuple[int, int], n_classes: int, by_unit: bool = False) -> Any:
        numbers = PublicNumbers(
            n_rows=shape[0],
            n_features=shape[1],
            n_classes=n_classes,
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=self._relation,
            by_unit=by_unit,
        )
        return self._plan_numbers(numbers)

    def _plan_numbers(self, numbers: PublicNumbers) -> Any:
        """Return the plan of all releases of a fit."""
        return self._build_plan(self._make_model(numbers), numbers)

    def _make_model(self, numbers: PublicNumbers) -> Any:
        units = ScaledUnits(self._row_bound)
        value = self._choose("intercept_scaling", units.feature)
        if value is None:
            value = INTERCEPT_VALUE
        loss = self._loss(numbers.n_classes)
        return LinearModel(
            loss=loss,
            n_rows=numbers.n_rows,
            n_features=numbers.n_features,
            n_outputs=loss.n_outputs,
            intercept_value=float(value) if self.fit_intercept else 0.0,
            units=units,
            heaviest=self._most if numbers.by_unit else 1.0,
            by_unit=numbers.by_unit,
            rows_per_unit=self._rows_per_unit(numbers) or 1,
        )

    @property
    def _most(self) -> float:
        """Public bound on the total weight of the rows of one id."""
        return float(self.max_unit_rows or 1) if self.unit_weighting == "sum" else 1.0

    def _rows_per_unit(self, numbers: PublicNumbers) -> int | None:
        """Return the maximum number of rows used per id; None if all are used."""
        return self._drawn if numbers.by_unit else 1

    @property
    def _drawn(self) -> int | None:
        """Number of rows drawn per id; None if all are used."""
        if self.unit_weighting == "mean":
            return self.max_unit_rows
        return 1 if self.unit_weighting == "random-row" else None

    def _refuse_any_number(self, numbers: PublicNumbers, what: str) -> None:
        """Refuse plans that use all rows of each id."""
        if self._rows_per_unit(numbers) is None:
            raise ValueError(
                f"{what} is proved only for a public number of rows per id. With groups=, set "
                "unit_weighting='random-row', or unit_weighting='mean' with max_unit_rows=."
            )

    def _weights(self, model: Model) -> tuple[str, ...]:
        """Return the names of the attributes for the model's unpacked weights."""
        return "coef_", "intercept_"

    def _use_rows(self, plan: Any, records: Records, progress: FitProgress) -> Any:
        stream = self._stream(records)
        if records.by_unit and self._drawn is not None:
            # In networks every unit has the same number of slots, whatever its number of rows.
            padded = "network" in plan.model.facts
            records = records.draw(stream.spawn("rows of units"), self._drawn, padded)
        for release in plan.before:
            records = release.weigh(records, plan.model, stream)
        weights = self._carry_out(plan, records, stream, progress)
        told = (release.tell(weights, records, plan.model, stream) for release in plan.after)
        return weights, *told

    def _carry_out(
        self, plan: Any, records: Records, stream: RandomStream, progress: FitProgress
    ) -> np.ndarray:
        from skdp.plans.carry_out import carry_out

        lots: dict[str, Any] = {}
        if records.by_unit and plan.lots is not None:
            lots["units"] = records.units
        return carry_out(plan, records.bind(plan.model), stream, progress.steps_done, **lots)

    def _publish(self, plan: Any, records: Any, released: Any, spent: PrivacySpent) -> None:
        weights = plan.model.unpack(released[0])  # later releases follow
        for name, value in zip(self._weights(plan.model), weights, strict=True):
            setattr(self, name, value)
        # In units of `coef_`, and rescaled with it.
        self._coef_noise_ = coefficient_noise(plan)

    def _record(
        self, plan: Any, epsilon: float, accountant: str, mechanism: str, *assumptions: str
    ) -> PrivacySpent:
        """Return the record of a fit; its assumptions begin with the public inputs."""
        refuse_unstated(plan, *Plan.__annotations__)
        by_unit = plan.model.by_unit
        continuous = REAL_NUMBERS if self.delta > 0.0 else REAL_PURE_NOISE
        assumptions = (
            f"rows are clipped to the public norm data_norm={self._row_bound:g}",
            f"the number of {'units' if by_unit else 'rows'}, the columns and all parameters are "
            "public",
            *(self._about_units() if by_unit else ()),
            self._about_targets(),
            *self._about_loss(),
            *assumptions,
        )
        if self._given_loss is not None:
            mechanism = f"{mechanism}; loss {self._given_loss!r}"
        released = (*self._weights(plan.model), *self._public)
        return self._record_of(
            *(plan.event, plan.adjacency, mechanism, assumptions, released),
            epsilon=epsilon,
            accountant=accountant,
            arithmetic=DISCRETE_NOISE if plan.grid > 0.0 else continuous,
            by_unit=by_unit,
        )

    def _about_units(self) -> tuple[str, ...]:
        """Return the assumptions about units and the weights of their rows."""
        drawn = f"at most {self._drawn} of them, drawn at random, count"
        counted = {
            "mean": f"{drawn if self._drawn else 'they count'} equally, together as one row",
            "random-row": "one of them, drawn at random, is used",
            "sum": f"each counts as one row, together as at most {self.max_unit_rows} rows",
        }
        return (about_units(counted[self.unit_weighting]),)

    @staticmethod
    def _about_grid(plan: Any) -> str:
        """Return the words about the grid of discrete noise; empty for others."""
        if plan.grid == 0.0:
            return ""
        return f", discrete on multiples of 2**{round(math.log2(plan.grid))}, rounding included"

    def _scores(self, X: Any) -> np.ndarray:
        """Return the scores of rows, from released weights only."""
        check_is_fitted(self)
        scores = in_blocks(self._score_rows, validate_rows(self, X, reset=False))
        return scores.ravel() if scores.shape[1] == 1 else scores

    def _score_rows(self, X: Any) -> np.ndarray:
        """Return one column of scores per output, from released attributes."""
        return LinearModel.scores(X, self.coef_, self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class PenalizedModel(InterceptMixin, PrivateModel):
    """A private model with an L2 penalty."""

    alpha: float | Auto = parameter(
        'float or "auto"', "L2 penalty on all weights, including the intercept.", default="auto"
    )


class UnitWeightingMixin(PrivateModel):
    """Models with a choice of row weights per id; comes before their base."""

    unit_weighting: UnitWeighting = parameter(
        '{"mean", "random-row", "sum"}',
        """Weight of the rows of one id in ``groups=``. ``"mean"``: all rows of an id together count
        as one row. ``"random-row"``: one random row of each id is used. ``"sum"``: each row counts
        as one row, up to `max_unit_rows` rows per id; all noise grows by that factor.""",
        default="mean",
    )
    max_unit_rows: int | None = parameter(
        "int or None",
        """Maximum number of rows used per id. With ``unit_weighting="mean"``, a random subset of
        this size is used for ids that have more rows; None uses all rows (not supported for
        networks or ``numerics="discrete"``). Required for ``"sum"``, where the rows of larger
        units are down-weighted.""",
        default=None,
    )
