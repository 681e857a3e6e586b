import numpy as np
import pytest

from workflows.jobs import data


def test_digits_are_those_that_scikit_learn_gives() -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    digits = datasets.load_digits()
    ours = data.digit_images()
    np.testing.assert_array_equal(np.concatenate([ours.train.inputs, ours.valid.inputs]) * 16, digits.data)
    np.testing.assert_array_equal(np.concatenate([ours.train.targets, ours.valid.targets]), digits.target)


def test_sunspots_are_those_that_statsmodels_gives() -> None:
    datasets = pytest.importorskip("statsmodels.datasets")
    series = datasets.sunspots.load_pandas().data["SUNACTIVITY"].to_numpy()
    targets = data.sunspot_windows(years=10).valid.targets[:, 0]
    assert np.corrcoef(targets, series[-len(targets) :])[0, 1] == pytest.approx(1)


def test_missing_package_is_named() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        data._packaged("no_such_package", "data.csv")


@pytest.mark.parametrize(
    ("dataset", "inputs", "targets"),
    [
        (data.digit_images(), (64,), ()),
        (data.digit_rows(), (8, 8), ()),
        (data.digit_rows(columns=4), (16, 4), ()),
        (data.partial_digit_rows(), (8, 8), ()),
        (data.sunspot_windows(years=22), (22, 1), (1,)),
        (data.nino_months(months=36), (36, 3), (36,)),
    ],
)
def test_both_parts_have_the_shapes_that_are_promised(
    dataset: data.Dataset, inputs: tuple[int, ...], targets: tuple[int, ...]
) -> None:
    for part in (dataset.train, dataset.valid):
        assert len(part) == len(part.targets) > 0
        assert part.inputs.dtype == np.float32
        assert part.inputs.shape[1:] == inputs
        assert part.targets.shape[1:] == targets


def test_each_window_is_followed_by_its_target() -> None:
    train = data.sunspot_windows(years=5).train
    np.testing.assert_array_equal(train.inputs[1:, -1], train.targets[:-1])


def test_columns_that_do_not_divide_the_image_are_refused_by_value() -> None:
    with pytest.raises(ValueError, match="got 7"):
        data.digit_rows(columns=7)


def test_partial_digits_have_read_the_first_rows_and_only_those() -> None:
    whole, partial = data.digit_rows().train.inputs, data.partial_digit_rows(shortest=4).train.inputs
    read = (partial != data.PADDING).all(axis=2)
    assert set(read.sum(axis=1)) == {4, 5, 6, 7, 8}
    assert (np.diff(read.astype(int), axis=1) <= 0).all()
    np.testing.assert_array_equal(partial[read], whole[read])


def test_nino_tags_need_five_months_above_half_a_kelvin() -> None:
    anomaly = np.concatenate([np.zeros(4), np.ones(9), np.zeros(4), np.ones(3), np.zeros(4), -np.ones(6), np.zeros(4)])
    tags = data._nino_tags(anomaly)
    assert (tags[4:13] == 2).all()
    assert (tags[13:24] == 1).all()
    assert (tags[24:30] == 0).all()


def test_every_tag_occurs_where_months_are_learnt_and_where_they_are_judged() -> None:
    dataset = data.nino_months()
    assert set(dataset.train.targets.ravel()) == set(dataset.valid.targets.ravel()) == set(range(data.TAGS))
