"""Classifiers with hidden layers: parameters, network and published attributes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.base.parameters import (
    Activation,
    check_choice,
    check_integer,
    check_real,
    parameter,
    released,
)
from skdp.estimators._base import PrivateModel
from skdp.estimators._mixins import LogisticMixin
from skdp.models import Model, NetworkModel, network_scores
from skdp.models.network import public_start
from skdp.plans.defaults import PublicNumbers

# All layers together: a vector of doubles takes 800 MB, and training needs several.
_MOST_WEIGHTS = 10**8
_MOST_LAYERS = 100
# Largest initial weight and norm for which sums of gradients are proved.
_LARGEST = 1e10
_CLIPPED_BY = {
    "per-layer": ("gradients are clipped layer by layer",),
    "normalize": ("gradients are clipped by dividing them by their norm plus 0.01",),
}
_ARITHMETIC = (
    "proofs assume real numbers for noise, which is double precision; bounds are proved for "
    "computed sums (docs/proofs/networks.md): on rows of double precision, and on rows of single "
    "precision for tables in which a null row replaces a missing one"
)
_OF_LINES_AND_NETWORKS = {
    *("coef_", "intercept_", "coefs_", "intercepts_", "activation_", "out_activation_"),
    *("n_layers_", "n_outputs_"),
}


def layer_sizes(given: Any) -> tuple[int, ...]:
    """Return the sizes of the hidden layers; a number means one layer."""
    if isinstance(given, np.ndarray):
        given = given.tolist()
    sizes = list(given) if isinstance(given, list | tuple) else [given]
    if len(sizes) > _MOST_LAYERS:
        raise ValueError(
            f"hidden_layer_sizes may list at most {_MOST_LAYERS} layers, got {len(sizes)}."
        )
    remedy = "List the number of units of each hidden layer, such as (100, 50)."
    return tuple(
        check_integer("hidden_layer_sizes", size, at_least=1, remedy=remedy) for size in sizes
    )


class NetworkMixin(LogisticMixin, PrivateModel):
    """Classifiers with optional hidden layers; comes before their base."""

    _added_texts: ClassVar[dict[str, str]] = {
        "alpha": "In networks, the penalty is on the distance from the initial weights.",
        "fit_intercept": "In networks, whether layers have biases.",
        "intercept_scaling": "In networks, the constant of every bias, 1 by default.",
    }

    hidden_layer_sizes: Any = parameter(
        "int or sequence of int",
        """Number of units of each hidden layer. ``()`` is a linear model. Networks are never chosen
        automatically, since with noise they are often less accurate; see ``docs/networks.md``.""",
        default=(),
    )
    activation: Activation = parameter(
        '{"relu", "tanh", "identity"}', "Activation of the hidden layers.", default="relu"
    )
    coefs_init: Any = parameter(
        "list of ndarray of shape (n_inputs, n_units)",
        """Initial weights of a network, in the format of `coefs_`. They must be public: never
        learned from the rows without noise. None uses orthogonal matrices, the same for all
        tables, and zeros in the last layer.""",
        default=None,
    )
    intercepts_init: Any = parameter(
        "list of ndarray of shape (n_units,)",
        "Initial biases, public as well; None uses zeros.",
        default=None,
    )
    coefs_: list[np.ndarray] = released(
        "list of ndarray of shape (n_inputs, n_units)",
        "Private weights of a network, layer by layer.",
    )
    intercepts_: list[np.ndarray] = released(
        "list of ndarray of shape (n_units,)", "Private biases of a network."
    )
    activation_: Activation = released("str", "Activation of a network's hidden layers.")
    out_activation_: str = released(
        "str",
        """Activation of a network's output, "logistic" or "softmax".""",
    )
    n_layers_: int = released("int", "Number of a network's layers, the columns included.")
    n_outputs_: int = released("int", "Number of a network's outputs.")

    clipping = cast(Any, "flat")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("activation", self.activation, ("relu", "tanh", "identity"))
        check_choice("clipping", self.clipping, ("flat", "per-layer", "normalize"))
        if self.intercepts_init is not None and not self.fit_intercept:
            raise ValueError("intercepts_init cannot be given with fit_intercept=False.")
        plain = self.clipping == "flat" and self.coefs_init is None and self.intercepts_init is None
        if not (plain or layer_sizes(self.hidden_layer_sizes)):
            raise ValueError(
                "clipping, coefs_init and intercepts_init are supported only for networks. Remove "
                "them, or set hidden_layer_sizes=."
            )

    def _check_length(
        self, name: str, least: float, most: float, remedy: str, allowed: tuple[Any, ...] = ()
    ) -> None:
        """Check a positive parameter; for a network, in the network's units."""
        if not layer_sizes(self.hidden_layer_sizes):
            super()._check_length(name, least, most, remedy, allowed)
        else:
            allowed, most = ("auto", *allowed), min(most, _LARGEST)
            check_real(name, getattr(self, name), at_least=least, at_most=most, allowed=allowed)

    def _make_model(self, numbers: PublicNumbers) -> Any:
        hidden = layer_sizes(self.hidden_layer_sizes)
        if not hidden:
            return super()._make_model(numbers)
        self._refuse_any_number(numbers, "A network")
        loss = self._loss(numbers.n_classes)
        bias = 1.0 if self.intercept_scaling == "auto" else float(self.intercept_scaling)
        model = NetworkModel(
            loss=loss,
            n_rows=numbers.n_rows,
            n_features=numbers.n_features,
            n_outputs=loss.n_outputs,
            hidden=hidden,
            activation=self.activation,
            clipping=self.clipping,
            bias_value=bias if self.fit_intercept else 0.0,
            data_norm=self._row_bound,
            by_unit=numbers.by_unit,
            rows_per_unit=self._rows_per_unit(numbers) or 1,
        )
        if model.n_weights > _MOST_WEIGHTS:
            raise ValueError(
                f"hidden_layer_sizes={self.hidden_layer_sizes!r} makes {model.n_weights:.3g} "
                f"weights, more than the maximum of {_MOST_WEIGHTS:.0e}. Use smaller layers."
            )
        return replace(model, given_start=self._given_start(model))

    def _given_start(self, model: NetworkModel) -> list[np.ndarray] | None:
        """Return the given initial weights as matrices of a model; None without any."""
        if self.coefs_init is None and self.intercepts_init is None:
            return None
        if self.coefs_init is None:
            matrices = public_start(model.sizes, model.activation)
        else:
            shapes = [(columns - 1, rows) for rows, columns in model.shapes]
            coefs = _read_start("coefs_init", self.coefs_init, shapes)
            coefs[0] = coefs[0] * (model.data_norm / model.gain)
            matrices = [np.column_stack([coef.T, np.zeros(coef.shape[1])]) for coef in coefs]
        if self.intercepts_init is not None:
            lengths = [(rows,) for rows, _ in model.shapes]
            intercepts = _read_start("intercepts_init", self.intercepts_init, lengths)
            for matrix, intercept in zip(matrices, intercepts, strict=True):
                matrix[:, -1] = intercept / model.bias_value
        if any(np.max(np.abs(matrix)) > _LARGEST for matrix in matrices):
            raise ValueError(
                f"coefs_init and intercepts_init must be at most {_LARGEST:g} for rows of norm 4 "
                "and biases with the constant intercept_scaling."
            )
        return matrices

    def _weights(self, model: Model) -> tuple[str, ...]:
        network = "network" in model.facts
        return ("coefs_", "intercepts_") if network else super()._weights(model)

    def _account(self, plan: Any) -> PrivacySpent:
        if "network" in plan.model.facts and not 1.0 / _LARGEST <= plan.clip <= _LARGEST:
            raise ValueError(
                f"The clipping norm must be in [{1.0 / _LARGEST:g}, {_LARGEST:g}], got "
                f"{plan.clip:g} from these parameters. Change max_grad_norm, radius or "
                "noise_multiplier."
            )
        return super()._account(plan)  # type: ignore[safe-super]

    def _record(self, plan: Any, *about: Any) -> PrivacySpent:
        if "network" in plan.model.facts:
            about += _CLIPPED_BY.get(plan.model.clipping, ())
        if self.coefs_init is not None or self.intercepts_init is not None:
            about += ("the initial weights coefs_init= and intercepts_init= are public",)
        spent = super()._record(plan, *about)
        return replace(spent, arithmetic=_ARITHMETIC) if "network" in plan.model.facts else spent

    def _publish(self, plan: Any, records: Any, released: Any, spent: PrivacySpent) -> None:
        for name in vars(self).keys() & _OF_LINES_AND_NETWORKS:  # from a fit with other layers
            delattr(self, name)
        super()._publish(plan, records, released, spent)
        model = plan.model
        if "network" in model.facts:
            self.activation_ = model.activation
            self.n_layers_ = len(model.sizes)
            self.n_outputs_ = model.n_outputs
            self.out_activation_ = "logistic" if model.n_outputs == 1 else "softmax"

    def _as_sklearn(self) -> Any:
        from skdp.estimators._mixins import network_twin

        return network_twin(self) if hasattr(self, "coefs_") else super()._as_sklearn()

    def _score_rows(self, X: Any) -> np.ndarray:
        if not hasattr(self, "coefs_"):
            return super()._score_rows(X)
        kind: Any = np.float32 if X.dtype == np.float32 else np.float64
        coefs, intercepts = (
            [each.astype(kind, copy=False) for each in weights]
            for weights in (self.coefs_, self.intercepts_)
        )
        # Probabilities near 1 need more digits than single precision has.
        return network_scores(X, coefs, intercepts, self.activation_).astype(np.float64, copy=False)


def _read_start(name: str, given: Any, shapes: list[Any]) -> list[np.ndarray]:
    """Return initial weights in double precision, with the shapes of the layers."""
    try:
        if not isinstance(given, list | tuple):
            raise TypeError
        arrays = [np.asarray(each, dtype=np.float64) for each in given]
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a list of arrays of numbers, one per layer.") from None
    found = [array.shape for array in arrays]
    if found != shapes:
        raise ValueError(
            f"{name} must be a list of arrays of shapes {shapes}, from the first layer to the "
            f"output, in the format of coefs_ and intercepts_; got {found}."
        )
    if not all(np.isfinite(array).all() for array in arrays):
        raise ValueError(f"{name} must be finite; it contains NaN or infinity.")
    return arrays
