"""Tables come from files in several shapes and from OpenML, always in their schema's terms."""

import builtins
import gzip

import numpy as np
import pytest
import sklearn.datasets
from sklearn.utils import Bunch

from skdp import datasets
from skdp.datasets._loaders import _ADULT, _BANK, _CARDIO, _HEART, _SUPPORT2

pandas = pytest.importorskip("pandas", reason="needs pandas")

ADULT_ROWS = [
    "39,State-gov,77516,Bachelors,13,Never-married,Adm-clerical,Not-in-family,White,Male,"
    "2174,0,40,United-States,<=50K",
    "52,?,209642,HS-grad,9,Married-civ-spouse,?,Husband,White,Male,0,0,45,?,>50K",
]
BANK_ROWS = [
    '58;"management";"married";"tertiary";"no";2143;"yes";"no";"unknown";5;"may";261;1;-1;0;'
    '"unknown";"no"',
    '44;"technician";"single";"secondary";"no";29;"yes";"no";"cellular";5;"may";151;1;90;2;'
    '"success";"yes"',
]
CARDIO_ROWS = ["0;18393;2;168;62.0;110;80;1;1;0;0;1;0", "1;20228;1;156;85.0;-140;90;3;1;0;0;1;1"]
HEART_ROWS = [
    "63.0,1.0,1.0,145.0,233.0,1.0,2.0,150.0,0.0,2.3,3.0,0.0,6.0,0",
    "67.0,1.0,4.0,160.0,286.0,0.0,2.0,108.0,1.0,1.5,2.0,?,?,2",
]
SUPPORT2_ROWS = [
    "62.8,0,male,0,5,2029,Lung Cancer,Cancer,0,11,$11-$25k,0,9715,,,7,other,33.9,20,0.26,0.04,1,0,"
    "0,metastatic,0.5,0.25,no dnr,5,97,6,69,22,36,388,1.8,0.2,1.2,141,7.46,,,,7,7,,7",
    "60.3,1,female,1,4,4,Cirrhosis,COPD/CHF/Cirrhosis,2,12,,44,34496,,,29,white,52.7,74,0.001,0,3,"
    "0,0,no,0,0,,,43,17.1,112,34,34.6,98,,,5.5,132,7.25,,,,,1,<2 mo. follow-up,1",
]
FILES = {
    "adult_train.csv": (",", _ADULT, ADULT_ROWS),
    "adult_test.csv": (",", _ADULT, ADULT_ROWS[::-1]),
    "bank-full.csv": (";", _BANK, BANK_ROWS),
    "cardio_train.csv": (";", _CARDIO, CARDIO_ROWS),
    "heart_cleveland.csv": (",", _HEART, HEART_ROWS),
    "support2.csv": (",", _SUPPORT2, SUPPORT2_ROWS),
}


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    monkeypatch.delenv("SKDP_DATA", raising=False)

    def refuse(**options):
        raise AssertionError("must not ask OpenML")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", refuse)


@pytest.fixture(params=["plain", "gzip", "nameless"])
def folder(request, tmp_path):
    for name, (separator, columns, rows) in FILES.items():
        lines = rows if request.param == "nameless" else [separator.join(columns), *rows]
        content = "\n".join(lines) + "\n"
        if request.param == "gzip":
            with gzip.open(tmp_path / f"{name}.gz", "wt") as stream:
                stream.write(content)
        else:
            (tmp_path / name).write_text(content)
    return tmp_path


FETCHERS = [
    (datasets.fetch_bank, ["no", "yes"]),
    (datasets.fetch_cardio, [0, 1]),
    (datasets.fetch_heart, [0, 1]),
    (datasets.fetch_support2, [0, 1]),
    (datasets.fetch_adult, ["<=50K", ">50K", ">50K", "<=50K"]),
]


@pytest.mark.parametrize(("fetch", "labels"), FETCHERS)
def test_files(fetch, labels, folder, monkeypatch):
    table = fetch(path=folder)
    assert table.target.tolist() == labels
    assert list(table.data.columns) == table.feature_names == table.schema.features
    assert table.target_names == list(table.schema.label.classes) and "Source" in table.DESCR
    features = table.schema.preprocessor().fit_transform(table.data)
    assert np.linalg.norm(features, axis=1).max() <= table.schema.data_norm * (1 + 1e-12)
    assert (np.abs(features).sum(axis=1) > 1).all()  # cells were recognised
    monkeypatch.setenv("SKDP_DATA", str(folder))
    X, y = fetch(return_X_y=True)
    pandas.testing.assert_frame_equal(X, table.data)
    np.testing.assert_array_equal(y, table.target)


def test_subsets_and_single_files(folder):
    assert datasets.fetch_adult(path=folder, subset="test").target.tolist() == [">50K", "<=50K"]
    (file,) = folder.glob("adult_train*")
    table = datasets.fetch_adult(path=file)
    assert len(table.frame) == 2 and table.frame["workclass"].isna().tolist() == [False, True]
    with pytest.raises(ValueError, match="subset must be"):
        datasets.fetch_adult(path=folder, subset="valid")
    with pytest.raises(FileNotFoundError, match=r"no adult_train\.csv .*SKDP_DATA"):
        datasets.fetch_adult(subset="train")


