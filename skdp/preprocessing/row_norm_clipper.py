"""Bound the Euclidean norm of every row by a public number."""

from __future__ import annotations

from typing import Any, Self

from skdp.choices import Bounding
from skdp.parameters import check_choice, check_real, parameter
from skdp.plans.row_norms import bound_rows
from skdp.preprocessing.row_transformer import RowTransformer
from skdp.sklearn_bases import OneToOneFeatureMixin


class RowNormClipper(OneToOneFeatureMixin, RowTransformer):
    """Shorten rows to a public norm, or scale all rows to it.

    Nothing is learned from the rows: each is treated by itself, so no privacy is spent.

    See Also
    --------
    BoundedScaler : Bounds every feature, and so the row, by a code book.

    Notes
    -----
    The private estimators shorten rows to their own `data_norm`. The clipper is for pipelines
    whose next step wants bounded rows, and for choosing the norm in one place. Choose it without
    looking at the rows: the largest norm of a table is one person's.

    Examples
    --------
    >>> from skdp.preprocessing import RowNormClipper
    >>> RowNormClipper(norm=1.0).fit_transform([[3.0, 4.0], [0.3, 0.4]])
    array([[0.6, 0.8],
           [0.3, 0.4]])
    >>> RowNormClipper(norm=1.0, method="scale").fit_transform([[3.0, 4.0], [0.3, 0.4]])
    array([[0.6, 0.8],
           [0.6, 0.8]])
    """

    norm: float = parameter(
        "float",
        """Largest Euclidean norm of an output row: the `data_norm` to give to the private
        estimator.""",
        default=1.0,
        kw_only=False,
    )
    method: Bounding = parameter(
        '{"clip", "scale"}',
        """``"clip"`` scales down the rows that are longer and leaves the others alone;
        ``"scale"`` gives every row this norm, as `Normalizer` does, and keeps rows of zeros.""",
        default="clip",
    )

    # For privacy statements: nothing of the fitted state comes from rows. For searches: the
    # parameter that bounds the output.
    _learns_from_rows = False
    _accepts_sparse = True
    _bounded_by = "norm"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters; no value of `X` is used.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : None
            Ignored.

        Returns
        -------
        self : RowNormClipper
            The clipper.

        Raises
        ------
        ValueError, TypeError
            If a parameter is out of range.
        """
        check_real("norm", self.norm, at_least=1e-50, at_most=1e50)
        check_choice("method", self.method, ("clip", "scale"))
        self._validate(X, reset=True)
        self._every = self.method == "scale"
        self.data_norm_ = float(self.norm)
        return self

    def _apply(self, X: Any) -> Any:
        return bound_rows(X, self.data_norm_, every=self._every)
