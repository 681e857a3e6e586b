"""Published experiments are data: an entry of a text is an experiment, and one that nobody can read is refused."""

import pytest
from pydantic import ValidationError

from controllers.lab.simulation.experiments.published import read_experiments

ENTRY = """
[Z1]
title = "2 trials on one node"
jobs = ["vae-p", "gru-t"]
arrivals = { every_s = 50 }
nodes = 1
settings.specon = { alpha = 0.05, interval = 30 }
published = [{ policy = "default" }, { policy = "specon", faster = "1/2", measures = { best_trial = -0.3 } }]
"""


def test_an_entry_is_an_experiment() -> None:
    (experiment,) = read_experiments(ENTRY).values()

    assert (experiment.id, experiment.title) == ("Z1", "2 trials on one node")
    assert experiment.policies == ("default", "specon")
    assert (experiment.published[1].faster, experiment.published[1].measures) == (0.5, {"best_trial": -0.3})
    trials = experiment.workload(0).trials
    assert [(trial.id, trial.submitted_at) for trial in trials] == [("job-01-vae-p", 0.0), ("job-02-gru-t", 50.0)]


@pytest.mark.parametrize(
    ("right", "wrong", "place"),
    [
        ("nodes = 1", "nodes = 1\nworkers = 2", "Z1.workers"),
        ("every_s", "each_s", "Z1.arrivals"),
        ("nodes = 1", "nodes = 'one'", "Z1.nodes"),
        ('title = "2 trials on one node"', "", "Z1.title"),
        ('policy = "default"', "makespan_s = 3.0", "Z1.published.0.policy"),
    ],
)
def test_an_entry_that_is_none_is_refused_and_the_place_named(right: str, wrong: str, place: str) -> None:
    assert right in ENTRY
    with pytest.raises(ValidationError, match=place.replace(".", r"\.")):
        read_experiments(ENTRY.replace(right, wrong))
