"""Holdouts by a public rule: a unit's side follows from its id and the seed, and from nobody."""

import pickle
from itertools import pairwise

import numpy as np
import pytest

import skdp.tables.row_sources as row_sources
from skdp import OperaLogisticRegression
from skdp.data.parquet import ParquetTable, open_parquet
from skdp.exceptions import RowsChangedError, SchemaError
from skdp.metrics import PrivateEvaluation
from skdp.preprocessing import LabelColumn, NumericColumn, PrivacyUnit, TableSchema

pd = pytest.importorskip("pandas", reason="needs pandas")

N = 1500
PATIENTS = TableSchema(
    [NumericColumn("age", 0, 120)],
    label=LabelColumn("ill", [0, 1]),
    unit=PrivacyUnit("patient", column="id", max_rows=9),
)
ROWS = PATIENTS.replace(unit=PrivacyUnit())


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    age = rng.uniform(0, 120, N)
    ill = (age + 20 * rng.normal(size=N) > 60).astype(int)
    return pd.DataFrame({"id": rng.integers(0, 500, N), "age": age, "ill": ill})


def containers(frame, folder):
    """Yield the same table in other containers, and what makes a pandas frame of each."""
    polars = pytest.importorskip("polars", reason="needs polars")
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    dd = pytest.importorskip("dask.dataframe", reason="needs dask's frames")
    frame.to_parquet(folder / "table.parquet", row_group_size=700)
    yield polars.from_pandas(frame), lambda half: half.to_pandas()
    yield open_parquet(folder / "table.parquet"), lambda half: half[: half.shape[0]]
    yield dd.from_pandas(frame, npartitions=7), lambda half: half.compute()


@pytest.mark.parametrize(("schema", "block"), [(PATIENTS, 400), (ROWS, 1)])
def test_every_container_is_divided_alike_and_fits_the_same_model(
    monkeypatch, frame, tmp_path, schema, block
):
    monkeypatch.setattr(row_sources, "WHOLE_BYTES", 0)
    monkeypatch.setattr(row_sources, "FEWEST_ROWS", block)
    monkeypatch.setattr(row_sources, "BLOCK_BYTES", 100_000 if block == 1 else 1)
    frame = frame if schema is PATIENTS else frame.drop(columns="id")
    fit, look = schema.split_holdout(frame, 0.3, seed=5)
    model = schema.pipeline(OperaLogisticRegression(random_state=0)).fit(fit)
    for table, in_pandas in containers(frame, tmp_path):
        halves = schema.split_holdout(table, 0.3, seed=5)
        assert {type(half) for half in halves} <= {type(table), row_sources.ChosenTable}
        for half, expected in zip(halves, (fit, look), strict=True):
            found = in_pandas(half)
            assert list(found.columns) == list(frame.columns)
            np.testing.assert_array_equal(np.asarray(found, float), np.asarray(expected, float))
        other = schema.pipeline(OperaLogisticRegression(random_state=0)).fit(halves[0])
        np.testing.assert_allclose(other[-1].coef_, model[-1].coef_, rtol=1e-10)
        assert other[-1].privacy_spent_.unit == ("group" if schema is PATIENTS else "row")
        if schema is PATIENTS and isinstance(halves[1], row_sources.ChosenTable):
            figures = PrivateEvaluation(random_state=0)
            assert repr(figures.evaluate(model, halves[1])) == repr(figures.evaluate(model, look))


def sides(ids, share=0.5, seed=0):
    """Return by each id whether it is held out."""
    table = pd.DataFrame({"id": pd.Series(list(ids), dtype=object), "age": 1.0, "ill": 0})
    fit, look = PATIENTS.split_holdout(table, share, seed)
    assert set(fit["id"]).isdisjoint(look["id"]) and len(fit) + len(look) == len(table)
    return dict.fromkeys(fit["id"], False) | dict.fromkeys(look["id"], True)


def test_a_side_follows_from_id_and_seed_alone():
    ids = range(400)
    whole = sides(ids)
    rng = np.random.default_rng(1)
    for some in (range(350), rng.permutation(400), rng.integers(0, 400, 999), range(17, 60)):
        assert sides(map(int, some)).items() <= whole.items()
    larger = sides(ids, 0.7)
    assert all(larger[i] for i in ids if whole[i])  # a larger share holds out more, and the same
    other = sides(ids, seed=1)
    assert sum(whole[i] == other[i] for i in ids) in range(150, 250)
    for share in (0.1, 0.5, 0.9):
        assert abs(sum(sides(range(1500), share).values()) / 1500 - share) < 0.05


def test_ids_that_are_one_patient_are_on_one_side():
    plain = sides([f"p-{i}" for i in range(50)])
    written = sides([f"  p\u2011{i}\u200b " for i in range(50)])  # another dash, blanks, no form
    assert list(plain.values()) == list(written.values())
    whole = sides(range(50))
    for kind in (np.int64, float, np.float32, np.uint8):
        assert list(sides(map(kind, range(50))).values()) == list(whole.values())
    assert list(sides(map(str, range(50))).values()) == list(whole.values())


