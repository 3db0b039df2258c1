"""Scores and labels of real models, as populations to draw samples from."""

from typing import Any

import numpy as np
from _datasets import data_directory, load_adult, load_bank, load_cardio
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from skdp import ObjectivePerturbationLogisticRegression

VITALS = "age num.co meanbp hrt resp temp scoma crea sod wblc alb bili pafi".split()


def populations() -> dict[str, Any]:
    """Return scores, labels, and the values that scores can take where they are few."""
    rng, found = np.random.default_rng(0), {}
    adult = load_adult()
    private = ObjectivePerturbationLogisticRegression(
        1.0, 1e-6, data_norm=adult.data_norm, random_state=0
    )
    tree = DecisionTreeClassifier(max_depth=4, random_state=0)
    for name, model in (("Adult", private), ("tree", tree)):
        scores = model.fit(adult.X, adult.y).predict_proba(adult.X_test)[:, 1]
        found[name] = scores, adult.y_test, np.unique(scores) if name == "tree" else None
    for name, load, model in (
        ("Bank", load_bank, LogisticRegression(max_iter=300)),
        ("Cardio", load_cardio, HistGradientBoostingClassifier(random_state=0)),
    ):
        X, y, X_test, y_test = next(load().splits(1))
        found[name] = model.fit(X, y).predict_proba(X_test)[:, 1], y_test, None
    found["SUPPORT2"] = support2()
    found["ties"] = np.round(20.0 * found["Cardio"][0]) / 20.0, y_test, np.arange(21) / 20.0
    rare = expit(rng.normal(-4.6, 1.2, 400_000))
    found["rare"] = rare, (rng.uniform(size=rare.size) < rare).astype(int), None
    labels = (rng.uniform(size=400_000) < 0.3).astype(int)
    found["perfect"] = expit(rng.normal(5.0 * (2 * labels - 1), 1.0)), labels, None
    return found


def support2() -> tuple[Any, Any, None]:
    """Return deaths in hospital, forecast from vital signs by half of the patients."""
    import pandas as pd

    frame = pd.read_csv(data_directory() / "support2.csv.gz", index_col=0)
    X = ((frame[VITALS] - frame[VITALS].median()) / frame[VITALS].std()).fillna(0).to_numpy()
    y = frame["hospdead"].to_numpy().astype(int)
    model = LogisticRegression().fit(X[::2].clip(-4, 4), y[::2])
    return model.predict_proba(X[1::2].clip(-4, 4))[:, 1], y[1::2], None
