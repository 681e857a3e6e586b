import pytest

from controllers.worlds.local.workflow.pods import guessed_cpu
from controllers.worlds.local.workflow.values import ManifestValueError, parse_duration, parse_quantity


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("100m", 0.1),
        ("0.5", 0.5),
        (".5", 0.5),
        (2, 2.0),
        ("512Mi", 512 * 1024**2),
        ("1G", 1e9),
        ("1Gi", 1024**3),
        ("1k", 1000),
        ("1e3", 1000),
        ("12E", 12e18),
    ],
)
def test_quantities_read_as_kubernetes_does(text: object, amount: float) -> None:
    assert parse_quantity(text) == pytest.approx(amount)


@pytest.mark.parametrize("text", ["", "1 Gi", "1K", "ten", "1GiB", "--1", "-1", None, True, "nan", "1m2"])
def test_what_is_no_quantity_is_refused_with_the_value(text: object) -> None:
    with pytest.raises(ManifestValueError, match=repr(text).replace("(", r"\(")):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), (20, 20), ("20s", 20), ("1m30s", 90), ("1h", 3600), ("250ms", 0.25), ("0.5s", 0.5)],
)
def test_durations_read_as_argo_does(text: object, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "5 s", "-3", "1d", "1e3s"])
def test_what_is_no_duration_is_refused_with_the_value(text: str) -> None:
    with pytest.raises(ManifestValueError, match=repr(text)):
        parse_duration(text)


@pytest.mark.parametrize(
    ("nodes", "workers", "cores"),
    [
        ((), 4, 1.0),
        ((2.0,), 1, 1.0),
        ((0.5, 0.5), 1, 0.5),
        ((0.4, 0.25), 1, 0.4),
        ((2.0,), 2, 1.0),
        ((2.0,), 4, 0.5),
        ((2.0,), 3, 2 / 3),
        ((0.4, 0.25), 3, 0.2),
        ((0.4, 0.25), 7, 0.1),
        ((0.05,), 1, 0.05),
    ],
)
def test_a_request_that_nobody_named_is_a_core_or_as_much_as_fits(
    nodes: tuple[float, ...], workers: int, cores: float
) -> None:
    assert guessed_cpu(nodes, workers) == pytest.approx(cores)
