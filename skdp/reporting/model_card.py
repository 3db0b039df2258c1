"""Model cards with the privacy guarantee in them."""

from __future__ import annotations

from typing import Any

from skdp.accounting.records import safe_text
from skdp.reporting.statement import privacy_statement


def model_card(fitted: Any, *, unit: Any = None, rows_per_unit: int | None = None) -> Any:
    """Return a model card with the privacy sections of the privacy statement.

    Other sections are left to you: describe purpose, data and limits with the card's ``add``.
    Performance results would cost budget (see `PrivateEvaluation`). A diagram or a table of
    parameters may name the ledger, files and seeds; therefore the card does not contain the model.
    Its ``repr`` shows everything that it publishes.

    Parameters
    ----------
    fitted : estimator, Pipeline or search
        Fitted object, as in `privacy_statement`, with ``get_params``.
    unit : str, PrivacyUnit or None, default=None
        Unit that the guarantee protects, as in `privacy_statement`.
    rows_per_unit : int or None, default=None
        Public bound on the number of rows of one unit, as in `privacy_statement`.

    Returns
    -------
    skops.card.Card
        Card with the text ``card.render()``; ``card.save("README.md")`` writes it.

    Raises
    ------
    ImportError
        If skops is not installed: ``pip install 'skdp[card]'``.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import OperaLogisticRegression
    >>> from skdp.reporting import model_card
    >>> X = np.tile([[0.6, 0.8], [-0.6, 0.8]], (500, 1))
    >>> card = model_card(OperaLogisticRegression(data_norm=1.0).fit(X, X[:, 0] > 0))
    >>> print(card.select("Privacy/Guarantee").content.split(":")[0])
    (epsilon = 1, delta = 1e-06)-differential privacy under replace-one
    """
    try:
        from skops.card import Card
    except ImportError as error:
        raise ImportError("model_card needs skops: pip install 'skdp[card]'.") from error
    statement = privacy_statement(fitted, unit=unit, rows_per_unit=rows_per_unit)
    record = statement.to_dict()
    card = Card(None, template=None, model_diagram=False)
    library = ", ".join(f"{name} {version}" for name, version in record["library"].items())
    return card.add(
        **{
            "Model description": f"A {record['subject']}, made on {record['date']} with {library}.",
            "Privacy": "",
            "Privacy/Guarantee": _guarantee(record),
            "Privacy/Released": _listed(record["released"]),
            "Privacy/Assumptions": _listed(record["assumptions"]),
            "Privacy/Limits": _listed(record["not_covered"]),
            "Privacy/Statement": f"```\n{statement}\n```",
        }
    )


def _guarantee(record: dict[str, Any]) -> str:
    known = record["guarantee"]
    if known is None or not record["holds_for_the_whole"]:
        return "There is no guarantee for the whole object: see the statement below for the reason."
    lines = [
        f"(epsilon = {known['epsilon']:.6g}, delta = {known['delta']:.6g})-differential privacy "
        f"under {known['adjacency']}: {known['neighbours']}.",
        f"Unit of privacy: one {known['unit']}.",
        f"Accounting: {known['accountant']}.",
    ]
    if "of_the_unit" in known:
        whole = known["of_the_unit"]
        lines[1] = (
            f"Unit of privacy: one {known['unit']} with at most {known['rows_per_unit']} rows, for "
            f"which epsilon = {whole['epsilon']:.6g} and delta = {whole['delta']:.6g}."
        )
    if record["seeded"]:
        lines.append(f"Randomness: {record['randomness']}.")
    return "\n\n".join(lines)


def _listed(items: list[str]) -> str:
    return "\n".join(f"- {safe_text(item)}" for item in items)
