"""Trials that a policy pauses or ends early on this machine, a search, and what is trained to its end after all."""

from pathlib import Path

import pytest

from controllers.record.timeline import read_timeline
from tests.integration.workbench import Workbench, assert_whole, results

pytestmark = pytest.mark.slow

NODES = ("--nodes", "2", "--cpus-per-node", "0.4", "--plain")
PROMOTE = "promote:rungs=best,interval=1+ahead"


def test_trials_that_fall_behind_are_ended_and_can_be_trained_to_their_end(workbench: Workbench) -> None:
    workbench.write(steps=(120,), rates=(0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.007, 0.01, 0.02, 0.04))
    sweep = workbench.folder / "sweep.py"
    # Four at a time: those that wait have the cores that stand idle at the end only, too briefly for all of them.
    sweep.write_text(sweep.read_text().replace('cpu_request="50m"', 'cpu_request="200m"'))
    done = workbench.run("run", "sweep.py", "--policy", PROMOTE, "--json", "out.json", *NODES)
    assert done.code == 0, done.output
    (run,) = results(workbench.folder / "out.json")
    ended = {trial["id"]: trial for trial in run["trials"]}
    stopped = {name: trial["stopped"] for name, trial in ended.items() if trial["stopped"]}
    assert 0 < len(stopped) < 10, done.output
    assert all(trial["succeeded"] for trial in run["trials"])
    # The fastest learner is never given up.
    best = max(ended.values(), key=lambda trial: trial["params"]["lr"])
    assert not best["stopped"]
    tags = workbench.run_tags()
    outcomes = {name.rpartition(".")[2]: tag.get("specon.outcome", "") for name, tag in tags.items()}
    assert {name for name, outcome in outcomes.items() if outcome == "stopped"} == {
        name.rpartition(".")[2] for name in stopped
    }
    page = (workbench.newest_run / "report.html").read_text()
    assert "Not trained to their end" in page
    assert "The best model so far" in page

    listed = workbench.run("resume", workbench.newest_run.name, "--all", "--dry-run")
    assert listed.code == 0, listed.output
    assert all(name in listed.output for name in stopped)
    resumed = workbench.run("resume", workbench.newest_run.name, "--all", "--plain")
    assert resumed.code == 0, resumed.output
    assert_whole(workbench.histories(), {120: 10})
    again = workbench.run("resume", workbench.newest_run.name, "--all", "--plain")
    assert again.code == 2
    assert "Nothing to resume" in again.output


def test_what_a_promise_came_to_is_told_at_the_end_of_a_run_and_on_its_page(workbench: Workbench) -> None:
    workbench.write(steps=(60,), rates=(0.001, 0.0011, 0.0012, 0.0013, 0.0014, 0.02, 0.04, 0.0015))
    sweep = workbench.folder / "sweep.py"
    sweep.write_text(sweep.read_text().replace('cpu_request="50m"', 'cpu_request="200m"'))
    done = workbench.run("run", "sweep.py", "--policy", "promote:finish=fast,interval=1", "--json", "out.json", *NODES)
    assert done.code == 0, done.output
    assert "in about 20 % of all sweeps, on average over kinds of training" in " ".join(done.output.split())
    (run,) = results(workbench.folder / "out.json")
    (told,) = run["promises"].values()
    stopped = [trial for trial in run["trials"] if trial["stopped"]]
    assert 0 < len(stopped) == told["stopped"]
    assert told["trained"] == len(run["trials"]) - len(stopped)
    page = (workbench.newest_run / "report.html").read_text()
    assert "the promised risk of 20 % is kept" in page


def test_a_search_gives_trials_their_hyperparameters_as_they_start(workbench: Workbench) -> None:
    workbench.write(steps=(40,), wishes="trials=8, seed=3,")
    text = (workbench.folder / "sweep.py").read_text()
    text = text.replace('search="grid"', "search=tpe(n_startup_trials=3)")
    text = text.replace(
        "import Sweep, choice, every, minimize", "import Sweep, choice, every, log_uniform, minimize, tpe"
    )
    text = text.replace('"lr": choice(*(0.01, 0.02, 0.03))', '"lr": log_uniform(1e-3, 1e-1)')
    text = text.replace('cpu_request="50m"', 'cpu_request="200m"')
    (workbench.folder / "sweep.py").write_text(text)
    done = workbench.run("run", "sweep.py", "--policy", "default", "--json", "out.json", *NODES)
    assert done.code == 0, done.output
    (run,) = results(workbench.folder / "out.json")
    rates = [trial["params"]["lr"] for trial in run["trials"]]
    assert len(set(rates)) == 8
    assert all(1e-3 <= rate <= 1e-1 for rate in rates)
    assert {trial["params"]["steps"] for trial in run["trials"]} == {40}
    for trial in run["trials"]:
        assert trial["final_metric"] == pytest.approx((1 - trial["params"]["lr"]) ** 80, rel=1e-9)

    (workbench.folder / "sweep.py").write_text(text.replace("trials=8", "trials=10"))
    more = workbench.run("run", "sweep.py", "--extend", "--json", "out.json", *NODES)
    assert more.code == 0, more.output
    (extended,) = results(workbench.folder / "out.json")
    assert extended["trials"][:8] == run["trials"]
    assert len({trial["params"]["lr"] for trial in extended["trials"]}) == 10


def test_trials_wait_and_end_when_their_owner_asks_for_it(workbench: Workbench) -> None:
    # Long enough for two commands to start on a busy machine before the first trial ends.
    workbench.write(steps=(400,), rates=(0.001, 0.002, 0.005))
    process = workbench.start("run", "sweep.py", "--policy", "default", "--json", "out.json", *NODES)
    try:
        workbench.wait_for(lambda: workbench.steps_journalled() > 30)
        run = workbench.newest_run.name
        assert workbench.run("pause", run, "t000").code == 0
        assert workbench.run("stop", run, "t001").code == 0
        timeline = next(workbench.newest_run.glob("*/timeline.jsonl"))
        workbench.wait_for(lambda: {"suspended", "stopped"} <= _phases(timeline))
        # The sweep does not end before the one that waits may go on.
        assert process.poll() is None
        assert workbench.run("resume", run, "--all").code == 0
        output, _ = process.communicate(timeout=200)
    finally:
        process.kill()
    assert process.returncode == 0, output
    (found,) = results(workbench.folder / "out.json")
    trials = {trial["id"].rpartition(".")[2]: trial for trial in found["trials"]}
    assert (trials["t000"]["suspensions"], trials["t001"]["stopped"]) == (1, "its owner asked for it")
    histories = {name.rpartition(".")[2]: steps for name, steps in workbench.histories().items()}
    assert histories["t000"] == histories["t002"] == list(range(400))
    assert len(histories["t001"]) < 400


def _phases(timeline: Path) -> set[str]:
    return {event.phase for event in read_timeline(timeline) if event.phase}
