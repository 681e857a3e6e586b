"""A sweep on this machine that learns from the one before."""

import json

import pytest

from tests.integration.workbench import Workbench, results

pytestmark = pytest.mark.slow

NODES = ("--nodes", "2", "--cpus-per-node", "0.4", "--plain", "--json", "out.json")


def test_a_search_goes_on_from_an_earlier_sweep_and_keeps_it_out_of_its_results(workbench: Workbench) -> None:
    workbench.write(steps=(15,), rates=(0.01, 0.02, 0.5))
    done = workbench.run("run", "sweep.py", *NODES)
    assert done.code == 0, done.output
    first = workbench.newest_run.name
    sweep = workbench.folder / "sweep.py"
    text = sweep.read_text().replace("Sweep, choice, every, minimize", "Sweep, choice, every, minimize, tpe, uniform")
    text = text.replace('"lr": choice(*(0.01, 0.02, 0.5))', '"lr": uniform(0.005, 0.1)')
    sweep.write_text(text.replace('search="grid"', 'search=tpe(n_startup_trials=2), trials=2, after="same experiment"'))

    unknown = workbench.run("run", "sweep.py", "--after", "nobody", *NODES)
    assert (unknown.code, workbench.newest_run.name) == (2, first), unknown.output
    assert "after= names 'nobody'" in unknown.output

    done = workbench.run("run", "sweep.py", "--policy", "ahead", *NODES)
    assert done.code == 0, done.output
    assert "learnt before: 3 trials of earlier sweeps" in done.output
    assert "the search takes 2, 1 with 'lr' outside of its bounds; 3 tell what a step costs" in done.output
    (run,) = results(workbench.folder / "out.json")
    assert len(run["trials"]) == 2
    known = json.loads((workbench.newest_run / "earlier.json").read_text())
    assert {trial["id"].rpartition(".")[2] for trial in known["descent"]} == {"t000", "t001", "t002"}

    by_name = workbench.run("run", "sweep.py", "--after", first, *NODES)
    assert by_name.code == 0, by_name.output
    assert "learnt before: 3 trials of earlier sweeps" in by_name.output
