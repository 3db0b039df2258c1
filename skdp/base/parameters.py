"""Parameters as plain Python values, their choices as types, declared once and checked."""

from __future__ import annotations

import inspect
import math
import numbers
import operator
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import MISSING, Field, dataclass, field
from functools import wraps
from typing import Any, ClassVar, Generic, Literal, TypeVar, dataclass_transform

import numpy as np

Activation = Literal["relu", "tanh", "identity"]
Adjacency = Literal["add-remove", "replace-one"]
Aggregation = Literal["gaussian", "laplace", "confident-gaussian"]
Attack = Literal["loss", "likelihood-ratio"]
AuditMethod = Literal["gaussian-dp", "clopper-pearson"]
Auto = Literal["auto"]
AutoOrAdaptive = Literal["auto", "adaptive"]
AxisScale = Literal["linear", "log"]
Bounding = Literal["clip", "scale"]
Calibrate = Literal["auto", "private"]
CalibrationMethod = Literal["sigmoid", "temperature"]
CategoryEncoding = Literal["centred", "one-hot"]
Clipping = Literal["flat", "per-layer", "normalize"]
Composition = Literal["auto", "mixed", "gdp", "zcdp", "rdp", "basic", "approx"]
Conversion = Literal["chernoff", "improved"]
CountMechanism = Literal["auto", "laplace", "gaussian"]
CountNoise = Literal["laplace", "discrete"]
DateEncoding = Literal["auto", "scaled", "waves"]
DatePart = Literal["year", "month", "weekday", "hour", "days"]
DatasetName = Literal["adult", "bank", "breast_cancer", "cardio", "heart", "support2"]
GroupedBy = Literal["subgroup", "label"]
LearningRate = Literal["constant", "linear", "cosine"]
HingeLoss = Literal["hinge"]
ListedMissing = Literal["indicator", "ignore", "refuse"]
Lots = Literal["poisson", "allocation"]
MeanTerm = Literal["tanh", "printed", "squared"]
Missing = Literal["refuse", "ignore", "indicator", "fill"]
NoiseCalibration = Literal["pld", "composition", "hidden-state"]
NoiseKind = Literal["gaussian", "any"]
NumberEncoding = Literal["auto", "scaled", "steps", "cells", "waves", "scaled+steps"]
Numerics = Literal["float", "discrete"]
OnFail = Literal["raise"]
OtherColumns = Literal["raise", "ignore"]
OneRunMethod = Literal["f-dp", "binomial", "gaussian"]
PrintedMeanTerm = Literal["tanh", "printed"]
RegressionLoss = Literal["squared_error", "huber", "pseudo_huber", "quantile", "poisson"]
Release = Literal["model", "all"]
ResidualLoss = Literal["huber"]
ResponseMethod = Literal["predict", "predict_proba", "decision_function"]
SampledGdp = Literal["refuse", "clt"]
SampledNoiseCalibration = Literal["pld", "composition"]
Sampling = Literal["poisson", "uniform"]
Scale = Literal["auto", "linear", "sqrt", "log"]
SchemaEncoding = Literal["auto", "declared"]
SearchMethod = Literal["auto", "random-stopping", "fixed", "holdout", "cv"]
SelectionNoise = Literal["exponential", "laplace", "gumbel"]
SmoothSolver = Literal["newton", "lbfgs"]
Solver = Literal["newton", "lbfgs", "gd"]
StepRule = Literal["constant", "strongly-convex", "convex"]
StepSolver = Literal["sgd", "adam"]
Subsampling = Literal["exact", "printed"]
Subset = Literal["all", "train", "test"]
SumBound = Literal["exact", "union"]
ThresholdMetric = Literal["youden", "f1", "cost"]
Unit = Literal["row", "group", "mixed"]
UnitWeighting = Literal["mean", "random-row", "sum"]
Unknown = Literal["ignore", "indicator", "refuse"]
VariationalPrivacy = Literal["dp-sgd"]


# Noise is drawn up to a tail of mass 1e-280: of a smaller delta not all would be left for it.
SMALLEST_DELTA = 1e-250
PURE_OFFERS = (
    "delta=0 is offered by ObjectivePerturbationLogisticRegression, ObjectivePerturbationSVC, "
    "ObjectivePerturbationHuberRegressor, OperaLogisticRegression, OperaHuberRegressor and "
    "OperaSVC, and by the counts and histograms of skdp.statistics."
)

Target = TypeVar("Target", bound=Callable[..., Any])


def plain(value: Any) -> Any:
    """Return a number as a plain Python one, also inside lists; anything else unchanged.

    numpy computes with its scalars in their own precision: float16 loses digits of a sensitivity,
    and the square of an ``int8`` is taken modulo 256.
    """
    if type(value) in (list, tuple, dict):
        entries = list(value.items()) if type(value) is dict else list(value)
        changed = [plain(entry) for entry in entries]
        same = all(new is old for new, old in zip(changed, entries, strict=True))
        return value if same else type(value)(changed)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return value.astype(np.float64, copy=False)
    if isinstance(value, bool) or not isinstance(value, numbers.Real | np.bool_ | np.str_):
        return value
    if isinstance(value, np.bool_ | np.str_):
        return value.item()
    try:
        return int(value) if isinstance(value, numbers.Integral) else float(value)
    except OverflowError:
        return value


