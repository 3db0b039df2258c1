"""
Set one budget for a study
==========================

A hospital publishes a risk model with at most epsilon = 3 for its patients, including the search
for parameters. Every step charges one ledger before it uses rows:

1. A schema describes the table with public knowledge, which needs no budget.
2. A private search compares ways of training, each after private scaling.
3. The final pipeline, scaler and classifier, uses the remaining budget.
4. The data-protection officer receives the statement and the ledger.

The study uses the Cardio table (70,000 patients) if the environment variable SKDP_DATA names a
folder with ``cardio_train.csv``. Otherwise it uses the breast cancer table of scikit-learn, which
shows the privacy cost in a small table. Without matplotlib there is no plot.
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
# Describe the table
# ------------------
#
# The schema contains public facts: columns, units, bounds and labels. Its encoder learns nothing
# from rows. The held-out rows represent public rows, so the accuracy below needs no budget.

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
# Search with a third of epsilon
# ------------------------------
#
# The search divides its epsilon among all fits, their scores and the choice.

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
# Fit the final model with the remaining budget
# ---------------------------------------------
#
# The scaler uses an eighth of the remaining budget, and the classifier uses the rest. One more fit
# is refused before it reads a row.

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
# Hand over the statements and the ledger
# ---------------------------------------
#
# The officer receives the statement of the model, the statement of the study, and the ledger.
# Anyone with the file can verify the ledger.

print(privacy_statement(model, unit=schema.unit))

# %%

print(privacy_statement(budget, unit=schema.unit))

# %%

print(f"ledger verified: {budget.verify()}")
print(f"Look into it with: skdp ledger show {ledger.name}")

# %%
# Plot the privacy curve of the model.

if importlib.util.find_spec("matplotlib"):
    import matplotlib.pyplot as plt

    PrivacyCurveDisplay.from_estimator(model)
    plt.show()
