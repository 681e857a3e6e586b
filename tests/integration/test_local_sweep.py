"""A sweep on this machine from command to figures, and through every kind of interruption."""

import json
import os
import re
import signal

import pytest
from click.testing import CliRunner

from hera_specon.cli import main
from tests.integration.workbench import Workbench, assert_whole, results

pytestmark = pytest.mark.slow

NODES = ("--nodes", "2", "--cpus-per-node", "0.4", "--plain")
SEED = "0"
"""With this seed the first trial's node is the one that gets three of five."""
QUICK = "specon:interval=2,alpha=0.2+flowcon:interval=2"


def kill_server(bench: Workbench, number: int) -> None:
    for process in bench.processes():
        words = process.cmdline()
        if "mlflow" in words or any("uvicorn" in word for word in words):
            os.kill(process.pid, number)


def test_two_policies_are_compared_on_the_same_trials_from_the_same_placement(workbench: Workbench) -> None:
    # Long enough for a policy that looks every two seconds to see something on a machine that is quick.
    workbench.write(steps=(60, 400))
    done = workbench.run("run", "sweep.py", "--policy", "default", "--policy", QUICK, "--json", "out.json", *NODES)
    assert done.code == 0, done.output
    default, specon = results(workbench.folder / "out.json")
    assert [default["policy"], specon["policy"]] == ["default", "specon+flowcon"]
    assert default["moves"] == 0
    assert specon["moves"] + specon["resizes"] > 0
    first = {t["id"]: t["first_node"] for t in default["trials"]}
    assert first == {t["id"]: t["first_node"] for t in specon["trials"]}
    assert len(set(first.values())) == 2
    final = {t["id"]: t["final_metric"] for t in default["trials"]}
    assert final == pytest.approx({t["id"]: t["final_metric"] for t in specon["trials"]})
    assert_whole(workbench.histories(), {60: 6, 400: 6})
    assert (workbench.newest_run / "report.html").stat().st_size > 10_000
    assert not [p for p in workbench.processes() if p.pid != os.getpid()]


def test_a_converged_trial_is_moved_and_ends_as_one_that_was_not(workbench: Workbench) -> None:
    # The first trial converges at once; two that do not are on its node, and two on the other.
    rates = (0.1, 0.001, 0.0011, 0.0012, 0.0013)
    workbench.write(steps=(300,), rates=rates)
    policy = "specon:interval=2,alpha=0.05,strict=false"
    done = workbench.run("run", "sweep.py", "--policy", policy, "--seed", SEED, "--json", "out.json", *NODES)
    assert done.code == 0, done.output
    (run,) = results(workbench.folder / "out.json")
    first = run["trials"][0]
    assert (first["moves"], first["attempts"]) == (1, 2), done.output
    assert first["node"] != first["first_node"]
    for trial in run["trials"]:
        assert trial["final_metric"] == pytest.approx((1 - trial["params"]["lr"]) ** 600, rel=1e-9)
    assert_whole(workbench.histories(), {300: 5})
    assert workbench.run_tags()[f"{workbench.uid}.descent.t000"]["specon.moves"] == "1"


def test_mlflow_shows_a_parent_run_and_live_tags_and_the_end_tells_of_deadlines(workbench: Workbench) -> None:
    workbench.write(steps=(150,), cpu_ms=25, wishes='deadline="30m",')
    done = workbench.run("run", "sweep.py", "--policy", QUICK, "--json", "out.json", *NODES)
    assert done.code == 0, done.output
    assert re.search(r"deadlines met +3 of 3", done.output)
    (run,) = results(workbench.folder / "out.json")
    assert [trial["deadline_s"] for trial in run["trials"]] == [1800.0] * 3
    tags = workbench.run_tags()
    assert len(tags) == 3
    for found in tags.values():
        assert {"specon.category", "specon.node", "specon.cpu", "specon.moves", "mlflow.parentRunId"} <= found.keys()


def test_a_controller_killed_in_mid_sweep_is_gone_on_with_by_the_same_command(workbench: Workbench) -> None:
    workbench.write(steps=(150,), cpu_ms=10)
    command = ("run", "sweep.py", "--policy", QUICK, "--json", "out.json", *NODES)
    process = workbench.start(*command)
    workbench.wait_for(lambda: workbench.steps_journalled() > 150)
    process.kill()
    process.communicate()
    workbench.wait_for(lambda: not [p for p in workbench.processes() if p.pid != os.getpid()], within_s=45)
    done = workbench.run(*command)
    assert done.code == 0, done.output
    assert "going on" in done.output
    (run,) = results(workbench.folder / "out.json")
    assert [t["succeeded"] for t in run["trials"]] == [True] * 3
    assert_whole(workbench.histories(), {150: 3})


