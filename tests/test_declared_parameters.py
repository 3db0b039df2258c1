"""Constructors, signatures and docstrings that follow from what classes declare."""

import inspect
import pickle
import re
from dataclasses import field
from functools import wraps
from typing import ClassVar

import pytest
from sklearn.base import BaseEstimator, clone

import skdp
import skdp.metrics
import skdp.model_selection
import skdp.preprocessing
from skdp.base.parameters import DeclaredParameters, parameter, released

DECLARING = [
    value
    for module in (skdp, skdp.metrics, skdp.model_selection, skdp.preprocessing)
    for value in (getattr(module, name) for name in module.__all__)
    if isinstance(value, type) and issubclass(value, DeclaredParameters)
]


def described(cls):
    """Return the default that the docstring states of each parameter."""
    doc = inspect.getdoc(cls).partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    found = re.findall(r"^(\w+) : (.*?)(?:, default=(.*))?$", doc, re.MULTILINE)
    return {name: default for name, _, default in found}


@pytest.mark.parametrize("cls", DECLARING, ids=lambda cls: cls.__name__)
def test_docstring_signature_and_parameters_say_the_same(cls):
    signature = inspect.signature(cls).parameters
    stated = described(cls)
    assert list(stated) == list(signature) and sorted(stated) == cls._get_param_names()
    for name, own in signature.items():
        if own.default is inspect.Parameter.empty:
            assert stated[name] == ""
        else:
            assert eval(stated[name]) == own.default


@pytest.mark.parametrize("cls", DECLARING, ids=lambda cls: cls.__name__)
def test_texts_are_whole(cls):
    doc = inspect.getdoc(cls)
    assert not re.search(r"\bsee `\w+`\.?$", doc.partition("See Also")[0], re.MULTILINE)
    for entry in re.split(r"\n(?=\w+ : )", doc.partition("----------\n")[2]):
        assert entry.count("``") % 2 == 0
    assert max(map(len, doc.partition("Notes\n")[0].splitlines())) <= 100


class Base(DeclaredParameters, BaseEstimator):
    """Base of a diamond."""

    width: float = parameter("float", "Width.", default=1.0)
    depth: int = parameter("int", "Depth.", default=2)


class Left(Base):
    """Changes nothing."""


class Right(Base):
    """Changes a default, and adds a parameter and an attribute."""

    width: float = parameter("float", "Another width.", default=3.0)
    length: float = parameter("float", "Length.", default=5.0)
    area_: float = released("float", "Area.")


class Both(Left, Right):
    """Both.

    Notes
    -----
    A note.
    """

    _added_texts: ClassVar[dict[str, str]] = {"depth": "Deep."}


def test_bases_of_a_diamond_count_in_python_s_order():
    assert Both().get_params() == {"width": 3.0, "depth": 2, "length": 5.0}
    assert not hasattr(Both(), "area_")
    doc = Both.__doc__
    assert doc.index("Parameters") < doc.index("Attributes") < doc.index("Notes")
    assert "Another width." in doc and "Depth. Deep." in doc and "area_ : float\n    Area." in doc


def test_a_constructor_written_by_hand_stays_in_subclasses_too():
    class ByHand(Both):
        def __init__(self, width=9.0):
            super().__init__(width=width)

    class Below(ByHand):
        extra: int = 3  # an annotation that declares nothing

    assert Below().width == 9.0 and list(inspect.signature(Below).parameters) == ["width"]
    with pytest.raises(TypeError):
        Below(depth=1)


def test_a_constructor_that_wraps_the_declared_one_stays():
    class Wrapping(Both):
        @wraps(Both.__init__)
        def __init__(self, *args, **named):
            super().__init__(*args, **named)
            self.wrapped = True

    class Below(Wrapping):
        pass

    for cls in (Wrapping, Below):
        assert cls(width=9.0).wrapped and clone(cls(width=9.0)).width == 9.0


def test_a_field_of_dataclasses_is_a_parameter_without_a_text():
    class Listing(Both):
        """A list.

        Notes
        -----
        A note.
        """

        sizes: list = field(default_factory=list)

    assert Listing().sizes == [] and clone(Listing(sizes=[3])).sizes == [3]
    assert Listing().sizes is not Listing().sizes and "sizes" not in Listing.__doc__


def test_what_a_class_has_of_its_own_hides_a_declaration():
    class Fixed(Both):
        @property
        def depth(self):
            return 7

    assert Fixed().depth == 7 and "depth" not in Fixed().get_params()


def test_mistakes_in_calls_are_refused_as_by_any_constructor():
    with pytest.raises(TypeError, match="unexpected keyword argument 'epsilonn'"):
        skdp.OperaSVC(epsilonn=1.0)
    with pytest.raises(TypeError, match="positional"):
        skdp.OperaSVC(1.0, 1e-6, "replace-one")
    with pytest.raises(TypeError, match="teacher"):
        skdp.PATEClassifier()


def test_copies_keep_parameters():
    model = skdp.DPSGDClassifier(2.0, 1e-5, max_iter=7, hidden_layer_sizes=(3,))
    for copied in (clone(model), pickle.loads(pickle.dumps(model))):
        assert copied.get_params() == model.get_params() and copied.max_iter == 7
