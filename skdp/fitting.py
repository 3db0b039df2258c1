"""The order of every private release: check, plan, charge, use, publish.

Parameters and shapes are checked first; of the values of rows, only non-finite ones cause errors.
The plan follows from public numbers, the budget is charged durably, and then rows are used. Only
the results of this use may be published.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from skdp.accounting import Event
from skdp.accounting.privacy_spent import REAL_NUMBERS, PrivacySpent
from skdp.base.parameters import (
    PURE_OFFERS,
    SMALLEST_DELTA,
    Adjacency,
    DeclaredParameters,
    check_choice,
    check_integer,
    check_real,
    parameter,
    released,
)
from skdp.base.pipelines import named_ids
from skdp.budget.charging import (
    ChargesBudget,
    charge_fit,
    check_accountant,
    find_relation,
    is_counted,
)
from skdp.mechanisms.contribution import ADJACENCIES
from skdp.mechanisms.random_stream import RandomStream, is_seeded, resolve_random_state
from skdp.running import Caller, callers_of, shown, warn_once
from skdp.tables.inputs import note_fit
from skdp.tables.records import Records
from skdp.tables.row_sources import BlockTable

# Frames between a user's call of fit and the release, for warnings: `_fit` and its decorator.
FRAMES_ABOVE = 2

# Warn of a larger delta if n is private, and of fewer records if it is public.
_LARGE_DELTA, _FEW_RECORDS = 1e-3, 10

Method = TypeVar("Method", bound=Callable[..., Any])

try:
    import sklearn.callback as callbacks
except ImportError:  # scikit-learn < 1.9
    callbacks = None

if callbacks is None or TYPE_CHECKING:  # scikit-learn has no types: methods would lose theirs
    FRAMES_ABOVE = 1

    class CallbackSupportMixin:
        """Placeholder for versions of scikit-learn without callbacks."""

    def with_callbacks(method: Method) -> Method:
        """Return the method unchanged."""
        return method
else:
    CallbackSupportMixin, with_callbacks = callbacks.CallbackSupportMixin, callbacks.with_callbacks


class FitProgress:
    """Progress of a fit with a public number of steps, for scikit-learn's callbacks.

    Callbacks never receive rows, labels or iterates. A callback's request to stop is ignored, since
    it could depend on private values.
    """

    # More updates are not visible, and each costs time.
    _MOST_UPDATES = 200

    def __init__(self, estimator: Any, n_steps: int) -> None:
        self._estimator = estimator
        self._n_updates = min(n_steps, self._MOST_UPDATES)
        self._n_steps = n_steps
        self._announced = 0
        self._show: Callable[[int], None] = lambda count: None
        self._context = None
        if hasattr(estimator, "_init_callback_context"):
            self._context = estimator._init_callback_context(max_subtasks=self._n_updates)

    @property
    def task(self) -> Any:
        """Task of the fit in scikit-learn; None before version 1.9."""
        return self._context

    def begin(self) -> None:
        """Announce that the fit begins."""
        if self._context is not None:
            self._context.call_on_fit_task_begin(estimator=self._estimator)

    @contextmanager
    def on_screen(self, records: Any) -> Iterator[None]:
        """Show a progress bar for rows read in blocks, unless callbacks show one.

        It counts steps if their number is public, and otherwise shows only activity.
        """
        in_blocks = isinstance(getattr(records, "X", None), BlockTable)
        of_its_own = not in_blocks or hasattr(self._estimator, "_skl_callbacks")
        name, parts = type(self._estimator).__name__, self._n_steps or None
        with shown(name, 0 if of_its_own else parts) as self._show:
            yield

    def steps_done(self, count: int) -> None:
        """Announce that `count` steps are done."""
        self._show(count)
        if self._context is None:
            return
        while self._announced < count * self._n_updates // self._n_steps:
            task = self._context.subcontext(task_name="steps")
            task.call_on_fit_task_begin(estimator=self._estimator)
            task.call_on_fit_task_end(estimator=self._estimator)
            self._announced += 1

    def end(self) -> None:
        """Announce that the fit is done."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator)