def test_the_rule_stays_what_it_is():
    """Whoever is held out of one table is to be held out of those of later years."""
    texts = [f"p{number}" for number in range(20)]
    for ids, held in (
        (range(20), [1, 8, 9, 10, 11, 13, 14, 15, 16, 17, 19]),
        (texts, [0, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 14, 17, 18]),
    ):
        found = sides(ids)
        assert [place for place, own in enumerate(ids) if found[own]] == held
    _, look = ROWS.split_holdout(pd.DataFrame({"age": np.arange(24.0), "ill": 0}), 0.5, 3)
    assert list(look.index) == [0, 2, 6, 7, 8, 11, 13, 14, 15, 18, 19, 20, 22]


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_neighbours_differ_in_one_half_by_one_unit(frame, relation):
    halves = PATIENTS.split_holdout(frame, 0.4, seed=2)
    for patient in (7, 123):
        rest = frame[frame["id"] != patient]
        other = frame.iloc[:5].assign(id=patient, age=1.0)
        parts = [rest] if relation == "add-remove" else [rest, other]
        neighbours = PATIENTS.split_holdout(pd.concat(parts), 0.4, seed=2)
        same = [half["id"].isin([patient]).sum() == 0 for half in halves]
        assert sorted(same) == [False, True]
        for one, two, unchanged in zip(halves, neighbours, same, strict=True):
            kept = [half[half["id"] != patient] for half in (one, two)]
            pd.testing.assert_frame_equal(*kept)
            if relation == "replace-one" or unchanged:
                assert one["id"].nunique() == two["id"].nunique()


def test_rows_without_ids_go_by_their_numbers(frame):
    table = frame.drop(columns="id")
    _, look = ROWS.split_holdout(table, 0.25, seed=1)
    assert abs(len(look) / N - 0.25) < 0.05
    other = table.copy()
    other.iloc[4] = [99.0, 1]
    _, again = ROWS.split_holdout(other, 0.25, seed=1)
    assert list(again.index) == list(look.index)  # whatever rows hold
    for n in (1001, 1000, 7 * 8 + 3):
        _, fewer = ROWS.split_holdout(table[:n], 0.25, seed=1)
        assert list(fewer.index) == [row for row in look.index if row < n]  # and follows


def test_halves_are_divided_again(frame, tmp_path):
    for table in (frame, *(own for own, _ in containers(frame, tmp_path))):
        fit, look = PATIENTS.split_holdout(table, 0.5, seed=0)
        with pytest.raises(ValueError, match="a different seed"):
            PATIENTS.split_holdout(fit, 0.4, seed=0)
        more, less = PATIENTS.split_holdout(fit, 0.5, seed=1)
        ids = [PATIENTS.split(part, groups=True)[2] for part in (more, less, look)]
        assert len(np.unique(np.concatenate(ids))) == sum(len(np.unique(own)) for own in ids)


def test_what_cannot_be_divided_is_refused(frame):
    no_ids, no_name = frame.drop(columns="id"), PrivacyUnit("patient", max_rows=3)
    for schema, table, problem in (
        (PATIENTS, no_ids, "its column is not in the table"),
        (PATIENTS.replace(unit=no_name), frame, "one patient may have 3 rows"),
        (PATIENTS, frame.assign(id=None), "missing ids"),
    ):
        with pytest.raises(ValueError, match=problem):
            schema.split_holdout(table, 0.5, 0)
    with pytest.raises(SchemaError, match="unit"):
        PATIENTS.split_holdout(no_ids, 0.5, 0)
    for wrong in ((0.0, 1), (1.0, 1), (0.5, -1)):
        with pytest.raises(ValueError, match=r"^(share|seed)"):
            PATIENTS.split_holdout(frame, *wrong)
    for wrong in ((0.5, 1.0), (0.5, None), ("half", 1)):
        with pytest.raises(TypeError, match=r"^(share|seed)"):
            PATIENTS.split_holdout(frame, *wrong)
    with pytest.raises(TypeError, match="need a pandas or polars frame"):
        ROWS.split_holdout(np.zeros((5, 2)), 0.5, 1)


def test_rows_of_dask_that_come_in_another_order_are_refused(frame):
    dd = pytest.importorskip("dask.dataframe", reason="needs dask's frames")
    rng = np.random.default_rng()

    def shuffled(part):
        return part.iloc[rng.permutation(len(part))]

    lazy = dd.from_pandas(frame.drop(columns="id"), npartitions=2).map_partitions(shuffled)
    for half in ROWS.split_holdout(lazy, 0.5, seed=0):
        with pytest.raises(RowsChangedError):
            half.compute()
        with pytest.raises(RowsChangedError):
            ROWS.pipeline(OperaLogisticRegression()).fit(half)


@pytest.mark.parametrize("share", [0.04, 0.5])
def test_halves_on_disk_read_each_block_once_in_order(monkeypatch, frame, tmp_path, share):
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    monkeypatch.setattr(row_sources, "FEWEST_ROWS", 100)
    monkeypatch.setattr(row_sources, "BLOCK_BYTES", 1)
    frame.to_parquet(tmp_path / "table.parquet", row_group_size=77)
    _, half = PATIENTS.split_holdout(open_parquet(tmp_path / "table.parquet"), share, seed=1)
    seen, read = [], ParquetTable.read
    with monkeypatch.context() as patch:
        patch.setattr(ParquetTable, "read", lambda self, *at: (seen.append(at), read(self, *at))[1])
        rows = sum(len(block) for _, _, block in half.blocks())
    assert rows == half.shape[0]
    assert max(stop - start for start, stop in seen) <= 100
    assert all(one[1] <= two[0] for one, two in pairwise(seen))
    again = pickle.loads(pickle.dumps(half))
    pd.testing.assert_frame_equal(again[3:9], half[["id", "age", "ill"]][3:9])
