import gzip
from pathlib import Path

import pytest

from controllers.lab.simulation.experiments.curve_sweep import metrics_in, read_curves
from controllers.lab.simulation.tables import TableError
from controllers.worlds.simulated.workload import Report

TABLE = """task,config,epoch,seconds,val_accuracy,val_cross_entropy
3945,0,1,10.53,45.454,0.6352
3945,0,2,17.29,50.988,0.6579
3945,1,1,4.5,60,0.5
"""


def test_curves_are_kept_apart_by_task_and_configuration(tmp_path: Path) -> None:
    path = tmp_path / "curves.csv.gz"
    path.write_bytes(gzip.compress(TABLE.encode()))
    curves = read_curves(path, "val_cross_entropy")
    assert curves == {"3945": {"3945.0": (Report(10.53, 0.6352), Report(17.29, 0.6579)), "3945.1": (Report(4.5, 0.5),)}}
    assert metrics_in(path) == ("val_accuracy", "val_cross_entropy")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("17.29", "7.29", "line 3, column seconds: expected at least the 10.53 of the epoch before it, found '7.29'"),
        ("0,2,", "0,1,", "line 3, column epoch: expected more than the 1 of the row before it, found '1'"),
        ("0.6579", "", "line 3, column val_cross_entropy: expected a finite number, found nothing"),
        ("seconds", "time", "line 1 has no column 'seconds'"),
        ("4.5", "-4.5", "line 4, column seconds: expected a number, at least 0, found '-4.5'"),
    ],
)
def test_a_bad_curve_is_told_with_its_line(tmp_path: Path, old: str, new: str, told: str) -> None:
    path = tmp_path / "curves.csv"
    path.write_text(TABLE.replace(old, new, 1))
    with pytest.raises(TableError, match=r"curves\.csv") as caught:
        read_curves(path, "val_cross_entropy")
    assert told in str(caught.value)


def test_a_metric_that_is_not_there_is_named(tmp_path: Path) -> None:
    (path := tmp_path / "curves.csv").write_text(TABLE)
    with pytest.raises(TableError, match="no column 'val_loss'"):
        read_curves(path, "val_loss")


def test_a_truncated_archive_is_refused(tmp_path: Path) -> None:
    (path := tmp_path / "curves.csv.gz").write_bytes(gzip.compress(TABLE.encode() * 100)[:60])
    with pytest.raises(TableError, match="can't be read as a table"):
        read_curves(path, "val_accuracy")
