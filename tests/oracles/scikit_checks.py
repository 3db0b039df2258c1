"""Which of scikit-learn's checks are worth running again on another setting of a class."""

import functools

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

# These ask for accuracy, or compare numbers of fitted models, which noise, epsilon and the method
# decide. The others look at names, tags, parameters, shapes and errors: the code that answers them
# stands in the bases and runs before the noise, so that one setting of each class answers for all.
OF_NUMBERS = frozenset(
    {
        "check_array_api_input",
        "check_class_weight_classifiers",
        "check_classifier_data_not_an_array",
        "check_classifier_multioutput",
        "check_classifiers_classes",
        "check_classifiers_one_label",
        "check_classifiers_one_label_sample_weights",
        "check_classifiers_regression_target",
        "check_classifiers_train",
        "check_decision_proba_consistency",
        "check_estimator_sparse_array",
        "check_estimators_pickle",
        "check_fit_idempotent",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_non_transformer_estimators_n_iter",
        "check_pipeline_consistency",
        "check_regressor_data_not_an_array",
        "check_regressors_int",
        "check_regressors_train",
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
        "check_supervised_y_2d",
    }
)


def check_settings(estimators, elsewhere=(), numbers_elsewhere=(), **options):
    """Parametrize with all checks of a class's first setting, and those of numbers of others.

    A class that has its first setting `elsewhere` has none here, and one of `numbers_elsewhere`
    has the checks of numbers nearly without noise alone; options are scikit-learn's.
    """
    first = dict.fromkeys(elsewhere)
    for estimator in estimators:
        first.setdefault(type(estimator), estimator)
    every = parametrize_with_checks(estimators, **options)
    names, cases = every.args
    kept = [
        case for case in cases if _is_kept(*getattr(case, "values", case), first, numbers_elsewhere)
    ]
    return pytest.mark.parametrize(names, kept, **every.kwargs)


def _is_kept(estimator, check, first, numbers_elsewhere):
    while isinstance(check, functools.partial):
        check = check.func
    if check.__name__ in OF_NUMBERS:
        return type(estimator) not in numbers_elsewhere
    return first[type(estimator)] is estimator
