"""Model cards with the privacy guarantee in them."""

from __future__ import annotations

from typing import Any

from skdp.accounting.records import safe_text
from skdp.reporting.statement import privacy_statement


def model_card(fitted: Any, *, unit: Any = None, rows_per_unit: int | None = None) -> Any:
    """Return a model card whose privacy fields are filled in from the privacy statement.

    Nothing else is filled in: no figure of performance, which would cost (`PrivateEvaluation`
    releases some), and no diagram or table of parameters, which may name the ledger, other files
    and seeds. The card does not hold the model for that reason, so that skops adds none either, and
    its ``repr`` shows what is published. Add what the card is to say of purpose, data and limits
    with skops' ``add``.

    Parameters
    ----------
    fitted : estimator, Pipeline or search
        What `privacy_statement` takes, with ``get_params``.
    unit : str, PrivacyUnit or None, default=None
        Whom the guarantee is to protect, as in `privacy_statement`.
    rows_per_unit : int or None, default=None
        Public bound on the rows of one unit, as in `privacy_statement`.

    Returns
    -------
    skops.card.Card
        ``card.render()`` is its text, ``card.save("README.md")`` writes it.

    Raises
    ------
    ImportError
        If skops is missing: ``pip install 'skdp[card]'``.

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
        return "There is no guarantee for the whole: the statement below says which part leaks."
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
