"""Privacy statements, model cards, privacy curves, coefficient tables and ONNX export."""

from skdp.accounting.privacy_spent import PrivacySpent
from skdp.reporting.coefficients import CoefficientDisplay, coefficient_table
from skdp.reporting.estimates import CoefficientIntervals
from skdp.reporting.model_card import model_card
from skdp.reporting.onnx_export import register_onnx_converters, to_onnx
from skdp.reporting.privacy_curve import PrivacyCurveDisplay
from skdp.reporting.statement import PrivacyStatement, privacy_statement

__all__ = [
    "CoefficientDisplay",
    "CoefficientIntervals",
    "PrivacyCurveDisplay",
    "PrivacySpent",
    "PrivacyStatement",
    "coefficient_table",
    "model_card",
    "privacy_statement",
    "register_onnx_converters",
    "to_onnx",
]