def test_ctrl_c_keeps_everything_and_leaves_no_process(workbench: Workbench) -> None:
    workbench.write(steps=(150,))
    command = ("run", "sweep.py", "--policy", "default", *NODES)
    process = workbench.start(*command)
    workbench.wait_for(lambda: workbench.steps_journalled() > 60)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "same command" in output
    assert not [p for p in workbench.processes() if p.pid != os.getpid()]
    assert workbench.run(*command).code == 0
    assert_whole(workbench.histories(), {150: 3})


def test_killed_trials_go_on_from_their_checkpoints(workbench: Workbench) -> None:
    workbench.write(steps=(150,))
    process = workbench.start("run", "sweep.py", "--policy", "default", "--json", "out.json", *NODES)
    workbench.wait_for(lambda: workbench.steps_journalled() > 200)
    ledger = json.loads(next(workbench.newest_run.glob("*/ledger.json")).read_text())
    for job in ledger["jobs"].values():
        if job["phase"] == "running":
            os.kill(job["pids"][0], signal.SIGKILL)
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 0, output
    (run,) = results(workbench.folder / "out.json")
    assert max(t["attempts"] for t in run["trials"]) > 1
    assert_whole(workbench.histories(), {150: 3})


def test_training_goes_on_while_mlflow_is_away_and_no_step_is_missing_afterwards(workbench: Workbench) -> None:
    workbench.write(steps=(150,), cpu_ms=12)
    process = workbench.start("run", "sweep.py", "--policy", QUICK, *NODES)
    workbench.wait_for(lambda: workbench.steps_journalled() > 60)
    kill_server(workbench, signal.SIGSTOP)
    before = workbench.steps_journalled()
    workbench.wait_for(lambda: workbench.steps_journalled() > before + 150)
    kill_server(workbench, signal.SIGCONT)
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 0, output
    assert_whole(workbench.histories(), {150: 3})


def test_a_server_that_dies_is_started_again(workbench: Workbench) -> None:
    workbench.write(steps=(150,), cpu_ms=12)
    process = workbench.start("run", "sweep.py", "--policy", "default", *NODES)
    workbench.wait_for(lambda: workbench.steps_journalled() > 60)
    kill_server(workbench, signal.SIGKILL)
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 0, output
    assert_whole(workbench.histories(), {150: 3})


def test_an_objective_that_is_never_logged_is_named_with_what_is(workbench: Workbench) -> None:
    workbench.write(steps=(60,), metric="accuracy")
    done = workbench.run("run", "sweep.py", "--policy", "default", *NODES)
    assert done.code == 1
    assert "'loss'" in done.output
    assert "accuracy" in done.output


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("run", "sweep.py", "--policy", "specom"), "specom"),
        (("run", "sweep.py", "--policy", "specon:alpah=0.1"), "alpah"),
        (("run", "sweep.py", "--policy", "specon:alpha=2"), "2"),
        (("run", "sweep.py", "--nodes", "0"), "0"),
        (("run", "sweep.py", "--cpus-per-node", "0.01"), "0.05"),
        (("run", "sweep.py", "--nodes", "4", "--cpus-per-node", "500"), "4 nodes of 500 cores are more than"),
        (("run", "sweep.py", "--cpus-per-node", "400,200,200"), "3 nodes of 400 + 200 + 200 cores are more than"),
        (("run", "sweep.py", "--nodes", "2", "--cpus-per-node", "1,1,1"), "3 sizes are given for 2 nodes"),
        (("run", "nowhere.py"), "nowhere.py"),
        (("run", "no_sweep.py"), "no_sweep.py"),
        (("run", "empty_space.py"), "space"),
        (("run", "gang.py", "--cpus-per-node", "0.1"), "more than the nodes hold"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_refused_before_anything_starts(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], said: str
) -> None:
    workbench.write()
    (workbench.folder / "no_sweep.py").write_text("print('hello')\n")
    for name, settings in {
        "empty_space.py": "space={}",
        "gang.py": "space={'x': choice(1)}, workers=64",
    }.items():
        (workbench.folder / name).write_text(
            "from hera_specon import Sweep, choice, minimize\nfrom hera.workflows import Workflow\n"
            "with Workflow(generate_name='a-', entrypoint='a') as w:\n"
            f"    Sweep(name='a', image='i', command=['python'], objective=minimize('loss'), trials=3, {settings})\n"
        )
    monkeypatch.chdir(workbench.folder)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    done = CliRunner().invoke(main, args)
    # An error that nobody expected would be 1, and a traceback.
    assert done.exit_code == 2, done.output
    assert said in done.output
    assert not (workbench.folder / ".specon" / "runs").exists()