# Adjacency of the current releases of this thread, by their estimator.
_relations: ContextVar[tuple[tuple[int, Adjacency], ...]] = ContextVar("relations", default=())


@contextmanager
def _one_relation(release: Any) -> Iterator[None]:
    """Fix the adjacency of a release, also if other threads open blocks meanwhile."""
    token = _relations.set((*_relations.get(), (id(release), find_relation(release))))
    try:
        yield
    finally:
        _relations.reset(token)


@contextmanager
def _last_fit_kept(model: Any) -> Iterator[None]:
    """Restore the attributes of a model's last fit if a new one raises."""
    kept = {name: value for name, value in vars(model).items() if name.endswith("_")}
    try:
        yield
    except BaseException:
        for name in [name for name in vars(model) if name.endswith("_")]:
            del vars(model)[name]
        vars(model).update(kept)
        raise


def _warn_of(callers: list[Caller], by_unit: bool) -> None:
    """Warn of callers of a fit that use rows beyond its charge."""
    if callers:  # import scikit-learn's classes only if needed
        from skdp.reporting.leaks import warn_of_callers, warn_of_ids

        warn_of_callers([caller.called for caller in callers])
        for caller in [] if by_unit else callers:
            if caller.has_ids or named_ids(caller.called, caller.rows) is not None:
                warn_of_ids(caller.called)
                break


