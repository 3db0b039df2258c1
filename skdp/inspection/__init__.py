"""Inspection of private linear models as sums of functions of single columns."""

from skdp.inspection.displays import ShapeFunctionDisplay
from skdp.inspection.functions import ShapeFunction, ShapeFunctions, shape_functions
from skdp.inspection.reshape import reshape_functions

__all__ = [
    "ShapeFunction",
    "ShapeFunctionDisplay",
    "ShapeFunctions",
    "reshape_functions",
    "shape_functions",
]
