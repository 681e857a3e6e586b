import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from controllers.core.expressions import gates
from controllers.core.labels import ANNOTATION_DEADLINE, ANNOTATION_FIRST_NODES, ANNOTATION_POLICY
from tests.hera_specon.cli.api_server import Cluster
from tests.hera_specon.cli.conftest import Specon
from tests.hera_specon.cli.submitted_sweep import CLAIM, SWEEP, WORKFLOWS, trial, written

pytestmark = pytest.mark.usefixtures("claim")


def test_a_sweep_goes_straight_to_the_api_server_as_it_was_written(
    specon_there: Specon, cluster: Cluster, sweep: str
) -> None:
    result = specon_there("submit", sweep)

    assert result.exit_code == 0, result.stderr
    assert cluster.asked[-1].path == WORKFLOWS
    assert cluster.asked[-1].headers["authorization"] == "Bearer kube-token"
    sent, wrote = cluster.created(), written(sweep)
    assert sent["metadata"].pop("namespace") == "lab"
    assert sent == wrote
    assert "Created workflow vae-x1 in namespace lab (uid uid-1)" in result.stdout
    assert "specon status vae-x1 -n lab --watch" in result.stdout
    assert result.stderr == ""


def test_a_sweep_goes_through_argo_server_with_a_token_and_fields_that_hera_does_not_know(
    specon_there: Specon, cluster: Cluster, tmp_path: Path, sweep: str
) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    file = tmp_path / "sweep.yaml"
    manifest = written(sweep)
    trial(manifest)["podResources"] = {"requests": {"cpu": "1"}}
    file.write_text(yaml.safe_dump(manifest))

    result = specon_there(
        *("submit", str(file), "-n", "team", "--argo-server", cluster.url, "--token-file", str(token), "--json")
    )

    assert result.exit_code == 0, result.stderr
    (asked,) = cluster.asked
    assert (asked.method, asked.path) == ("POST", "/api/v1/workflows/team")
    assert asked.headers["authorization"] == "Bearer secret"
    assert trial(cluster.created())["podResources"] == {"requests": {"cpu": "1"}}
    assert json.loads(result.stdout) == {
        "name": "vae-x1",
        "namespace": "team",
        "uid": "uid-1",
        "page": f"{cluster.url}/workflows/team/vae-x1",
    }
    assert "secret" not in result.output


