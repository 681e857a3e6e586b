from pathlib import Path

import pytest

from controllers.core.model import Direction
from controllers.lab.simulation.experiments.curve_sweep import curve_sweep
from controllers.lab.simulation.experiments.experiment import OwnExperiment
from controllers.lab.simulation.tables import TableError
from controllers.worlds.simulated.workload import WorkloadError

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
