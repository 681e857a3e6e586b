import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from controllers.lab.simulation.workload_file import read_workload
from hera_specon.cli import main
from tests.hera_specon.replay.tracked import log_sweep, new_client

Replay = Callable[..., Result]
NODES = ("--nodes", "2", "--cpus-per-node", "1", "--seeds", "3")


@pytest.fixture(scope="module")
def tracking_uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    client = new_client(tmp_path_factory.mktemp("mlflow"))
    log_sweep(client, "past sweep")
    log_sweep(client, "another sweep")
    return str(client.tracking_uri)


@pytest.fixture
def replay(tracking_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Replay:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracking_uri)
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, ["replay", *arguments])


def test_it_says_what_was_what_would_have_been_and_what_was_assumed(replay: Replay) -> None:
    done = replay("past sweep", *NODES)
    assert done.exit_code == 0, done.output
    for told in (
        "past sweep: 4 trials, simulated with 3 seeds on 2 nodes of 2 cores together",
        "nobody counted CPU seconds",
        "error of the makespan",
        "ahead would have changed the makespan by",
    ):
        assert told in done.output


def test_json_on_stdout_stands_alone_and_holds_intervals(replay: Replay) -> None:
    done = replay("past sweep", *NODES, "--policy", "default", "--policy", "flowcon:interval=5", "--json", "-")
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout)
    default, flowcon = figures["policies"]
    assert (default["policy"], flowcon["policy"]) == ("default", "flowcon:interval=5")
    assert default["against"] is None
    assert flowcon["against"]["makespan_ratio"].keys() == {"mean", "low", "high"}
    (check,) = figures["checks"]
    assert abs(check["makespan_error"]) < 0.1
    assert figures["trials"] == 4
    assert figures["assumptions"]


def test_the_same_command_says_the_same(replay: Replay) -> None:
    first, again = (replay("past sweep", *NODES, "--json", "-") for _ in range(2))
    assert first.stdout == again.stdout


def test_the_rebuilt_sweep_can_be_kept_as_a_workload(replay: Replay, tmp_path: Path) -> None:
    done = replay("past sweep", *NODES, "--workload-out", "kept")
    assert done.exit_code == 0, done.output
    workload = read_workload(tmp_path / "kept")
    assert [trial.id for trial in workload.trials] == [f"trial {n}" for n in range(4)]
    assert len(workload.nodes) == 2
    again = replay("past sweep", *NODES, "--workload-out", "kept")
    assert again.exit_code == 2
    assert "kept is there already" in again.output


def test_several_sweeps_stand_in_one_table_with_how_often_a_promise_missed(replay: Replay) -> None:
    policies = ("--policy", "default", "--policy", "promote:finish=best")
    done = replay("past sweep", "another sweep", "past sweep", *NODES, *policies)
    assert done.exit_code == 0, done.output
    told = done.output.splitlines()
    assert told[0] == "2 past sweeps, each simulated with 3 seeds"
    for name in ("past sweep", "another sweep", "all (geometric mean)"):
        assert sum(line.strip().startswith(name) for line in told) == 1


def test_json_of_several_sweeps_has_each_of_them_and_the_policies_over_all(replay: Replay) -> None:
    done = replay("past sweep", "another sweep", *NODES, "--policy", "default", "--policy", "ahead", "--json", "-")
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout)
    assert [sweep["sweep"] for sweep in figures["sweeps"]] == ["past sweep", "another sweep"]
    default, ahead = figures["policies"]
    assert (default["makespan_ratio"], ahead["policy"], ahead["missed"], ahead["promise"]) == (1.0, "ahead", None, None)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "give --all"),
        (("past sweep", "--all"), "or give --all"),
        (("--all",), "no run in"),
        (("past sweep", "nothing", *NODES), "Nor has it an experiment"),
        (("past sweep", "another sweep"), "--nodes and --cpus-per-node"),
        (("past sweep", "another sweep", *NODES, "--workload-out", "w"), "holds one sweep"),
        (("past sweep",), "--nodes and --cpus-per-node"),
        (("past sweep", "--cpus-per-node", "1"), "--nodes and --cpus-per-node"),
        (("nothing", *NODES), "Nor has it an experiment"),
        (("past sweep", *NODES, "--policy", "spekon"), "did you mean 'specon'?"),
        (("past sweep", *NODES, "--policy", "specon:alpha=2"), "alpha must be"),
        (("past sweep", *NODES, "--objective", "val_loss"), "no trial logged 'val_loss'"),
        (("past sweep", "--seeds", "0"), "0 is not in the range"),
        (("past sweep", "--nodes", "0"), "'0' is no number of nodes"),
        (("past sweep", *NODES, "--json", "no/such/folder/x.json"), "in a folder that does not exist"),
    ],
)
def test_bad_input_ends_with_2_and_says_what_to_do(replay: Replay, arguments: tuple[str, ...], told: str) -> None:
    done = replay(*arguments)
    assert done.exit_code == 2, done.output
    assert told in done.output
    assert "Traceback" not in done.output


def test_help_has_examples() -> None:
    told = CliRunner().invoke(main, ["replay", "--help"])
    assert told.exit_code == 0
    assert "specon replay my-experiment --nodes 4" in told.output
