"""What is asked of thousands of trials of a workflow reaches its controller whole, or the command says why not."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from controllers.cluster.campaign_run import first_nodes
from controllers.core import trial_lists
from controllers.core.actions import Stop
from controllers.core.annotations import (
    MOST_OF_A_LIST,
    MOST_OF_AN_OBJECT,
    MOST_OF_ONE,
    SHORT_REASON,
    AnnotationError,
    check_fits,
    check_room_for_stops,
    size_of,
)
from controllers.core.asks import asks_in
from controllers.core.labels import ANNOTATION_ASKED, ANNOTATION_FIRST_NODES, ANNOTATION_POLICY, ANNOTATION_STOP
from controllers.core.model import Ask, TrialId
from controllers.worlds.argo.reading.workflows import project_workflow, record_of
from hera_specon.errors import SubmissionError
from hera_specon.submission.edits import Overrides, edit_manifest
from tests.controllers.cluster.clusters_in_memory import campaign
from tests.controllers.worlds.argo.conftest import Bench, bench, fake, pods  # noqa: F401 - fixtures
from tests.controllers.worlds.argo.objects import pod, steps, template, trial
from tests.controllers.worlds.argo.objects import workflow as steered
from tests.hera_specon.cli.api_server import Cluster, running
from tests.hera_specon.cli.cluster_objects import WORKFLOWS, listed, workflow
from tests.hera_specon.cli.conftest import Specon, specon_there  # noqa: F401 - a fixture

MANY = 2000


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with running() as there:
        yield there


def hold(cluster: Cluster, trials: int, annotations: Mapping[str, str] | None = None, begun: int | None = None) -> None:
    """Let the API server hold a workflow of so many trials; Argo has ``begun`` the first of them."""
    held = workflow(annotations=dict(annotations or {}))
    held["status"]["nodes"] = {
        f"step{number}": {
            "name": f"vae-x1[0].vae({number})",
            "type": "Retry",
            "phase": "Running",
            "templateName": "vae-trial",
            "inputs": {"parameters": [{"name": "trial", "value": f"t{number:04}"}, {"name": "params", "value": "{}"}]},
        }
        for number in range(trials if begun is None else begun)
    }
    cluster.objects[WORKFLOWS] = listed(held)
    cluster.objects[f"{WORKFLOWS}/vae-x1"] = held


def written(cluster: Cluster) -> dict[str, str | None]:
    """What the last command wrote on the workflow, which has it from then on."""
    patch = [asked.body for asked in cluster.asked if asked.method == "PATCH"][-1]
    found: dict[str, str | None] = patch["metadata"]["annotations"]
    cluster.objects[f"{WORKFLOWS}/vae-x1"]["metadata"]["annotations"].update(found)
    return found


def seen(cluster: Cluster) -> dict[str, Ask]:
    """What a controller reads of it."""
    record = project_workflow(cluster.objects[f"{WORKFLOWS}/vae-x1"])
    assert record is not None
    return asks_in(record.annotations.get(ANNOTATION_ASKED, ""))


def numbered(trials: int) -> list[str]:
    return [f"vae.t{number:04}" for number in range(trials)]


@pytest.mark.parametrize("trials", [150, 300, MANY])
@pytest.mark.parametrize("command", ["pause", "stop"])
def test_all_trials_of_a_large_sweep_are_asked(
    specon_there: Specon,  # noqa: F811
    cluster: Cluster,
    command: str,
    trials: int,
) -> None:
    hold(cluster, trials)
    result = specon_there(command, "vae-x1", "--all")
    assert result.exit_code == 0, result.stderr
    assert size_of({name: value or "" for name, value in written(cluster).items()}) < MOST_OF_AN_OBJECT // 4
    assert seen(cluster) == dict.fromkeys(numbered(trials), Ask(command))


def test_the_next_command_keeps_what_was_asked_before(specon_there: Specon, cluster: Cluster) -> None:  # noqa: F811
    hold(cluster, MANY)
    specon_there("stop", "vae-x1", *(f"t{number:04}" for number in range(0, MANY, 2)))
    written(cluster)
    assert specon_there("pause", "vae-x1", "--all").exit_code == 0
    written(cluster)
    wanted = {name: Ask.PAUSE if number % 2 else Ask.STOP for number, name in enumerate(numbered(MANY))}
    assert seen(cluster) == wanted
    assert specon_there("resume", "vae-x1", "--trial", "t0001").exit_code == 0
    written(cluster)
    assert seen(cluster) == {name: ask for name, ask in wanted.items() if name != "vae.t0001"}


def test_a_stop_of_a_trial_that_has_not_begun_is_kept(specon_there: Specon, cluster: Cluster) -> None:  # noqa: F811
    hold(cluster, 9, {ANNOTATION_ASKED: '{"vae.t0007": "stop"}'}, begun=2)
    assert specon_there("pause", "vae-x1", "t0001").exit_code == 0
    written(cluster)
    assert seen(cluster) == {"vae.t0007": Ask.STOP, "vae.t0001": Ask.PAUSE}


def test_stops_that_leave_no_room_for_their_marks_are_refused_before_anything_is_written(
    specon_there: Specon,  # noqa: F811
    cluster: Cluster,
) -> None:
    hold(cluster, MANY, {f"hera-specon.io/note-{number}": "x" * 4000 for number in range(60)})
    result = specon_there("stop", "vae-x1", "--all")
    assert result.exit_code == 2
    assert f"the marks of {MANY} stopped trials take" in result.stderr
    assert str(MOST_OF_AN_OBJECT) in result.stderr
    assert [asked for asked in cluster.asked if asked.method == "PATCH"] == []


def test_a_policy_that_no_controller_would_read_is_refused(specon_there: Specon, cluster: Cluster) -> None:  # noqa: F811
    hold(cluster, 1)
    long = "specon+" * 800 + "specon"
    result = specon_there("set-policy", "vae-x1", long)
    assert result.exit_code == 2
    assert [asked for asked in cluster.asked if asked.method == "PATCH"] == []
    with pytest.raises(AnnotationError, match=f"{MOST_OF_ONE}"):
        check_fits({ANNOTATION_POLICY: "x" * (MOST_OF_ONE + 1)}, {}, "the policy")


def manifest() -> dict[str, Any]:
    return workflow()


@pytest.mark.parametrize("trials", [150, MANY, 10_000])
def test_the_first_nodes_of_a_large_sweep_reach_the_controller(trials: int) -> None:
    nodes = {f"vae.t{number:05}": f"ip-10-0-{number * 7 % 40}.eu-central-1.compute" for number in range(trials)}
    made = edit_manifest(manifest(), Overrides(first_nodes=nodes))
    record = record_of(made)
    assert record is not None
    assert first_nodes(campaign(annotations=record.annotations)) == nodes


def test_first_nodes_that_do_not_fit_are_refused_with_their_number_and_the_limit() -> None:
    nodes = {f"vae.t{number:05}": f"node-{number}-" + "x" * 40 for number in range(5000)}
    with pytest.raises(SubmissionError, match=f"first nodes of 5000 trials.*{MOST_OF_A_LIST}"):
        edit_manifest(manifest(), Overrides(first_nodes=nodes))


def test_what_a_list_says_of_trials_is_read_back_whatever_they_are_called() -> None:
    numbers = ("t009", "t010", "t011", "lr-0.1", "x", "7", "8", "9", "10")
    names = ["a", "b.t011", *(f"vae.{number}" for number in numbers)]
    said = {name: f"word{len(name)}" for name in names}
    assert trial_lists.read(trial_lists.write(said), 10_000) == said
    long = {f"{'y' * 40}{name}.t{number:03}": "stop" for name in "abc" for number in range(0, 999, 2)}
    text = trial_lists.write(long)
    assert len(text) < len(json.dumps(long)) // 5
    assert trial_lists.read(text, MOST_OF_AN_OBJECT) == long


@pytest.mark.parametrize(
    "key",
    ["vae.t000000000:t999999999", ",".join(["vae.t00000:t19999", *["t00000:t19999"] * 5000]), "v." + "," * 90_000],
)
def test_a_list_that_names_more_trials_than_there_may_be_is_read_so_far(key: str) -> None:
    assert len(trial_lists.read(json.dumps({key: "stop"}), MOST_OF_AN_OBJECT)) <= trial_lists.MOST_TRIALS


@pytest.mark.parametrize("key", ["vae.t9:t1", "vae.t1:x9", "vae.t01:t9", "vae.:", "vae.t1:t2:t3"])
def test_a_list_that_is_no_sequence_names_nobody(key: str) -> None:
    assert trial_lists.read(json.dumps({key: "stop"}), 100) == {}


def test_the_marks_of_two_thousand_stops_fit_whatever_the_sweep_is_called() -> None:
    check_room_for_stops((("x" * 55, f"t{number:04}") for number in range(MANY)), {})


def test_of_a_large_sweep_the_reasons_of_stops_are_short(bench: Bench) -> None:  # noqa: F811
    crowd = [f"t{number:04}" for number in range(4000)]
    nodes = {key: value for name in ["a", *crowd] for key, value in steps(name, "Running", ("n1", None)).items()}
    bench.put("workflows", steered(nodes, templates=[template(name) for name in ["a", *crowd]]))
    bench.put("pods", pod(on="n1"))
    bench.begin()
    assert bench.world.apply(Stop(TrialId(trial("a")), "its owner wants that, for many reasons")).done
    bench.until(lambda: marks(bench).get(f"{ANNOTATION_STOP}sweep-a") == SHORT_REASON)


def test_a_stop_whose_mark_does_not_fit_is_refused(bench: Bench) -> None:  # noqa: F811
    made = steered(steps("a", "Running", ("n1", None)))
    made["metadata"]["annotations"] |= {f"hera-specon.io/note-{number}": "x" * 4011 for number in range(65)}
    bench.put("workflows", made)
    bench.put("pods", pod(on="n1"))
    bench.begin()
    outcome = bench.world.apply(Stop(TrialId(trial("a")), "enough"))
    assert (outcome.done, str(MOST_OF_AN_OBJECT) in outcome.detail) == (False, True)


def marks(bench: Bench) -> dict[str, str]:  # noqa: F811
    (held,) = bench.fake.store.objects["workflows"].values()
    found: dict[str, str] = held["metadata"]["annotations"]
    return found


def test_a_workflow_with_long_annotations_counts_with_them() -> None:
    made = steered(steps("a", "Running", ("n1", None)))
    plain = record_of(made)
    made["metadata"]["annotations"][ANNOTATION_FIRST_NODES] = "x" * 200_000
    heavy = record_of(made)
    assert plain is not None
    assert heavy is not None
    assert heavy.weight > plain.weight + 150
    assert replace(heavy, annotations=plain.annotations).weight == plain.weight