class PrivateRelease(ChargesBudget, ABC):
    """Base of all users of private rows: fits, evaluations, adjusted models and statistics."""

    epsilon: Any
    delta: Any
    adjacency: Any
    accountant: Any
    random_state: Any
    verbose: int

    # Valid epsilon and delta, and remedies in errors.
    _epsilons: ClassVar[dict[str, float]] = {"at_least": 1e-9, "at_most": 1e6}
    _special_epsilons: ClassVar[tuple[str | None, ...]] = ()
    _remedy_for_epsilon = ""
    _remedy_for_delta = ""
    _offers_pure = False  # whether delta may be 0
    _method = ".fit"  # the charged method
    _about_time = ""

    def _release(self, X: Any, y: Any, params: dict[str, Any]) -> Any:
        """Release in the required order; `params` are further arguments with the rows."""
        with _one_relation(self), _last_fit_kept(self):
            self._check_parameters()
            records = self._read(X, y, params)
            plan = self._plan(records)
            self._warn_of_delta(records)
            self._warn_of_few(records)
            callers = callers_of(self)
            _warn_of(callers, records.by_unit)
            spent = self._spent(plan, records.by_unit, records.assumptions)
            progress = FitProgress(self, self._public_steps(plan))
            self._charge(spent, progress)
            if self.verbose:
                print(f"[{type(self).__name__}] {spent!r}: {spent.mechanism}{self._about_time}")
            progress.begin()
            with progress.on_screen(records):
                released = self._use_rows(plan, records, progress)
                records.check_rows()
        # Attributes published before a later step fails are charged.
        result = self._result(plan, records, released, spent)
        for caller in (*callers, Caller(self, X)):
            note_fit(caller.called, caller.rows, charged=is_counted(self))
        progress.end()
        return result

    def _check_parameters(self) -> None:
        check_real(
            "epsilon",
            self.epsilon,
            **self._epsilons,
            allowed=self._special_epsilons,
            remedy=self._remedy_for_epsilon,
        )
        if not self._offers_pure or self.delta != 0.0 or isinstance(self.delta, bool):
            remedy = self._remedy_for_delta
            check_real("delta", self.delta, at_least=SMALLEST_DELTA, below=1.0, remedy=remedy)
        check_choice("adjacency", self._relation, ADJACENCIES)
        check_accountant(self.accountant)
        is_seeded(self.random_state)

    @property
    def _relation(self) -> Adjacency:
        """Adjacency relation of the release."""
        return dict(_relations.get()).get(id(self)) or find_relation(self)

    def _warn_of_delta(self, records: Any) -> None:
        # The warning must not reveal a private number of rows.
        public = self._public_rows(records)
        if self.delta >= (_LARGE_DELTA if public is None else 1.0 / max(1, public)):
            least = "" if public is None else f"={1.0 / max(1, public):.3g}"
            where = "of most tables" if public is None else "of this table"
            warn_once(
                f"delta={self.delta:g} is not below 1/n{least} {where}: such a delta permits the "
                "publication of entire rows at random. Choose delta well below 1/n."
            )

    def _warn_of_few(self, records: Any) -> None:
        public = self._public_rows(records)
        if self._relation == "replace-one" and public is not None and public < _FEW_RECORDS:
            unit = "id" if records.by_unit else "row"
            warn_once(
                f"the table has {public} {unit}{'s' * (public != 1)}: noise that hides one of them "
                f"hides everything, and the budget would be wasted. Wait for more {unit}s."
            )

    def _public_rows(self, records: Any) -> int | None:
        """Return the number of records; None if it is private."""
        return int(records.n_rows)

    def _spent(self, plan: Any, by_unit: bool, assumptions: tuple[str, ...]) -> PrivacySpent:
        """Return the record of the privacy cost, including assumptions about the rows."""
        spent = self._account(plan)
        said = dict.fromkeys((*spent.assumptions, *assumptions))
        unit = "group" if by_unit else spent.unit
        return replace(spent, unit=unit, assumptions=tuple(said))

    def _record_of(
        self,
        event: Event,
        adjacency: Adjacency,
        mechanism: str,
        assumptions: tuple[str, ...],
        released: tuple[str, ...],
        *,
        epsilon: float | None = None,
        accountant: str = "pld",
        arithmetic: str = REAL_NUMBERS,
        by_unit: bool = False,
    ) -> PrivacySpent:
        """Return the record of an event; None for epsilon means the parameter."""
        return PrivacySpent(
            float(self.epsilon) if epsilon is None else epsilon,
            float(self.delta),
            adjacency,
            event,
            accountant,
            mechanism,
            assumptions,
            released,
            is_seeded(self.random_state),
            arithmetic,
            "group" if by_unit else "row",
        )

    def _charge(self, spent: PrivacySpent, progress: FitProgress) -> None:
        charge_fit(self, spent, progress.task, self._method)

    def _stream(self, records: Records) -> RandomStream:
        """Return the random stream of a fit; with a seed it depends on the records."""
        context = records.context(self) if is_seeded(self.random_state) else b""
        return resolve_random_state(self.random_state, context)

    # Methods of subclasses.

    @abstractmethod
    def _read(self, X: Any, y: Any, params: dict[str, Any]) -> Any:
        """Check shapes and types, and return the records."""

    @abstractmethod
    def _plan(self, records: Any) -> Any:
        """Return the plan, which depends on parameters and public numbers only."""

    @abstractmethod
    def _account(self, plan: Any) -> PrivacySpent:
        """Return the record of the privacy cost of the plan."""

    @abstractmethod
    def _use_rows(self, plan: Any, records: Any, progress: FitProgress) -> Any:
        """Carry out the plan, and return the released values."""

    @abstractmethod
    def _result(self, plan: Any, records: Any, released: Any, spent: PrivacySpent) -> Any:
        """Return the result, computed only from the released values and the plan."""

    def _public_steps(self, plan: Any) -> int:
        """Return the number of steps to announce to callbacks; 0 if it is not public."""
        return 0


class ReleaseParameters(DeclaredParameters):
    """Parameters of private releases that are called with rows."""

    adjacency: Adjacency | None = parameter(
        '{"replace-one", "add-remove"} or None',
        """Adjacency relation of the guarantee: one row replaced, or one row added or removed. None
        uses that of the privacy budget, or ``"replace-one"`` without a budget.""",
        default=None,
    )
    accountant: Any = parameter(
        "BudgetAccountant or None",
        """Privacy budget to charge before rows are used. None charges the budget of the ``with``
        block in which the object is created or used. Without a block the release is not charged,
        or is refused if `set_config` requires a budget.""",
        default=None,
    )
    random_state: Any = parameter(
        "int, RandomState or None",
        """Seed of all randomness, for tests only: the guarantee does not hold against anyone who
        knows it. None draws from a cryptographic stream keyed by the operating system.""",
        default=None,
    )
    verbose: int = parameter(
        "int", "Verbosity: if positive, print the privacy cost before the fit.", default=0
    )


