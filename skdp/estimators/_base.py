"""What all private linear classifiers share: validation, charging, fitting order, prediction."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from skdp.budget.charging import ChargesBudget, charge_fit, check_accountant
from skdp.estimators.callbacks import (
    FRAMES_OF_WITH_CALLBACKS,
    CallbackSupportMixin,
    FitProgress,
    with_callbacks,
)
from skdp.estimators.labels import encode_labels
from skdp.exceptions import PrivacyWarning
from skdp.inputs import canonical_rows, validate_private_data
from skdp.losses import LogisticLoss, OneVsRestLoss, SoftmaxLoss
from skdp.mechanisms.contribution import ADJACENCIES
from skdp.mechanisms.random_stream import RandomStream, is_seeded, resolve_random_state
from skdp.models import LinearModel, ScaledUnits
from skdp.parameters import SMALLEST_DELTA, check_choice, check_integer, check_real
from skdp.plans.defaults import PublicNumbers, default_intercept_value
from skdp.reporting import PrivacySpent
from skdp.row_bounds import resolve_data_norm, warn_of_unbounded_rows
from skdp.seeding import fit_context


class PrivateLinearClassifier(ChargesBudget, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Base of the private linear classifiers.

    A fit keeps this order: parameters and shapes are validated (no value of a row but a
    non-finite one decides an error), the plan is built from public numbers, the accountant is
    charged, and only then are the rows used.
    """

    # Parameters that all of them have; subclasses declare them in their own signature.
    epsilon: float | None
    delta: float
    adjacency: Any
    data_norm: float | None
    classes: Any
    alpha: Any
    fit_intercept: bool
    intercept_scaling: Any
    accountant: Any
    random_state: Any
    verbose: int

    @with_callbacks
    def fit(self, X: Any, y: Any, **fit_params: Any) -> Any:
        """Fit the classifier under differential privacy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; float64 and float32 are used as they are, sparse input becomes CSR. Rows
            longer than `data_norm` are scaled down to it.
        y : array-like of shape (n_samples,)
            Labels.
        **fit_params : dict
            Must be empty. `sample_weight` is refused: a weight multiplies one record's
            influence, and with it the sensitivity, without bound.

        Returns
        -------
        self : estimator
            The fitted estimator; every attribute with a trailing underscore is private and
            may be published.

        Raises
        ------
        ValueError, TypeError
            For bad parameters or input, before anything is charged.
        BudgetExceededError
            If the accountant cannot take the charge; the rows are not used then.
        """
        self._refuse_fit_params(fit_params)
        self._check_parameters()
        given = X
        X, y = validate_private_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order="C"
        )
        warn_of_unbounded_rows(self, (X, given), 2 + FRAMES_OF_WITH_CALLBACKS)
        X = canonical_rows(X)
        labels, codes = encode_labels(y, self.classes)
        numbers = self._public_numbers(X.shape, labels.size)
        if self.delta >= 1.0 / numbers.n_rows:
            warnings.warn(
                f"delta={self.delta:g} is not below 1/n={1.0 / numbers.n_rows:.3g}: such a delta "
                "permits publishing whole rows at random. Choose delta well below 1/n.",
                PrivacyWarning,
                stacklevel=2 + FRAMES_OF_WITH_CALLBACKS,
            )
        model = self._linear_model(numbers)
        plan = self._build_plan(model, numbers)
        seeded = is_seeded(self.random_state)
        spent = self._account(plan, seeded)
        charge_fit(self, spent)
        if self.verbose:
            print(f"[{type(self).__name__}] {spent!r}: {spent.mechanism}")
        progress = FitProgress(self, self._public_steps(plan))
        progress.begin()
        stream = resolve_random_state(
            self.random_state, fit_context(self, X, codes) if seeded else b""
        )
        problems = model.bind(X, codes)
        weights = self._carry_out(plan, problems, stream, progress)
        self.classes_ = labels
        self.coef_, self.intercept_ = model.unpack(weights)
        self.privacy_spent_ = spent
        self._publish(plan)
        progress.end()
        return self

    def privacy_plan(self, n_samples: int, n_features: int, n_classes: int = 2) -> PrivacySpent:
        """Return what `fit` would spend on a table of a given public shape.

        Nothing is charged and no data are needed: the noise of a fit depends on the parameters
        and on public numbers alone.

        Parameters
        ----------
        n_samples : int
            Number of rows.
        n_features : int
            Number of columns that the classifier will see.
        n_classes : int, default=2
            Number of labels; ignored where `classes` lists them.

        Returns
        -------
        PrivacySpent
            The record that `privacy_spent_` would be.

        Raises
        ------
        ValueError, TypeError
            For bad parameters, as `fit` does.
        """
        self._check_parameters()
        n_samples = check_integer("n_samples", n_samples, at_least=1)
        n_features = check_integer("n_features", n_features, at_least=1)
        if self.classes is not None:
            n_classes = np.unique(np.asarray(self.classes)).size
        n_classes = check_integer("n_classes", n_classes, at_least=2)
        numbers = self._public_numbers((n_samples, n_features), n_classes)
        plan = self._build_plan(self._linear_model(numbers), numbers)
        return self._account(plan, is_seeded(self.random_state))

    # What each method fills in.

    @abstractmethod
    def _build_plan(self, model: LinearModel, numbers: PublicNumbers) -> Any:
        """Return the plan that the parameters and the public numbers determine."""

    @abstractmethod
    def _account(self, plan: Any, seeded: bool) -> PrivacySpent:
        """Return the record of what carrying out the plan will spend."""

    @abstractmethod
    def _carry_out(
        self, plan: Any, problems: list[Any], stream: RandomStream, progress: FitProgress
    ) -> np.ndarray:
        """Run the plan and return the noisy weights."""

    @abstractmethod
    def _binary_loss(self) -> Any:
        """Return the margin loss of a two-class problem."""

    def _public_steps(self, plan: Any) -> int:
        """Return the number of steps to announce to callbacks; 0 where it is not public."""
        return 0

    def _publish(self, plan: Any) -> None:
        """Set further released attributes; they come from the plan alone."""

    # Validation and charging.

    def _check_parameters(self) -> None:
        check_real(
            "epsilon",
            self.epsilon,
            above=0.0,
            allowed=self._special_epsilons,
            remedy="Smaller means more private; 1.0 is a common choice.",
        )
        check_real(
            "delta",
            self.delta,
            at_least=SMALLEST_DELTA,
            below=1.0,
            remedy="Choose it well below 1/n, for example 1e-6.",
        )
        check_choice("adjacency", self.adjacency, ADJACENCIES)
        check_real(
            "data_norm",
            self.data_norm,
            at_least=1e-50,
            at_most=1e50,
            allowed=(None,),
            remedy="It is a public bound on the Euclidean norm of a row, not read off the data.",
        )
        check_real("alpha", self.alpha, at_least=0.0, at_most=1e50, allowed=("auto",))
        check_choice("fit_intercept", self.fit_intercept, (True, False))
        check_real("intercept_scaling", self.intercept_scaling, above=0.0, allowed=("auto",))
        if self.intercept_scaling != "auto":
            check_real(
                "intercept_scaling / data_norm",
                self.intercept_scaling / self._row_bound,
                at_least=1e-10,
                at_most=1e10,
                remedy="The intercept's column is to be comparable to a row.",
            )
        check_integer(
            "verbose", int(self.verbose) if isinstance(self.verbose, bool) else self.verbose
        )
        check_accountant(self.accountant)

    _special_epsilons: tuple[str | None, ...] = ()

    @property
    def _row_bound(self) -> float:
        return resolve_data_norm(self.data_norm)

    def _refuse_fit_params(self, fit_params: dict[str, Any]) -> None:
        if "sample_weight" in fit_params:
            raise TypeError(
                f"{type(self).__name__}.fit takes no sample_weight: a weight multiplies one "
                "record's influence and so the noise that hides it. Leave it out; to protect "
                "people with several rows, merge their rows first."
            )
        if fit_params:
            raise TypeError(
                f"{type(self).__name__}.fit takes X and y only, got {', '.join(fit_params)}."
            )

    # From parameters to the public side of the model.

    def _public_numbers(self, shape: tuple[int, int], n_classes: int) -> PublicNumbers:
        return PublicNumbers(
            n_rows=shape[0],
            n_features=shape[1],
            n_classes=n_classes,
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=self.adjacency,
        )

    def _linear_model(self, numbers: PublicNumbers) -> LinearModel:
        units = ScaledUnits(self._row_bound)
        intercept_value = 0.0
        if self.fit_intercept:
            intercept_value = (
                default_intercept_value()
                if self.intercept_scaling == "auto"
                else units.feature(self.intercept_scaling)
            )
        loss = self._binary_loss()
        if numbers.n_classes > 2:
            loss = (
                SoftmaxLoss(numbers.n_classes)
                if isinstance(loss, LogisticLoss)
                else OneVsRestLoss(loss, numbers.n_classes)
            )
        return LinearModel(
            loss=loss,
            n_rows=numbers.n_rows,
            n_features=numbers.n_features,
            n_outputs=1 if numbers.n_classes == 2 else numbers.n_classes,
            intercept_value=float(intercept_value),
            units=units,
        )

    def _assumptions(self, *more: str) -> tuple[str, ...]:
        """Return what the guarantee takes for granted, public inputs first."""
        labels = (
            "the label set was read from y and is taken to be public"
            if self.classes is None
            else "the label set classes= is public"
        )
        return (
            f"rows are clipped to the public norm data_norm={self._row_bound:g}",
            "the number of rows, the columns and all parameters are public",
            labels,
            *more,
        )

    # Prediction: plain linear algebra on released weights.

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the linear scores of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores; for two classes, of ``classes_[1]``.
        """
        check_is_fitted(self)
        X = validate_private_data(self, X, accept_sparse="csr", reset=False)
        scores = LinearModel.scores(X, self.coef_, self.intercept_)
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the label with the largest score.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