def test_the_token_comes_from_the_environment_too(
    specon_there: Specon, cluster: Cluster, sweep: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGO_TOKEN", "Bearer from-there")

    assert specon_there("submit", sweep, "--argo-server", cluster.url).exit_code == 0
    assert cluster.asked[0].headers["authorization"] == "Bearer from-there"


@pytest.mark.parametrize("server", [["--argo-server"], []])
def test_a_refusal_is_told_with_the_servers_words(
    specon_there: Specon, cluster: Cluster, sweep: str, server: list[str]
) -> None:
    path = "/api/v1/workflows/lab" if server else WORKFLOWS
    cluster.refusals["POST", path] = 403

    result = specon_there("submit", sweep, "-n", "lab", *(server and [*server, cluster.url]))

    assert result.exit_code == 2
    assert "refused with 403" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_server_without_argo_is_named(specon_there: Specon, cluster: Cluster, sweep: str) -> None:
    cluster.refusals["POST", WORKFLOWS] = 404

    assert "is Argo installed there?" in specon_there("submit", sweep).stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--argo-server", "argo.lab:2746"], "not an address such as"),
        (["--argo-server", "http://argo.lab:2746"], "would carry your token unencrypted"),
        (["--argo-server", "https://argo.lab", "--context", "x"], "--context works only without"),
        (["--insecure-skip-tls-verify"], "--insecure-skip-tls-verify works only with"),
        (["--policy", "spcon"], "'spcon'"),
        (["-p", "epochs=1"], "no parameter 'epochs'"),
        (["--mlflow-tracking-uri", "http://localhost:5000"], "no pod can reach"),
        (["--image", ""], "names no image"),
        (["-n", "other"], "no PersistentVolumeClaim 'specon-state' in namespace 'other'"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_sent(
    specon_there: Specon,
    cluster: Cluster,
    sweep: str,
    options: list[str],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ARGO_TOKEN", "secret")

    result = specon_there("submit", sweep, *options)

    assert result.exit_code == 2
    assert told in result.stderr
    assert "secret" not in result.stderr
    assert not [asked for asked in cluster.asked if asked.method == "POST"]


@pytest.mark.parametrize("breaks", ["no workflows", "no claim", "no permission"])
def test_what_the_cluster_lacks_is_told_with_the_command_that_looks_into_it(
    specon_there: Specon, cluster: Cluster, sweep: str, breaks: str
) -> None:
    if breaks == "no claim":
        del cluster.objects[CLAIM]
    else:
        cluster.refusals["POST", WORKFLOWS] = 404 if breaks == "no workflows" else 403

    result = specon_there("submit", sweep, "--context", "here")

    assert result.exit_code == 2
    assert f"specon doctor -n lab {sweep} --context here" in result.stderr


def test_a_workflow_that_is_wrong_itself_needs_no_doctor(specon_there: Specon, cluster: Cluster, sweep: str) -> None:
    cluster.refusals["POST", WORKFLOWS] = 422

    assert "specon doctor" not in specon_there("submit", sweep).stderr


def test_a_certificate_that_nobody_vouches_for_is_not_trusted(
    specon_there: Specon, sweep: str, cluster: Cluster
) -> None:
    result = specon_there("submit", sweep, "--argo-server", cluster.url.replace("http://", "https://"))

    assert result.exit_code == 2
    assert cluster.asked == []


def test_a_sweep_without_a_shared_volume_for_its_state_is_refused_with_what_to_do(
    specon_there: Specon, cluster: Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "sweep.py"
    file.write_text(SWEEP.replace('state_claim="specon-state",', ""))

    result = specon_there("submit", str(file))

    assert result.exit_code == 2
    assert "no volume is mounted: a trial that moves loses them" in result.stderr
    assert "state_claim=" in result.stderr
    assert cluster.asked == []


def test_a_sweep_that_keeps_its_state_in_a_bucket_needs_no_volume(
    specon_there: Specon, cluster: Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "sweep.py"
    file.write_text(SWEEP.replace('state_claim="specon-state",', 'state="s3://bucket/sweeps",'))

    assert specon_there("submit", str(file)).exit_code == 0
    assert any(asked.path.endswith("/workflows") for asked in cluster.asked)


def test_a_sweep_that_keeps_its_state_in_a_folder_of_a_node_is_refused(
    specon_there: Specon, cluster: Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "sweep.py"
    file.write_text(SWEEP.replace('state_claim="specon-state",', 'state="file:///mnt/x",'))

    result = specon_there("submit", str(file))

    assert result.exit_code == 2
    assert "file:///mnt/x, a folder of whichever node it runs on" in result.stderr
    assert cluster.asked == []


def test_a_claim_of_one_node_at_a_time_is_warned_of(specon_there: Specon, cluster: Cluster, sweep: str) -> None:
    cluster.objects[CLAIM] = {"spec": {"accessModes": ["ReadWriteOnce"]}}

    result = specon_there("submit", sweep)

    assert result.exit_code == 0
    assert "ReadWriteOnce: one node at a time" in result.stderr


def test_a_claim_that_may_not_be_read_is_believed_in(specon_there: Specon, cluster: Cluster, sweep: str) -> None:
    cluster.refusals["GET", CLAIM] = 403

    result = specon_there("submit", sweep)

    assert (result.exit_code, result.stderr) == (0, "")


def test_wishes_change_what_they_name_and_nothing_else(specon_there: Specon, cluster: Cluster, sweep: str) -> None:
    specon_there(
        *("submit", sweep, "--policy", "flowcon:interval=7", "--image", "trainer:2", "-p", "data=faces"),
        *("--mlflow-tracking-uri", "http://mlflow.lab", "--gate-first"),
    )

    sent, wrote = cluster.created(), written(sweep)
    assert trial(sent)["metadata"]["annotations"].pop(ANNOTATION_POLICY) == "flowcon:interval=7"
    assert trial(sent)["container"].pop("image") == "trainer:2"
    told = [(each["name"], each.get("value")) for each in trial(sent)["container"].pop("env")]
    assert [name for name, _ in told].count("MLFLOW_TRACKING_URI") == 1
    address, reference = ("MLFLOW_TRACKING_URI", "http://mlflow.lab"), ("SPECON_TRACKING_URI", "$(MLFLOW_TRACKING_URI)")
    # Kubernetes expands a reference only to what stands before it.
    assert told.index(address) < told.index(reference)
    assert trial(sent)["podSpecPatch"] == trial(wrote)["podSpecPatch"].replace(gates("vae"), gates("vae", first=True))
    assert sent["spec"]["arguments"]["parameters"][0]["value"] == "faces"
    for manifest in (sent, wrote):
        manifest["metadata"].pop("namespace", None)
        manifest["spec"].pop("arguments")
        for field in ("image", "env"):
            trial(manifest)["container"].pop(field, None)
        trial(manifest).pop("podSpecPatch")
    assert sent == wrote


def test_first_attempts_begin_where_those_of_an_earlier_workflow_did(
    specon_there: Specon, cluster: Cluster, sweep: str
) -> None:
    cluster.objects[f"{WORKFLOWS}/vae-old"] = ran(written(sweep), {"t000": ["n1", "n2"], "t001": ["n3"]})

    result = specon_there("submit", sweep, "--first-nodes-of", "vae-old")

    assert result.exit_code == 0, result.stderr
    notes = cluster.created()["metadata"]["annotations"]
    assert json.loads(notes[ANNOTATION_FIRST_NODES]) == {"vae.t000": "n1", "vae.t001": "n3"}
    assert gates("vae", first=True) in trial(cluster.created())["podSpecPatch"]


def test_an_earlier_workflow_that_ran_nothing_of_the_sweep_is_refused(
    specon_there: Specon, cluster: Cluster, sweep: str
) -> None:
    cluster.objects[f"{WORKFLOWS}/vae-old"] = ran(written(sweep), {})

    result = specon_there("submit", sweep, "--first-nodes-of", "vae-old")

    assert result.exit_code == 2
    assert "'vae-old' has no trial of vae that ran" in result.stderr


def test_only_trials_that_an_earlier_workflow_lacks_are_sent(
    specon_there: Specon, cluster: Cluster, sweep: str
) -> None:
    cluster.objects[f"{WORKFLOWS}/vae-old"] = ran(written(sweep), {"t000": ["n1"], "t001": ["n3"]})
    all_there = specon_there("submit", sweep, "--extend", "vae-old")
    assert (all_there.exit_code, cluster.asked[-1].method) == (2, "GET")
    assert "raise trials= there" in all_there.stderr
    Path(sweep).write_text(SWEEP.replace("choice(0.1, 0.2)", "choice(0.1, 0.2, 0.3)"))

    result = specon_there("submit", sweep, "--extend", "vae-old")

    assert result.exit_code == 0, result.stderr
    (fan_out,) = [template for template in cluster.created()["spec"]["templates"] if template["name"] == "vae"]
    assert [item["trial"] for item in fan_out["steps"][0][0]["withItems"]] == ["t002"]


def test_a_dry_run_prints_what_it_would_send_and_sends_nothing(
    specon_there: Specon, cluster: Cluster, sweep: str
) -> None:
    result = specon_there("submit", sweep, "--dry-run", "-n", "team")

    assert cluster.asked == []
    printed = yaml.safe_load(result.stdout)
    assert printed["metadata"].pop("namespace") == "team"
    assert printed == written(sweep)


@pytest.mark.parametrize(("phase", "code"), [("Succeeded", 0), ("Failed", 1)])
def test_waiting_ends_with_the_workflow_and_as_it_did(
    specon_there: Specon, cluster: Cluster, sweep: str, phase: str, code: int
) -> None:
    cluster.status = {"phase": phase, "progress": "2/2", "message": "child failed"}

    result = specon_there("submit", sweep, "--wait")

    assert result.exit_code == code
    assert f"vae-x1: {phase}\n" in result.stderr
    assert ("child failed" in result.stderr) == bool(code)


def ran(manifest: dict[str, Any], nodes: dict[str, list[str]]) -> dict[str, Any]:
    """The workflow as the cluster has it after its trials ran on ``nodes``, one for each attempt."""
    status: dict[str, Any] = {"entry": {"name": "vae-old", "type": "Steps", "templateName": "vae"}}
    for number, (name, hosts) in enumerate(nodes.items()):
        tries = {f"{name}-{i}": host for i, host in enumerate(hosts)}
        inputs = {"parameters": [{"name": "trial", "value": name}, {"name": "params", "value": "{}"}]}
        about = {
            "name": f"vae-old[0].trial({number})",
            "templateName": "vae-trial",
            "phase": "Succeeded",
            "inputs": inputs,
        }
        status[name] = {**about, "type": "Retry", "children": list(tries)}
        for key, host in tries.items():
            status[key] = {**about, "name": f"{about['name']}({key[-1]})", "type": "Pod", "hostNodeName": host}
    metadata = {"name": "vae-old", "namespace": "lab", "uid": "uid-0", "creationTimestamp": "2024-01-01T00:00:00Z"}
    over = {"phase": "Succeeded", "finishedAt": "2024-01-01T01:00:00Z", "nodes": status}
    return {**manifest, "metadata": metadata, "status": over}


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (
            ["--policy", "specon+flowcon"],
            "sets deadline=, but policy specon+flowcon does not use it; policies that use it: deadline, edf",
        ),
        ([], "names no policy, and the controller's own may not use it"),
        (["--policy", "deadline"], ""),
        (["--policy", "edf+flowcon"], ""),
    ],
)
def test_a_goal_that_the_policy_does_not_go_by_is_told_at_once(
    specon_there: Specon, cluster: Cluster, sweep: str, policy: list[str], told: str
) -> None:
    Path(sweep).write_text(SWEEP.replace('search="grid"', 'search="grid", deadline="90m"'))

    result = specon_there("submit", sweep, *policy)

    assert (result.exit_code, cluster.asked[-1].path) == (0, WORKFLOWS)
    assert told in result.stderr
    assert bool(result.stderr) == bool(told)


@pytest.mark.parametrize(("deadline", "told"), [("-300", "above 0, not -300"), ("yesterday", "not 'yesterday'")])
def test_a_goal_written_by_hand_that_cannot_be_is_refused_with_its_value(
    specon_there: Specon, cluster: Cluster, tmp_path: Path, sweep: str, deadline: str, told: str
) -> None:
    manifest, file = written(sweep), tmp_path / "sweep.yaml"
    trial(manifest)["metadata"]["annotations"][ANNOTATION_DEADLINE] = deadline
    file.write_text(yaml.safe_dump(manifest))

    result = specon_there("submit", str(file))

    assert (result.exit_code, cluster.asked) == (2, [])
    assert f"annotation {ANNOTATION_DEADLINE}" in result.stderr
    assert told in result.stderr


def test_a_search_that_no_controller_takes_is_refused_and_one_machine_may_run_it(
    specon_there: Specon, cluster: Cluster, sweep: str
) -> None:
    dear = "search=tpe(n_ei_candidates=10_000), trials=500"
    Path(sweep).write_text(SWEEP.replace('search="grid"', dear).replace("import Sweep", "import tpe, Sweep"))
    told = specon_there("submit", sweep).stderr
    assert "the controller of a cluster allows" in told
    assert not [one for one in cluster.asked if one.method == "POST"]


@pytest.mark.parametrize("way", [(), ("--dry-run",)])
def test_a_sweep_too_large_for_argos_record_is_refused_before_it_is_sent_unless_that_is_offloaded(
    specon_there: Specon, cluster: Cluster, sweep: str, way: tuple[str, ...]
) -> None:
    large = "space={'lr': log_uniform(1e-4, 1)}, trials=4000"
    written_so = SWEEP.replace('space={"lr": choice(0.1, 0.2)},\n        search="grid"', large)
    Path(sweep).write_text(written_so.replace("choice, ", "log_uniform, "))

    refused = specon_there("submit", sweep, *way)
    assert refused.exit_code == 2
    assert "4,000 trials are too many for one workflow" in refused.stderr
    assert not [one for one in cluster.asked if one.method == "POST"]

    assert specon_there("submit", sweep, "--offloaded", *way).exit_code == 0


def test_waiting_says_that_objectives_were_not_looked_at_where_argo_offloads_its_record(
    specon_there: Specon, cluster: Cluster, sweep: str
) -> None:
    cluster.status = {"phase": "Succeeded", "offloadNodeStatusVersion": "fnv:1234567"}
    result = specon_there("submit", sweep, "--wait")
    assert result.exit_code == 0
    assert "whether trials lack their objective is not known here" in result.stderr