def plain_arguments(target: Target) -> Target:
    """Decorate a function, or a class and its constructor, to receive plain numbers only."""
    if isinstance(target, type):
        target.__init__ = plain_arguments(target.__init__)  # type: ignore[misc]
        return target

    @wraps(target)
    def call(*args: Any, **named: Any) -> Any:
        return target(*map(plain, args), **{name: plain(value) for name, value in named.items()})

    return call  # type: ignore[return-value]


class PlainParameters:
    """Mixin of all estimators here: parameters are stored and read as plain Python values.

    Parameters set by the constructor, by `set_params` or by assignment all pass through it.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value if name.endswith("_") else plain(value))


def parameter(kind: str, text: str, *, default: Any = MISSING, kw_only: bool = True) -> Any:
    """Declare a parameter of an estimator, with its type and its text in numpydoc."""
    return field(default=default, kw_only=kw_only, metadata={"kind": kind, "text": text})


def released(kind: str = "", text: str = "", *, init: Literal[False] = False) -> Any:
    """Declare an attribute that a fit sets; without a text it is not shown."""
    return field(init=init, metadata={"kind": kind, "text": text})


@dataclass_transform(kw_only_default=True, field_specifiers=(parameter, released))
class DeclaredParameters(PlainParameters):
    """Base whose classes declare parameters and released attributes once, where they are used.

    Constructor, signature and the sections of the docstring follow from the declarations.
    """

    # Sentences that a class adds to texts of its bases.
    _added_texts: ClassVar[dict[str, str]] = {}
    # The order in which parameters and attributes are listed; others come last.
    _listed: ClassVar[tuple[str, ...]] = ()
    # What a class declares itself, by name; None where it has something else of that name.
    _own_fields: ClassVar[dict[str, tuple[Any, Field[Any]] | None]] = {}
    _declared: ClassVar[dict[str, Field[Any]]] = {}
    _constructor_follows: ClassVar[bool] = False  # from declarations, of a class's own

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # A constructor that was written by hand, here or in a base, stays.
        made_by = next(base for base in cls.__mro__ if "__init__" in vars(base))
        by_hand = not (made_by is object or vars(made_by).get("_constructor_follows", False))
        cls._constructor_follows = not by_hand
        annotations = _annotations(cls)
        cls._own_fields = {
            name: (annotations[name], value) if isinstance(value, Field) else None
            for name, value in vars(cls).items()
        }
        # Bases share bases, whose fields dataclasses would take in another order than Python does.
        found: dict[str, tuple[Any, Field[Any]] | None] = {}
        for base in reversed(cls.__mro__):
            found |= vars(base).get("_own_fields", {})
        kinds, declared = {}, {}
        for name, own in found.items():
            if own is not None:
                kinds[name], declared[name] = own[0], copy(own[1])
                setattr(cls, name, declared[name])
            elif any(name in vars(base).get("_declared", {}) for base in cls.__mro__):
                kinds[name] = ClassVar  # hidden
        cls._declared = declared
        cls.__annotations__ = kinds
        dataclass(init=not by_hand, eq=False, repr=False, match_args=False)(cls)
        cls.__annotations__ = annotations
        if not by_hand:
            _order_signature(cls)
        doc = vars(cls).get("__doc__")
        if doc and re.search(r"^ *-{4,}$", doc, re.MULTILINE) and "Parameters\n" not in doc:
            cls.__doc__ = _with_sections(cls, inspect.cleandoc(doc))


def _annotations(cls: type) -> dict[str, Any]:
    if sys.version_info < (3, 14):
        return inspect.get_annotations(cls)
    import annotationlib  # type: ignore[import-not-found]

    return annotationlib.get_annotations(cls, format=annotationlib.Format.FORWARDREF)


def _rank(cls: type[DeclaredParameters]) -> Callable[[str], int]:
    places = {name: place for place, name in enumerate(cls._listed)}
    return lambda name: places.get(name, len(places))


def _order_signature(cls: type[DeclaredParameters]) -> None:
    """List keyword parameters in the order of the family, whichever class declares them."""
    signature = inspect.signature(cls.__init__)
    rank = _rank(cls)
    ordered = sorted(
        signature.parameters.values(),
        key=lambda own: (own.kind, own.name != "self", rank(own.name)),
    )
    cls.__init__.__signature__ = signature.replace(parameters=ordered)  # type: ignore[attr-defined]


def _with_sections(cls: type[DeclaredParameters], doc: str) -> str:
    """Return a docstring with the sections derived from a class's declarations."""
    added: dict[str, list[str]] = {}
    for base in reversed(cls.__mro__):
        for name, text in vars(base).get("_added_texts", {}).items():
            added.setdefault(name, []).append(text)
    fields = cls._declared
    names = [name for name in inspect.signature(cls).parameters if name in fields]
    rank = _rank(cls)
    attributes = sorted((name for name in fields if not fields[name].init), key=rank)
    sections = []
    for title, listed in (("Parameters", names), ("Attributes", attributes)):
        entries = [_entry(fields[name], added.get(name, [])) for name in listed]
        if shown := "\n".join(entry for entry in entries if entry):
            sections.append(f"{title}\n{'-' * len(title)}\n{shown}\n")
    first = re.search(r"^\S.*\n-{4,}$", doc, re.MULTILINE)
    at = len(doc) if first is None else first.start()
    return f"{doc[:at]}{chr(10).join(sections)}\n{doc[at:]}"