def test_numbers_of_rows_are_left_out_and_openml_is_not_asked(tmp_path):
    lines = [",".join(["", *_SUPPORT2]), *(f"{j},{row}" for j, row in enumerate(SUPPORT2_ROWS))]
    (tmp_path / "support2.csv").write_text("\n".join(lines) + "\n")
    table = datasets.fetch_support2(path=tmp_path)
    assert table.data["age"].tolist() == [62.8, 60.3] and "surv2m" not in table.data
    with pytest.raises(FileNotFoundError, match=r"no support2\.csv"):
        datasets.fetch_support2()


def test_the_original_test_file_of_adult(tmp_path):
    """It starts with a remark, has blanks after commas, and a full stop after each label."""
    lines = ["|1x3 Cross validator", *(row.replace(",", ", ") + "." for row in ADULT_ROWS)]
    (tmp_path / "adult.test").write_text("\n".join(lines) + "\n")
    table = datasets.fetch_adult(path=tmp_path / "adult.test")
    assert table.target.tolist() == ["<=50K", ">50K"]
    assert table.frame["workclass"].isna().tolist() == [False, True]


def test_missing_and_wrong_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no cardio_train\.csv \(or \.gz\) in .*path="):
        datasets.fetch_cardio(path=tmp_path)
    with pytest.raises(FileNotFoundError, match="any folder"):
        datasets.fetch_cardio(download_if_missing=False)
    (tmp_path / "cardio_train.csv").write_text("id;age\n1;2\n")
    with pytest.raises(ValueError, match="lacks the columns gender"):
        datasets.fetch_cardio(path=tmp_path)


def as_openml(monkeypatch, frame):
    asked = {}

    def fetch(**options):
        asked.update(options)
        return Bunch(frame=frame)

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    return asked


def table_of(name):
    separator, columns, rows = FILES[name]
    cells = [row.replace('"', "").split(separator) for row in rows]
    return pandas.DataFrame(cells, columns=list(columns)).replace("?", None)


def test_adult_from_openml(monkeypatch, folder):
    frame = table_of("adult_train.csv").rename(columns=lambda name: name.replace("_", "-"))
    frame = frame.rename(columns={"income": "class"}).astype({"sex": "category"})
    asked = as_openml(monkeypatch, frame)
    table = datasets.fetch_adult(data_home="there")
    assert asked == {"data_id": 1590, "as_frame": True, "data_home": "there"}
    local = datasets.fetch_adult(path=folder, subset="train")
    pandas.testing.assert_frame_equal(table.data, local.data, check_dtype=False)
    np.testing.assert_array_equal(table.target, local.target)


def test_bank_from_openml(monkeypatch, folder):
    frame = table_of("bank-full.csv")
    frame.columns = [*(f"V{j}" for j in range(1, 17)), "Class"]
    frame["Class"] = pandas.Categorical(frame["Class"].map({"no": "1", "yes": "2"}))
    asked = as_openml(monkeypatch, frame)
    table = datasets.fetch_bank()
    assert asked["data_id"] == 1461 and table.target.tolist() == ["no", "yes"]
    pandas.testing.assert_frame_equal(
        table.data, datasets.fetch_bank(path=folder).data, check_dtype=False
    )


def test_cardio_from_openml(monkeypatch, folder):
    frame = table_of("cardio_train.csv").drop(columns="id").astype({"gluc": "category"})
    asked = as_openml(monkeypatch, frame)
    table = datasets.fetch_cardio()
    assert asked["data_id"] == 45547
    pandas.testing.assert_frame_equal(
        table.data, datasets.fetch_cardio(path=folder).data, check_dtype=False
    )


def test_heart_from_openml(monkeypatch, folder):
    words = {
        **{"age": [63, 67], "sex": ["male", "male"], "cp": ["typ_angina", "asympt"]},
        **{"trestbps": [145, 160], "chol": [233, 286], "fbs": ["t", "f"]},
        **{"restecg": ["left_vent_hyper"] * 2, "thalach": [150, 108], "exang": ["no", "yes"]},
        **{"oldpeak": [2.3, 1.5], "slope": ["down", "flat"], "ca": [0, None]},
        **{"thal": ["fixed_defect", None], "num": ["<50", ">50_1"]},
    }
    frame = pandas.DataFrame(words).astype({"cp": "category", "num": "category"})
    asked = as_openml(monkeypatch, frame)
    table = datasets.fetch_heart()
    assert asked["data_id"] == 49 and table.target.tolist() == [0, 1]
    pandas.testing.assert_frame_equal(
        table.data, datasets.fetch_heart(path=folder).data, check_dtype=False
    )


def test_breast_cancer():
    X, y = datasets.load_breast_cancer(return_X_y=True)
    assert X.shape == (569, 30) and y.sum() == 357


def test_without_pandas_the_extra_is_named(monkeypatch):
    original = builtins.__import__

    def refuse(name, *rest, **more):
        if name == "pandas":
            raise ImportError(name)
        return original(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"pip install 'skdp\[datasets\]'"):
        datasets.load_breast_cancer()
    assert datasets.load_schema("heart").features  # schemas need none


def test_a_cell_that_is_no_number_is_not_quoted(tmp_path):
    rows = [HEART_ROWS[0], HEART_ROWS[1].replace("160.0", "Jane Doe")]
    (tmp_path / "heart_cleveland.csv").write_text("\n".join(rows) + "\n")
    with pytest.raises(
        ValueError, match="'trestbps' contains a cell that is not a number"
    ) as raised:
        datasets.fetch_heart(path=tmp_path)
    assert "Jane" not in str(raised.value) and raised.value.__suppress_context__
