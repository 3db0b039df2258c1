"""
Clinical notes: TF-IDF over a fixed vocabulary
==============================================

Which notes speak of heart failure? A linear model of weighted word counts answers that well, and
can be private, if the weighting is: a vocabulary that is learned from notes holds every name that
is in one of them, and inverse document frequencies are counts of private notes. So both have to be
public. Here the vocabulary is a fixed list of words, and the frequencies come from notes that are
nobody's.

All notes are made up by the sentences below. Fresh ones to test on are free.
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
# Notes that are nobody's
# -----------------------

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
    """Return notes of three to seven findings each, and which of them are of heart failure."""
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
# What a learned vocabulary gives away
# ------------------------------------
#
# One note with a surname in it, and the name is an attribute of the model. The privacy statement
# calls the step leaking, and a private search refuses it.

careless = TfidfVectorizer().fit([*notes, "seen with mrs featherstonehaugh, reports wheeze"])
print("the name is in the vocabulary:", "featherstonehaugh" in careless.vocabulary_)
leaking = make_pipeline(
    TfidfVectorizer(), ObjectivePerturbationLogisticRegression(1.0, DELTA, data_norm=1.0)
)
leaking.fit(notes, y)
print("\n".join(str(privacy_statement(leaking)).splitlines()[2:4]))

# %%
# Three weightings that learn nothing from private notes
# ------------------------------------------------------
#
# A fixed vocabulary without document frequencies; the same with frequencies of public notes; and
# hashed words, which need no vocabulary. In all of them a row is a function of its own note, and
# has norm 1, which is the public bound that the fit needs. A ``TfidfVectorizer`` with frequencies
# is fitted to public notes **before** it meets private ones. The ``fit`` of a pipeline would learn
# them again, so that it is kept outside; the statement calls every ``TfidfVectorizer`` inside one
# leaking, whatever its parameters. A ``HashingVectorizer`` learns nothing, which the statement
# knows.

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
# The words that count
# --------------------
#
# Weights are released, so that the list of words is as well. Bars are the standard deviation of the
# privacy noise, an upper bound for objective perturbation.

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
