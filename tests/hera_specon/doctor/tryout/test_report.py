import json

import pytest

from hera_specon.doctor.tryout.report import read_report


def test_a_report_is_read() -> None:
    assert read_report(json.dumps({"self": {"user": 1}})) == {"self": {"user": 1}}


@pytest.mark.parametrize(
    "said",
    [
        "",
        "python3: not found",
        "[1]",
        "7",
        '{"mlflow": {}}',
        '{"self": {' + '"a": 1,' * 10_000,
        json.dumps({"self": "x" * 5000}),
        "[" * 4000,
    ],
    ids=range(8),
)
def test_what_is_none_is_none(said: str) -> None:
    assert read_report(said) is None
