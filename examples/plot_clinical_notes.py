"""
Classify clinical notes with a public vocabulary
================================================

Which notes describe heart failure? A linear model of weighted word counts answers this well. It
is private only if the weighting is public. A vocabulary learned from private notes contains every
name in them, and inverse document frequencies are counts of private notes. This page uses a fixed
list of words, and frequencies of public notes.

All notes are made up. Fresh notes for the test need no budget.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from skdp import ObjectivePerturbationLogisticRegression
from skdp.reporting import coefficient_table, privacy_statement

DELTA, ROWS, SEED = 1e-6, 5000, 0

# %%
# Make notes
# ----------

FINDINGS = {
    "leg oedema": 2.0,
    "orthopnoea": 2.2,
    "raised jugular pressure": 2.4,
    "crackles at both bases": 1.3,
    "breathless on exertion": 1.0,
    "atrial fibrillation": 0.7,
    "weight gain": 0.6,
    "fever": -0.9,
    "productive cough": -0.6,
    "wheeze": -0.8,
    "chest pain": 0.0,
    "headache": -0.2,
    "back pain": -0.3,
    "diabetes": 0.3,
    "hypertension": 0.4,
    "smoker": 0.0,
}
SAYS = ("seen with {}", "reports {}", "history of {}", "today {}", "no change in {}", "known {}")


def write_notes(n, seed):
    """Return notes of three to seven findings each, and labels (1 is heart failure)."""
    rng = np.random.default_rng(seed)
    names, weights = list(FINDINGS), np.array(list(FINDINGS.values()))
    notes, score = [], np.empty(n)
    for i in range(n):
        chosen = rng.choice(len(names), size=rng.integers(3, 8), replace=False)
        score[i] = weights[chosen].sum() - 2.0
        notes.append(". ".join(rng.choice(SAYS).format(names[k]) for k in chosen))
    return notes, (score + rng.logistic(size=n) > 0.0).astype(int)


notes, y = write_notes(ROWS, SEED)
new_notes, y_new = write_notes(10_000, SEED + 1)
public_notes, _ = write_notes(2000, SEED + 2)
print(notes[0])

# %%
# Find a leak in a learned vocabulary
# -----------------------------------
#
# One note contains a surname, and the surname becomes an attribute of the model. The privacy
# statement reports the step as leaking, and a private search refuses it.

careless = TfidfVectorizer().fit([*notes, "seen with mrs featherstonehaugh, reports wheeze"])
print("the name is in the vocabulary:", "featherstonehaugh" in careless.vocabulary_)
leaking = make_pipeline(
    TfidfVectorizer(), ObjectivePerturbationLogisticRegression(1.0, DELTA, data_norm=1.0)
)
leaking.fit(notes, y)
print("\n".join(str(privacy_statement(leaking)).splitlines()[2:4]))

# %%
# Use weights that learn nothing from private notes
# -------------------------------------------------
#
# Three weightings are compared:
#
# * a fixed vocabulary without document frequencies;
# * the same vocabulary with frequencies of public notes;
# * hashed words, which need no vocabulary.
#
# Each row depends only on its note and has norm 1, which is the public bound that the fit needs.
#
# A ``TfidfVectorizer`` with frequencies is fitted to public notes **first** and stays outside the
# pipeline, because the ``fit`` of a pipeline would learn the frequencies again. The statement
# reports every ``TfidfVectorizer`` inside a pipeline as leaking, for all parameters. It recognises
# that a ``HashingVectorizer`` learns nothing.

VOCABULARY = sorted({word for name in FINDINGS for word in name.split() if len(word) > 3})
VECTORIZERS = {
    "fixed vocabulary": TfidfVectorizer(vocabulary=VOCABULARY, use_idf=False).fit(public_notes),
    "fixed, public idf": TfidfVectorizer(vocabulary=VOCABULARY).fit(public_notes),
    "hashed words": HashingVectorizer(n_features=2**9, alternate_sign=False),
}
EPSILONS = (0.1, 0.3, 1.0, 3.0)


def fit(vectorizer, epsilon, seed=SEED):
    model = ObjectivePerturbationLogisticRegression(
        epsilon, DELTA, data_norm=1.0, classes=[0, 1], random_state=seed
    )
    return model.fit(vectorizer.transform(notes), y)


areas = {}
print(f"{'ROC AUC, epsilon':18s}", *(f"{epsilon:>6g}" for epsilon in EPSILONS))
for name, vectorizer in VECTORIZERS.items():
    rows = vectorizer.transform(new_notes)
    areas[name] = [
        np.mean(
            [
                roc_auc_score(y_new, fit(vectorizer, epsilon, seed).decision_function(rows))
                for seed in range(3)
            ]
        )
        for epsilon in EPSILONS
    ]
    print(f"{name:18s}", *(f"{area:6.3f}" for area in areas[name]))

# %%
# Plot the words with the largest weights
# ---------------------------------------
#
# Weights are released, and so is the list of words. Bars show the standard deviation of the privacy
# noise, which is an upper bound for objective perturbation.

words = VECTORIZERS["fixed vocabulary"]
table = coefficient_table(fit(words, 1.0))
names = np.array([*words.get_feature_names_out(), "(intercept)"])
order = np.argsort(table["value"][:-1])
shown = [*order[:6], *order[-8:]]

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.9), layout="constrained")
for (name, found), style in zip(areas.items(), ("ko-", "ks--", "k^:"), strict=True):
    left.plot(EPSILONS, found, style, label=name)
left.set(xscale="log", xlabel="epsilon", ylabel="ROC AUC on fresh notes")
left.set_xticks(EPSILONS, EPSILONS)
left.minorticks_off()
left.legend()
right.barh(
    names[shown], table["value"][shown], xerr=table["noise_std"][shown], color="0.7", capsize=2
)
right.set(xlabel="weight at epsilon 1, with the deviation of its noise", ylabel="word")
plt.show()