def _entry(declared: Field[Any], added: list[str]) -> str:
    """Return the numpydoc lines of declarations; those without a text have none."""
    if not declared.metadata.get("text"):  # or by dataclasses alone
        return ""
    has_default = declared.init and declared.default is not MISSING
    default = f", default={_shown(declared.default)}" if has_default else ""
    text = " ".join([inspect.cleandoc(declared.metadata["text"]), *added])
    body = textwrap.fill(text, 96, break_long_words=False, break_on_hyphens=False)
    return (
        f"{declared.name} : {declared.metadata['kind']}{default}\n{textwrap.indent(body, '    ')}"
    )


def _shown(default: Any) -> str:
    text = f'"{default}"' if isinstance(default, str) else repr(default)
    if isinstance(default, float) and abs(default) >= 1e6:
        text = f"{default:g}"
    return text.replace("e-0", "e-").replace("e+", "e")


def check_real(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    allowed: Sequence[str | None] = (),
    remedy: str = "",
) -> Any:
    """Refuse values other than finite real numbers in range and `allowed`; return a plain float.

    Limits `above` and `below` are exclusive; `remedy` is appended to the message.
    """
    if _is_special(value, allowed):
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(
            f"{name} must be a real number{_or_special(allowed)}, got {value!r}. {remedy}".rstrip()
        )
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    limits = [
        (words, limit, holds)
        for words, limit, holds in (
            ("greater than", above, operator.gt),
            ("at least", at_least, operator.ge),
            ("at most", at_most, operator.le),
            ("less than", below, operator.lt),
        )
        if limit is not None
    ]
    if not (math.isfinite(number) and all(holds(number, limit) for _, limit, holds in limits)):
        listed = " and ".join(["finite", *(f"{words} {limit:g}" for words, limit, _ in limits)])
        raise ValueError(
            f"{name} must be {listed}{_or_special(allowed)}, got {value!r}. {remedy}".rstrip()
        )
    return number


def check_integer(
    name: str,
    value: Any,
    *,
    at_least: int = 0,
    allowed: Sequence[str | None] = (),
    remedy: str = "",
) -> Any:
    """Refuse a parameter that is not an integer of at least a given size; return a plain one.

    Parameters and errors are those of :func:`check_real`.
    """
    if _is_special(value, allowed):
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(
            f"{name} must be an integer{_or_special(allowed)}, got {value!r}. {remedy}".rstrip()
        )
    if value < at_least:
        raise ValueError(
            f"{name} must be at least {at_least}{_or_special(allowed)}, "
            f"got {value!r}. {remedy}".rstrip()
        )
    return int(value)


def check_bounds(name: str, bounds: Any) -> tuple[float, float]:
    """Refuse values other than a pair (low, high) of public bounds; return plain floats."""
    remedy = "It is a public pair, not from the table, and values beyond it are clipped."
    if not (isinstance(bounds, Sequence | np.ndarray) and np.shape(bounds) == (2,)):
        raise ValueError(f"{name} must be (low, high), got {bounds!r}. {remedy}")
    low, high = (check_real(name, bound, remedy=remedy) for bound in bounds)
    if not (low < high and math.isfinite(high - low) and math.isfinite(1.0 / (high - low))):
        raise ValueError(f"{name} must have low < high, got {bounds!r}. {remedy}")
    return low, high


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Refuse a parameter that is not one of the given choices."""
    given = plain(value)
    if not any(type(given) is type(choice) and given == choice for choice in choices):
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}; got {value!r}.")


def _is_special(value: Any, allowed: Sequence[str | None]) -> bool:
    return (value is None and None in allowed) or (isinstance(value, str) and value in allowed)


def _or_special(allowed: Sequence[str | None]) -> str:
    return "".join(f" or {value!r}" for value in allowed)


Value = TypeVar("Value")


class cached_property(Generic[Value]):  # noqa: N801
    """`functools.cached_property` without Python 3.11's lock, which a fork may copy held."""

    def __init__(self, function: Callable[[Any], Value]) -> None:
        self._function, self.__doc__ = function, function.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Value:
        if instance is None:
            return self  # type: ignore[return-value]
        return instance.__dict__.setdefault(self._function.__name__, self._function(instance))
