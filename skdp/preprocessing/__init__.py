"""Preprocessing with public numbers and no privacy cost, or learned from rows with noise."""

from skdp.preprocessing.bounded_scaler import BoundedScaler, RowNormClipper
from skdp.preprocessing.dp_pca import DPPCA
from skdp.preprocessing.dp_quantile_clipper import DPQuantileClipper
from skdp.preprocessing.dp_standard_scaler import DPStandardScaler
from skdp.preprocessing.images.patches import PublicPatches
from skdp.preprocessing.images.scattering import ScatteringTransform
from skdp.preprocessing.schema.columns import IgnoredColumn, Interaction, NumericColumn
from skdp.preprocessing.schema.dates import DateColumn, DaysBetweenColumn, days_between
from skdp.preprocessing.schema.encoder import SchemaEncoder
from skdp.preprocessing.schema.label import LabelColumn, NumericLabel, PrivacyUnit
from skdp.preprocessing.schema.lists import BooleanColumn, CategoricalColumn, OrdinalColumn
from skdp.preprocessing.schema.table import TableSchema

__all__ = [
    "DPPCA",
    "BooleanColumn",
    "BoundedScaler",
    "CategoricalColumn",
    "DPQuantileClipper",
    "DPStandardScaler",
    "DateColumn",
    "DaysBetweenColumn",
    "IgnoredColumn",
    "Interaction",
    "LabelColumn",
    "NumericColumn",
    "NumericLabel",
    "OrdinalColumn",
    "PrivacyUnit",
    "PublicPatches",
    "RowNormClipper",
    "ScatteringTransform",
    "SchemaEncoder",
    "TableSchema",
    "days_between",
]
