"""
One budget for a whole study
============================

A hospital wants to publish a risk model, and to spend no more than epsilon = 3 on its patients,
the search for good parameters included. Every step charges one ledger before it touches rows:

1. a schema describes the table by public knowledge; that costs nothing;
2. a private search compares ways of training, each after private scaling;
3. the final pipeline, scaler and classifier, takes all that is left;
4. the statement and the ledger go to the data-protection officer.

With the Cardio table at hand (70,000 patients; a folder with ``cardio_train.csv`` in the
environment variable SKDP_DATA) the study runs on it, else on the breast cancer table that ships
with scikit-learn, whose few hundred patients show what small tables cost. Without matplotlib there
is no picture, and all else is the same.
"""

import importlib.util
import os
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

# %%
# The table and its public description
# ------------------------------------
#
# The schema says what everybody may know: columns, units, bounds, labels. Its encoder learns
# nothing from rows. The rows that are held out stand for public ones, so that the accuracy below is
# free.

folder = os.environ.get("SKDP_DATA", "")
if folder and list(Path(folder).glob("cardio_train.csv*")):
    table = fetch_cardio(path=folder)
    name, X, y, schema = "Cardio", table.data, table.target, table.schema
    encoder = schema.preprocessor()
else:
    name, schema = "breast cancer", load_schema("breast_cancer")
    X, y = load_breast_cancer(return_X_y=True)
    encoder = schema.preprocessor(positions=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)

ledger = Path(tempfile.mkdtemp()) / "study.ledger"
budget = BudgetAccountant(EPSILON, DELTA, ledger=ledger, name=f"{name} risk study")
print(f"{len(X_train)} training rows, {len(schema.features)} columns, {budget!r}")

# %%
# A private search with a third of epsilon
# ----------------------------------------
#
# What each inner fit may spend is the search's business: all fits, their scores and the choice are
# within its epsilon.

rows = encoder.fit_transform(X_train)
search = PrivateGridSearchCV(
    make_pipeline(DPStandardScaler(), DPSGDClassifier()),
    {"dpsgdclassifier__max_iter": [50, 150], "dpsgdclassifier__data_norm": [2.0, 4.0]},
    epsilon=EPSILON / 3,
    delta=DELTA / 20,
    accountant=budget,
)
best = search.fit(rows, y_train).best_params_
print(f"\nsearch: {best}; spent so far: epsilon {budget.spent()[0]:.3f}")

# %%
# The final model takes the rest
# ------------------------------
#
# The scaler gets an eighth of what is left, the classifier all that remains then. One more fit is
# refused, before it has read a row.

scaler = DPStandardScaler(*budget.allocate(fits=8), accountant=budget)
rows = scaler.fit_transform(rows)
classifier = DPSGDClassifier(
    *budget.allocate(fits=1),
    adjacency="replace-one",
    classes=schema.label.classes,
    accountant=budget,
)
classifier.set_params(**{key.rpartition("__")[2]: value for key, value in best.items()})
model = make_pipeline(encoder, scaler, classifier.fit(rows, y_train))
epsilon, delta = budget.spent()
print(f"final model: test accuracy {model.score(X_test, y_test):.3f}; ", end="")
print(f"spent in total: epsilon {epsilon:.3f}, delta {delta:.1e}")

try:
    model[-1].fit(rows, y_train)
except BudgetExceededError as refusal:
    print(f"\none more fit is refused: {refusal}")

# %%
# What the officer gets
# ---------------------
#
# The statement of the model, the statement of the whole study, and a ledger that anybody with the
# file can verify.

print(privacy_statement(model, unit=schema.unit))

# %%

print(privacy_statement(budget, unit=schema.unit))

# %%

print(f"ledger verified: {budget.verify()}")
print(f"Look into it with: skdp ledger show {ledger.name}")

# %%
# The curve behind the model's figures.

if importlib.util.find_spec("matplotlib"):
    import matplotlib.pyplot as plt

    PrivacyCurveDisplay.from_estimator(model)
    plt.show()
