"""scikit-learn's callbacks where the installed version has them, and nothing otherwise.

Only the beginning and end of a fit and of its steps are announced, whose number is public. Rows,
labels and iterates are never handed out, and a callback's wish to stop is ignored: it could
depend on private values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Frames that the decorator puts between a user's call of fit and the method, for warnings.
FRAMES_OF_WITH_CALLBACKS = 1

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9
    FRAMES_OF_WITH_CALLBACKS = 0

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in: this version of scikit-learn has no callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method unchanged."""
        return method


class FitProgress:
    """Announces a fit and a public number of its steps to the estimator's callbacks.

    Parameters
    ----------
    estimator : estimator
        Whose callbacks are told.
    n_steps : int
        Public number of steps, 0 if the fit is announced as one task.
    """

    # A display cannot use more updates than this, and each costs time.
    _MOST_UPDATES = 200

    def __init__(self, estimator: Any, n_steps: int) -> None:
        self._estimator = estimator
        self._n_updates = min(n_steps, self._MOST_UPDATES)
        self._n_steps = n_steps
        self._announced = 0
        self._context = None
        if hasattr(estimator, "_init_callback_context"):
            self._context = estimator._init_callback_context(max_subtasks=self._n_updates)

    def begin(self) -> None:
        """Announce that the fit begins."""
        if self._context is not None:
            self._context.call_on_fit_task_begin(estimator=self._estimator)

    def steps_done(self, count: int) -> None:
        """Announce that `count` steps are done."""
        if self._context is None:
            return
        while self._announced < count * self._n_updates // self._n_steps:
            task = self._context.subcontext(task_name="steps")
            task.call_on_fit_task_begin(estimator=self._estimator)
            task.call_on_fit_task_end(estimator=self._estimator)
            self._announced += 1

    def end(self) -> None:
        """Announce that the fit is done."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator)