class PrivateFit(ReleaseParameters, PrivateRelease, CallbackSupportMixin):
    """Base of everything that fits privately: estimators, transformers and searches."""

    epsilon: float = parameter(
        "float",
        "Privacy parameter of one fit, positive. Smaller values mean more noise.",
        default=1.0,
        kw_only=False,
    )
    delta: float = parameter(
        "float",
        "Privacy parameter of one fit, in (0, 1); keep it well below 1/n.",
        default=1e-6,
        kw_only=False,
    )
    privacy_spent_: PrivacySpent = released(
        "PrivacySpent", "Guarantee of the fit, with its mechanism and assumptions."
    )

    _listed: ClassVar[tuple[str, ...]] = (
        *("teacher", "epsilon", "delta", "loss", "target_bounds", "privacy", "noise_multiplier"),
        *("adjacency", "data_norm", "width", "quantile", "classes", "class_weight", "prevalence"),
        *("hidden_layer_sizes", "activation", "prior_precision", "noise_aware", "alpha"),
        *("half_width", "fit_intercept", "intercept_scaling", "max_grad_norm", "clipping"),
        *("coefs_init", "intercepts_init", "batch_size", "sampling", "max_iter", "solver"),
        *("momentum", "beta_1", "beta_2", "learning_rate", "learning_rate_init"),
        *("learning_rate_final", "decay_share", "average", "radius", "numerics", "calibration"),
        *("physical_batch_size", "calibrate", "unit_weighting", "max_unit_rows", "accountant"),
        *("random_state", "verbose", "coef_", "coef_std_", "intercept_", "intercept_std_"),
        *("coefs_", "intercepts_", "activation_", "out_activation_", "n_layers_", "n_outputs_"),
        *("classes_", "calibration_", "n_iter_", "noise_multiplier_", "privacy_spent_"),
        *("n_features_in_", "feature_names_in_"),
    )
    _epsilons: ClassVar[dict[str, float]] = {"above": 0.0}
    _remedy_for_epsilon = "Smaller means more private; 1.0 is a common choice."
    _remedy_for_delta = f"Choose it well below 1/n, for example 1e-6. {PURE_OFFERS}"
    # Printed for every fit: whether one compiles may depend on rows and on other fits.
    _about_time = " (loops that are new on this machine are compiled first, see skdp.warm_up)"
    # Arguments of fit, for errors; None passes metadata on.
    _fit_takes: ClassVar[str | None] = "X and y only"
    _beside_rows: ClassVar[tuple[str, ...]] = ()  # further arguments

    @with_callbacks
    def _fit(self, X: Any, y: Any, params: dict[str, Any]) -> Self:
        self._refuse_fit_params(params)
        return self._release(X, y, params)

    def _refuse_fit_params(self, params: dict[str, Any]) -> None:
        if "sample_weight" in params:
            raise TypeError(
                f"{type(self).__name__}.fit does not support sample_weight: a weight multiplies "
                "the influence of one record, and with it the noise. Omit it; to protect patients "
                "with several rows, pass their ids as groups=."
            )
        others = [name for name in params if name not in self._beside_rows]
        if others and self._fit_takes:
            raise TypeError(
                f"{type(self).__name__}.fit accepts {self._fit_takes}, got {', '.join(others)}."
            )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer(
            "verbose", int(self.verbose) if isinstance(self.verbose, bool) else self.verbose
        )

    def _result(self, plan: Any, records: Any, released: Any, spent: PrivacySpent) -> Self:
        self._publish(plan, records, released, spent)
        self.privacy_spent_ = spent
        return self

    @abstractmethod
    def _publish(self, plan: Any, records: Any, released: Any, spent: PrivacySpent) -> None:
        """Set the attributes that follow from the released values and the plan."""
