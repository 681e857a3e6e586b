import gzip
from pathlib import Path

import pytest

from controllers.core.model import Direction
from controllers.lab.simulation.experiments.curve_sweep import curve_sweep, metrics_in, read_curves
from controllers.lab.simulation.experiments.experiment import OwnExperiment
from controllers.lab.simulation.tables import TableError
from controllers.worlds.simulated.errors import WorkloadError
from controllers.worlds.simulated.workload import CurvePoint

TASKS, CONFIGURATIONS = ("a.b", "c"), 8


def rows(seconds: float = 10.0) -> str:
    lines = [
        f"{task},{config},{epoch},{seconds * epoch},{config + epoch}"
        for task in TASKS
        for config in range(CONFIGURATIONS)
        for epoch in (1, 2)
    ]
    return "\n".join(["task,config,epoch,seconds,accuracy", *lines])


def swept(folder: Path, trials: int = 5, text: str | None = None) -> OwnExperiment:
    (path := folder / "curves.csv").write_text(rows() if text is None else text)
    return curve_sweep(path, "accuracy", Direction.MAXIMIZE, trials, nodes=3)


def test_a_seed_draws_configurations_of_one_task_each_once_and_submits_them_all_at_once(tmp_path: Path) -> None:
    sweep = swept(tmp_path)
    workloads = [sweep.workload(seed) for seed in range(10)]
    for workload in workloads:
        names = [trial.id for trial in workload.trials]
        assert len(set(names)) == 5
        assert len({name.rpartition(".")[0] for name in names}) == 1
        assert {trial.submitted_at for trial in workload.trials} == {0.0}
        assert [node.cpu for node in workload.nodes] == [16.0] * 3
    assert {workload.trials[0].id.rpartition(".")[0] for workload in workloads} == set(TASKS)
    assert sweep.workload(3) == workloads[3] != workloads[4]


def test_a_trial_has_its_curve_and_the_time_of_its_last_epoch(tmp_path: Path) -> None:
    trial = swept(tmp_path, CONFIGURATIONS).workload(0).trials[0]
    config = int(trial.id.rpartition(".")[2])
    assert trial.work_s == 20.0
    assert [(report.work_s, report.value) for report in trial.reports] == [(10.0, config + 1), (20.0, config + 2)]
    assert trial.direction is Direction.MAXIMIZE


def test_more_trials_than_a_task_has_configurations_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"curves\.csv: task a\.b has 8 configurations, fewer than 9 trials"):
        swept(tmp_path, 9)


def test_a_curve_that_takes_no_time_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"trial a\.b\.0: work_s must be greater than 0, not 0\.0"):
        swept(tmp_path, text=rows(seconds=0.0))


TABLE = """task,config,epoch,seconds,val_accuracy,val_cross_entropy
3945,0,1,10.53,45.454,0.6352
3945,0,2,17.29,50.988,0.6579
3945,1,1,4.5,60,0.5
"""


def test_curves_are_kept_apart_by_task_and_configuration(tmp_path: Path) -> None:
    path = tmp_path / "curves.csv.gz"
    path.write_bytes(gzip.compress(TABLE.encode()))
    curves = read_curves(path, "val_cross_entropy")
    reports = {name: found.reports for name, found in curves["3945"].items()}
    assert list(curves) == ["3945"]
    assert reports == {
        "3945.0": (CurvePoint(10.53, 0.6352), CurvePoint(17.29, 0.6579)),
        "3945.1": (CurvePoint(4.5, 0.5),),
    }
    assert metrics_in(path) == ("val_accuracy", "val_cross_entropy")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("17.29", "7.29", "line 3, column seconds: expected at least the 10.53 of the epoch before it, found '7.29'"),
        ("0,2,", "0,1,", "line 3, column epoch: expected more than the 1 of the row before it, found '1'"),
        ("0.6579", "", "line 3, column val_cross_entropy: expected a number, nan or inf, found nothing"),
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
    with pytest.raises(TableError, match="as a table"):
        read_curves(path, "val_accuracy")


def test_columns_of_hyperparameters_are_no_metrics_and_become_the_parameters_of_trials(tmp_path: Path) -> None:
    lines = [
        "task,config,epoch,seconds,parameter.width,parameter.kind,loss",
        "t,0,1,1.5,64,mlp,0.5",
        "t,1,1,2.5,,cnn,0.5",
    ]
    (path := tmp_path / "curves.csv").write_text("\n".join(lines))
    assert metrics_in(path) == ("loss",)
    trials = curve_sweep(path, "loss", Direction.MINIMIZE, 2, nodes=1).workload(0).trials
    assert {trial.id: trial.parameters for trial in trials} == {
        "t.0": (("kind", "mlp"), ("width", 64.0)),
        "t.1": (("kind", "cnn"),),
    }
