"""Hypothesis strategies: columns of every kind and encoding, and schemas of them."""

from hypothesis import strategies as st

from skdp.preprocessing import (
    BooleanColumn,
    CategoricalColumn,
    IgnoredColumn,
    LabelColumn,
    NumericColumn,
    OrdinalColumn,
    PrivacyUnit,
    TableSchema,
)

text = st.text(max_size=8)
number = st.one_of(st.integers(-(2**60), 2**60), st.floats(allow_nan=False, allow_infinity=False))
values = st.lists(st.one_of(text, number), min_size=2, max_size=5, unique_by=lambda v: v)
LISTED = {"categorical": CategoricalColumn, "ordinal": OrdinalColumn, "boolean": BooleanColumn}
LABELS = [
    None,
    LabelColumn("y", [0, 1], values=[["no", 0], [1, 2]]),
    *(
        LabelColumn("y", classes, prevalence=dict(zip(reversed(classes), [0.3, 0.7], strict=True)))
        for classes in ([0, 1], [False, True], ["no", "yes"], [0.5, 1e22])
    ),
]


@st.composite
def columns(draw, name, refuses):
    """Draw a column; where none refuses a cell, each has features."""
    kind = draw(st.sampled_from(["numeric", *LISTED, *(["ignored"] if refuses else [])]))
    words = {"description": draw(text)}
    if kind == "ignored":
        return IgnoredColumn(name, **words)
    policies = ["ignore", "indicator", "fill", *(["refuse"] if refuses else [])]
    words["source"], words["missing"] = draw(text), draw(st.sampled_from(policies))
    words["weight"] = draw(st.floats(1e-6, 1e6))
    if kind == "numeric":
        return draw(numeric_columns(name, words))
    listed = draw(values)
    words["fill_value"] = listed[0] if words["missing"] == "fill" else None
    words["unknown"] = draw(st.sampled_from([p for p in policies if p != "fill"]))
    if kind == "categorical":
        words["drop"] = draw(st.sampled_from([None, "first", listed[-1]]))
    return LISTED[kind](name, listed[:2] if kind == "boolean" else listed, **words)


@st.composite
def numeric_columns(draw, name, words):
    low, high = sorted(draw(st.tuples(number, number)))
    if not 1e-6 * max(abs(low), abs(high)) < float(high) - float(low) < float("inf"):
        low, high = 1, 2
    scales = ["auto", "linear", *(["sqrt", "log"] if 1e-3 < low else [])]
    cuts = sorted(draw(st.lists(number, max_size=3, unique_by=float)))
    spikes = draw(st.sampled_from([None, [1, 2.5]]))
    encodings = ["auto", "waves", *(["scaled"] if spikes is None else [])]
    encodings += ["steps", "cells", "scaled+steps"] if cuts and spikes is None else []
    return NumericColumn(
        name,
        low,
        high,
        cuts=cuts,
        spikes=spikes,
        scale=draw(st.sampled_from(scales)),
        encoding=draw(st.sampled_from(encodings)),
        unit=draw(text),
        fill_value=draw(number) if words["missing"] == "fill" else None,
        **words,
    )


@st.composite
def schemas(draw, refuses=True):
    drawn = [draw(columns(f"column {j}", refuses)) for j in range(draw(st.integers(1, 4)))]
    names = [column.name for column in drawn if column.is_feature]
    return TableSchema(
        drawn,
        interactions=draw(st.sampled_from([[], [names[:2]]])) if len(names) > 1 else (),
        label=draw(st.sampled_from(LABELS)),
        unit=draw(st.sampled_from([PrivacyUnit(), PrivacyUnit("visit", 4, "id")])),
        name=draw(text),
        clip_norm=draw(st.one_of(st.none(), st.floats(1e-3, 1e3))),
    )
