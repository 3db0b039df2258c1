"""One budget for a whole study: schema, private scaling, search, final model, statement, ledger.

A hospital wants to publish a risk model, and to spend no more than epsilon = 3 on its patients,
the search for good parameters included. Every step charges one ledger before it touches rows:

1. a schema describes the table by public knowledge; that costs nothing;
2. a private search compares ways of training, each after private scaling;
3. the final pipeline, scaler and classifier, takes all that is left;
4. the statement and the ledger go to the data-protection officer.

With the Cardio table at hand (70,000 patients; a folder with ``cardio_train.csv`` in the
environment variable SKDP_DATA) the study runs on it, else on the breast cancer table that ships
with scikit-learn, whose few hundred patients show what small tables cost.

    python examples/plot_hospital_budget.py [picture.png]
"""

import os
import sys
import tempfile
from pathlib import Path

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from skdp import DPSGDClassifier
from skdp.budget import BudgetAccountant, BudgetExceededError
from skdp.datasets import fetch_cardio, load_schema
from skdp.model_selection import PrivateGridSearchCV
from skdp.preprocessing import DPStandardScaler
from skdp.reporting import PrivacyCurveDisplay, privacy_statement

EPSILON, DELTA = 3.0, 1e-5
GRID = {"dpsgdclassifier__max_iter": [50, 150], "dpsgdclassifier__data_norm": [2.0, 4.0]}


def load_table():
    """Return the name of the table, its rows, its labels, its schema and its preprocessing."""
    folder = os.environ.get("SKDP_DATA", "")
    if folder and list(Path(folder).glob("cardio_train.csv*")):
        table = fetch_cardio(path=folder)
        return "Cardio", table.data, table.target, table.schema, table.schema.preprocessor()
    schema = load_schema("breast_cancer")
    X, y = load_breast_cancer(return_X_y=True)
    return "breast cancer", X, y, schema, schema.preprocessor(positions=True)


def choose(X, y, budget):
    """Search with a third of epsilon; what each inner fit may spend is the search's business."""
    candidates = make_pipeline(DPStandardScaler(), DPSGDClassifier())
    search = PrivateGridSearchCV(
        candidates, GRID, epsilon=EPSILON / 3, delta=DELTA / 20, accountant=budget
    )
    return search.fit(X, y).best_params_


def train(encoder, best, classes, X, y, budget):
    """Fit a scaler with an eighth of what is left, and the classifier with all of the rest."""
    scaler = DPStandardScaler(*budget.allocate(fits=8), accountant=budget)
    rows = scaler.fit_transform(encoder.transform(X))
    classifier = DPSGDClassifier(
        *budget.allocate(fits=1), adjacency="replace-one", classes=classes, accountant=budget
    )
    classifier.set_params(**{key.rpartition("__")[2]: value for key, value in best.items()})
    return make_pipeline(encoder, scaler, classifier.fit(rows, y))


def main(picture: str | None = None) -> None:
    name, X, y, schema, encoder = load_table()
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
    ledger = Path(tempfile.mkdtemp()) / "study.ledger"
    budget = BudgetAccountant(EPSILON, DELTA, ledger=ledger, name=f"{name} risk study")
    print(f"{len(X_train)} training rows, {len(schema.features)} columns, {budget!r}")

    best = choose(encoder.fit_transform(X_train), y_train, budget)
    print(f"\nsearch: {best}; spent so far: epsilon {budget.spent()[0]:.3f}")

    model = train(encoder, best, schema.label.classes, X_train, y_train, budget)
    epsilon, delta = budget.spent()
    print(f"final model: test accuracy {model.score(X_test, y_test):.3f}; ", end="")
    print(f"spent in total: epsilon {epsilon:.3f}, delta {delta:.1e}")

    try:
        model[-1].fit(model[:-1].transform(X_train), y_train)
    except BudgetExceededError as refusal:
        print(f"\none more fit is refused: {refusal}")

    print(f"\n{privacy_statement(model, unit=schema.unit)}")
    print(f"\n{privacy_statement(budget, unit=schema.unit)}")
    print(f"\nledger verified: {budget.verify()}")
    print(f"Look into it with: skdp ledger show {ledger}")
    if picture is not None:
        PrivacyCurveDisplay.from_estimator(model).figure_.savefig(picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
