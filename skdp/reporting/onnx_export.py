"""Export of fitted models to ONNX, for other languages and devices.

A model of skdp is exported as the scikit-learn model with the released weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import Pipeline

from skdp.base.scikit_learn import fitted_model, last_step

# Options of converters for classifiers; skl2onnx implements them, and refuses others.
_OPTIONS = {
    "zipmap": [True, False, "columns"],
    "output_class_labels": [False, True],
    "nocl": [False],
}


def to_onnx(model: Any, *, dtype: str = "float32") -> Any:
    """Convert a fitted classifier or regressor, or a pipeline that ends in one, to ONNX.

    The file contains only released values: weights, labels and public parameters.

    Parameters
    ----------
    model : estimator, Pipeline or search
        Fitted linear classifier or regressor of skdp, or a network. In a pipeline, it may follow
        `BoundedScaler` and transformers of scikit-learn without leaks (see `privacy_statement`).
    dtype : {"float32", "float64"}, default="float32"
        Type of the input and of the arithmetic of the ONNX model.

    Returns
    -------
    onnx.ModelProto
        Model with the input "X" of shape (rows, features). For classifiers, outputs are the labels
        and the probabilities in the order of ``classes_``. Support vector classifiers have scores
        in that order, -s and s for two classes. For regressors, the output is one column of
        numbers.

    Raises
    ------
    ImportError
        If skl2onnx is not installed: ``pip install 'skdp[onnx]'``.
    TypeError
        If a step has no counterpart in ONNX: the encoder of `TableSchema`, private transformers and
        the variational classifier. The message names the step.
    ValueError
        If a step leaks, if labels are neither strings, 32-bit integers nor booleans, or if the
        output of skl2onnx is not valid ONNX.

    See Also
    --------
    register_onnx_converters : Register skdp's classes with skl2onnx.

    Notes
    -----
    In float32, scores differ by some 1e-7 of their terms. Labels may differ if the two largest
    scores are that close. Booleans are exported as 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import OperaLogisticRegression
    >>> from skdp.reporting import to_onnx
    >>> X = np.tile([[0.6, 0.8], [-0.6, 0.8]], (500, 1))
    >>> model = OperaLogisticRegression(data_norm=1.0).fit(X, X[:, 0] > 0)
    >>> [each.name for each in to_onnx(model).graph.output]
    ['label', 'probabilities']
    """
    try:
        from onnx.checker import check_model
        from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
    except ImportError as error:
        raise ImportError("to_onnx needs skl2onnx: pip install 'skdp[onnx]'.") from error
    kinds = {"float32": FloatTensorType, "float64": DoubleTensorType}
    if dtype not in kinds:
        raise ValueError(f"dtype must be one of {tuple(kinds)}, got {dtype!r}.")
    chosen = _released(model)
    register_onnx_converters(chosen)
    made = _convert(chosen, [("X", kinds[dtype]([None, chosen.n_features_in_]))])
    try:
        check_model(made, full_check=True)
    except Exception as error:
        raise ValueError(
            f"The output of skl2onnx in {dtype} is no valid ONNX: {error}. Try another dtype, or "
            "PolynomialFeatures with include_bias=False."
        ) from error
    return made


def register_onnx_converters(*models: Any) -> None:
    """Register the skdp classes of models with skl2onnx, for its functions such as ``to_onnx``.

    The functions of skl2onnx do not check for steps that leak private rows. This function warns of
    such steps; `to_onnx` of this library refuses them.

    Parameters
    ----------
    *models : estimators, pipelines or searches
        Models to convert; for a search, its ``best_estimator_`` is used. Registration lasts for
        this process. The options "zipmap" and "output_class_labels" are supported; skl2onnx raises
        a NameError for others.

    Raises
    ------
    ImportError
        If skl2onnx is not installed: ``pip install 'skdp[onnx]'``.
    TypeError
        If a class has no counterpart in ONNX. The message names it.

    Examples
    --------
    >>> import numpy as np
    >>> import skl2onnx
    >>> from skdp import OperaLogisticRegression
    >>> from skdp.reporting import register_onnx_converters
    >>> X = np.tile([[0.6, 0.8], [-0.6, 0.8]], (500, 1))
    >>> model = OperaLogisticRegression(data_norm=1.0).fit(X, X[:, 0] > 0)
    >>> register_onnx_converters(model)
    >>> [each.name for each in skl2onnx.to_onnx(model, X[:1]).graph.output]
    ['output_label', 'output_probability']
    """
    try:
        from skl2onnx import update_registered_converter
    except ImportError as error:
        raise ImportError(
            "register_onnx_converters needs skl2onnx: pip install 'skdp[onnx]'."
        ) from error
    from skdp.reporting.leaks import warn_of_leaks

    for model in models:
        warn_of_leaks(model)
        chosen = fitted_model(model)
        for part in (chosen, *chosen.get_params(deep=True).values()):
            kind = type(part)
            ours = any(base.__module__.startswith("skdp.") for base in kind.__mro__)
            if not ours or not hasattr(part, "get_params"):
                continue
            # A third-party subclass may predict differently.
            if not hasattr(kind, "_as_sklearn") or not kind.__module__.startswith("skdp."):
                raise TypeError(
                    f"{kind.__name__} has no counterpart in ONNX. Apply it first, and export the "
                    "steps after it, as in to_onnx(pipeline[-1])."
                )
            update_registered_converter(
                kind,
                f"Skdp{kind.__name__}",
                _set_types,
                _put_counterpart,
                options=_OPTIONS if is_classifier(part) else None,
            )


def _convert(model: Any, inputs: list[Any], opset: Any = None) -> Any:
    """Return a fitted estimator as an ONNX model with an array of probabilities."""
    from skl2onnx import convert_sklearn

    return convert_sklearn(
        model,
        name="skdp",
        initial_types=inputs,
        target_opset=opset,
        options={id(last_step(model)): {"zipmap": False}} if is_classifier(model) else None,
    )


def _set_types(operator: Any) -> None:
    """Set types and shapes of the outputs of a skdp estimator, for skl2onnx."""
    from skl2onnx.common import shape_calculator

    model = operator.raw_operator
    if is_classifier(model):
        _check_labels(model.classes_)
        shape_calculator.calculate_linear_classifier_output_shapes(operator)
    elif is_regressor(model):
        shape_calculator.calculate_linear_regressor_output_shapes(operator)
    else:
        n_rows = operator.inputs[0].get_first_dimension()
        operator.outputs[0].type.shape = [n_rows, model.n_features_in_]


def _put_counterpart(scope: Any, operator: Any, container: Any) -> None:
    """Replace a skdp estimator by its scikit-learn counterpart, for skl2onnx."""
    from skl2onnx.helpers import add_onnx_graph

    inputs = [(each.onnx_name, each.type) for each in operator.inputs]
    counterpart = operator.raw_operator._as_sklearn()
    made = _convert(counterpart, inputs, container.target_opset_all)
    for node in made.graph.node:  # names of added nodes may be taken
        node.name = f"{operator.full_name}_{node.name}"
    add_onnx_graph(scope, operator, container, made)


def _released(model: Any) -> Any:
    """Return the fitted model that predicts, or refuse it if a part leaks."""
    # Loads all of scikit-learn's preprocessing.
    from sklearn.utils.validation import check_is_fitted

    from skdp.reporting._examine import examine

    check_is_fitted(model)
    for finding in examine(model, "estimator"):
        if finding.kind == "leaking":
            raise ValueError(f"{finding.name} leaks private rows: {finding.remedy}")
    chosen = fitted_model(model)
    if not is_classifier(chosen) and not is_regressor(chosen):
        raise TypeError(f"{type(chosen).__name__} is neither a classifier nor a regressor.")
    if not isinstance(chosen, Pipeline):
        return chosen
    # skl2onnx does not support steps that are None or "passthrough".
    return Pipeline([each for each in chosen.steps if each[1] not in (None, "passthrough")])


def _check_labels(labels: np.ndarray) -> None:
    texts = all(isinstance(label, str) for label in labels)
    if not texts and np.asarray(labels).dtype.kind not in "biu":
        raise ValueError("labels must be strings, integers or booleans for ONNX.")
    if not texts and any(not -(2**31) <= int(label) < 2**31 for label in labels):
        raise ValueError("integer labels must fit 32 bits: skl2onnx wraps others round.")
