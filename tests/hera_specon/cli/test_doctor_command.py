"""``specon doctor`` against an API server of our own, behind which the program of the try-out really runs."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hera_specon.cli import main
from hera_specon.doctor.tryout import running
from tests.hera_specon.cli.api_server import serving, write_kubeconfig
from tests.hera_specon.cli.submitted_sweep import SWEEP
from tests.hera_specon.doctor.fake_cluster import (
    ACCOUNT_REVIEWS,
    DEPLOYMENTS,
    SETTINGS,
    WORKFLOWS,
    DoctoredCluster,
    listed,
    mlflow,
    node,
)

HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202eevil"


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DoctoredCluster]:
    with serving(DoctoredCluster(folder=tmp_path)) as cluster:
        monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path, cluster.url)))
        monkeypatch.setattr(running, "_SETTLES_S", 0.0)  # seconds of each test
        (tmp_path / "volume").mkdir()
        monkeypatch.chdir(tmp_path)
        yield cluster
        if cluster.program is not None:
            cluster.program.kill()
            cluster.program.wait()


@pytest.fixture
def sweep(tmp_path: Path) -> Iterator[str]:
    file = tmp_path / "sweep.py"
    with mlflow() as address:
        # As no pod could: the pod of this test is a process of this machine.
        file.write_text(SWEEP.replace('search="grid",', f'search="grid", mlflow_tracking_uri="{address}",'))
        yield str(file)


def doctor(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["doctor", *arguments])


def found(*arguments: str) -> dict[str, dict[str, Any]]:
    result = doctor(*arguments, "--json")
    told = json.loads(result.stdout)
    assert result.exit_code == (1 if told["verdict"] == "fault" else 0), result.output
    return {finding["subject"]: finding for finding in told["findings"]}


def verdicts(*arguments: str) -> dict[str, str]:
    return {subject: finding["verdict"] for subject, finding in found(*arguments).items()}


def test_a_healthy_cluster_is_ok_from_the_version_to_the_checkpoints(cluster: DoctoredCluster, sweep: str) -> None:
    told = found(sweep)
    # The pod of this test reaches no API server by https, and MLflow is on this very machine.
    amiss = {name: one for name, one in told.items() if one["verdict"] != "ok"}
    assert amiss.keys() == {"clock", "sweep"}, amiss
    assert "which no pod can reach" in amiss["sweep"]["found"]
    assert told["MLflow"]["found"] == "127.0.0.1 answers a pod (MLflow 3.17.0)"
    assert "can write to" in told["checkpoints"]["found"]
    assert told["resize tried"]["found"].startswith("the pod was resized in place")
    assert {"gate", "executor", "Kubernetes", "Argo's version", "controller"} <= told.keys()
    assert (cluster.workflow, len(cluster.removed), cluster.cpu) == (None, 1, "100m")
    assert not list((cluster.folder / "volume").iterdir())


def test_an_image_without_a_sweep_is_tried_out_and_warnings_are_no_fault(cluster: DoctoredCluster) -> None:
    result = doctor("--image", "trainer:1")

    assert result.exit_code == 0, result.output
    assert "a pod ran in" in result.stdout
    assert "try-out specon-doctor-" in result.stderr
    assert result.stdout.rstrip().splitlines()[-1].count(" ok, ") == 1
    (made,) = [asked.body for asked in cluster.asked if asked.path == WORKFLOWS and asked.method == "POST"]
    assert made["spec"]["templates"][0]["container"]["image"] == "trainer:1"


def test_no_pod_changes_nothing(cluster: DoctoredCluster, sweep: str) -> None:
    assert verdicts(sweep, "--no-pod")["try-out"] == "cannot tell"
    changes = {asked.path for asked in cluster.asked if asked.method != "GET"}
    assert all("accessreviews" in path for path in changes), changes


def test_without_a_file_and_an_image_it_says_how_to_try_one(cluster: DoctoredCluster) -> None:
    assert found()["try-out"]["command"] == "specon doctor -n lab SWEEP.py"
    assert not cluster.removed


def no_version(cluster: DoctoredCluster) -> None:
    cluster.refusals["GET", "/version"] = 503


def old_version(cluster: DoctoredCluster) -> None:
    cluster.objects["/version"] = {"major": "1", "minor": "32+", "gitVersion": "v1.32.9-eks-1"}


def no_namespace(cluster: DoctoredCluster) -> None:
    del cluster.objects["/api/v1/namespaces/lab"]


def no_resize(cluster: DoctoredCluster) -> None:
    cluster.objects["/api/v1"] = {"resources": [{"name": "pods", "verbs": ["get"]}]}


def old_node(cluster: DoctoredCluster) -> None:
    cluster.objects["/api/v1/nodes"] = listed(node(), node("n2", "v1.31.1"))


def no_argo(cluster: DoctoredCluster) -> None:
    del cluster.objects["/apis/argoproj.io/v1alpha1"]


def dead_argo(cluster: DoctoredCluster) -> None:
    cluster.objects[DEPLOYMENTS]["items"][0] |= {"status": {}}


def no_controller(cluster: DoctoredCluster) -> None:
    del cluster.objects[DEPLOYMENTS]["items"][1]


def recommending(cluster: DoctoredCluster) -> None:
    cluster.objects[SETTINGS]["data"]["SPECON_CONTROLLER_RECOMMEND"] = "true"


def other_namespaces(cluster: DoctoredCluster) -> None:
    cluster.objects[SETTINGS]["data"]["SPECON_CONTROLLER_NAMESPACE"] = "other"


def may_not_create(cluster: DoctoredCluster) -> None:
    cluster.denied.add("create workflows")


def may_not_stop(cluster: DoctoredCluster) -> None:
    cluster.denied.add("patch workflows")


def no_executor_role(cluster: DoctoredCluster) -> None:
    cluster.account_denied.add("patch workflowtaskresults")


def no_account(cluster: DoctoredCluster) -> None:
    del cluster.objects["/api/v1/namespaces/lab/serviceaccounts/default"]


def full_quota(cluster: DoctoredCluster) -> None:
    status = {"hard": {"requests.cpu": "2"}, "used": {"requests.cpu": "1500m"}}
    cluster.objects["/api/v1/namespaces/lab/resourcequotas"] = listed({"metadata": {"name": "q"}, "status": status})


def high_minimum(cluster: DoctoredCluster) -> None:
    bounds = [{"type": "Container", "min": {"cpu": "100m"}}]
    cluster.objects["/api/v1/namespaces/lab/limitranges"] = listed(
        {"metadata": {"name": "l"}, "spec": {"limits": bounds}}
    )


def kueue_default(cluster: DoctoredCluster) -> None:
    cluster.objects["/apis/kueue.x-k8s.io"] = {"preferredVersion": {"version": "v1beta1"}}
    queues = "/apis/kueue.x-k8s.io/v1beta1/namespaces/lab/localqueues"
    cluster.objects[queues] = listed({"metadata": {"name": "default"}})


def no_claim(cluster: DoctoredCluster) -> None:
    del cluster.objects["/api/v1/namespaces/lab/persistentvolumeclaims/specon-state"]


@pytest.mark.parametrize(
    ("breaks", "subject", "verdict", "words"),
    [
        (no_version, "API server", "fault", "kubectl cluster-info"),
        (old_version, "Kubernetes", "fault", "v1.32.9-eks-1"),
        (no_namespace, "namespace", "fault", "kubectl create namespace lab"),
        (no_resize, "resize in place", "warning", "InPlacePodVerticalScaling"),
        (old_node, "nodes", "warning", "n2"),
        (no_argo, "Argo's API", "fault", "install.yaml"),
        (dead_argo, "workflow-controller", "fault", "kubectl describe deployment workflow-controller -n argo"),
        (no_controller, "controller", "warning", "deploy-the-controller"),
        (recommending, "controller", "warning", "only recommends"),
        (other_namespaces, "controller", "warning", "steers other, and not lab"),
        (may_not_create, "you: specon submit", "fault", "--verb=create --resource=workflows.argoproj.io"),
        (may_not_stop, "you: specon pause, resume, stop and set-policy", "warning", "--verb=patch"),
        (no_executor_role, "service account", "fault", "--serviceaccount=lab:default"),
        (no_account, "service account", "fault", "kubectl create serviceaccount default -n lab"),
        (full_quota, "quota q", "fault", "0 of 2 pods of vae fit at once"),
        (high_minimum, "limit range l", "fault", "0.1 cores at least"),
        (kueue_default, "Kueue", "warning", "Kueue deletes a pod that is resized"),
        (no_claim, "claim specon-state", "fault", "no PersistentVolumeClaim 'specon-state'"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_broken_is_told_with_what_to_do(
    cluster: DoctoredCluster,
    sweep: str,
    breaks: Callable[[DoctoredCluster], None],
    subject: str,
    verdict: str,
    words: str,
) -> None:
    assert verdicts(sweep, "--no-pod").get(subject, "ok") == "ok"
    breaks(cluster)

    told = found(sweep, "--no-pod")

    assert told[subject]["verdict"] == verdict, told
    assert told[subject]["advice"]
    assert words in json.dumps(told[subject])


@pytest.mark.parametrize("refused", [("GET", "/api/v1/nodes"), ("GET", DEPLOYMENTS), ("POST", ACCOUNT_REVIEWS)])
def test_what_may_not_be_read_is_no_fault(cluster: DoctoredCluster, refused: tuple[str, str]) -> None:
    cluster.refusals[refused] = 403

    told = verdicts("--no-pod")

    assert "cannot tell" in told.values()
    assert "fault" not in told.values()


def test_mlflow_that_is_away_is_found_from_within_the_pod(cluster: DoctoredCluster, sweep: str) -> None:
    told = found(sweep, "--mlflow-tracking-uri", "http://127.0.0.1:1")

    assert told["MLflow"]["verdict"] == "fault"
    assert "refused" in told["MLflow"]["found"]
    assert told["checkpoints"]["verdict"] == "ok"
    assert len(cluster.removed) == 1


@pytest.mark.usefixtures("cluster")
def test_a_name_that_no_pod_finds_is_told(sweep: str) -> None:
    told = found(sweep, "--mlflow-tracking-uri", "http://mlflow.nowhere.invalid:5000")

    assert told["DNS"]["verdict"] == "fault"
    assert "mlflow.nowhere.invalid" in told["DNS"]["found"]


@pytest.mark.usefixtures("cluster")
def test_mlflow_that_wants_a_login_is_told(sweep: str) -> None:
    with mlflow(403) as address:
        told = found(sweep, "--mlflow-tracking-uri", address)

    assert told["MLflow"]["verdict"] == "fault"
    assert "answers 403" in told["MLflow"]["found"]


def test_a_volume_that_cannot_be_written_to_is_told(cluster: DoctoredCluster, sweep: str) -> None:
    (cluster.folder / "volume").rmdir()

    told = found(sweep)

    assert told["checkpoints"]["verdict"] == "fault"
    assert "No such file" in told["checkpoints"]["found"]


def test_an_executor_that_may_not_report_is_told_with_the_role_it_needs(cluster: DoctoredCluster, sweep: str) -> None:
    cluster.refusals["POST", ACCOUNT_REVIEWS] = 403  # so that only the pod shows it
    cluster.status = {"phase": "Error", "message": "workflowtaskresults.argoproj.io is forbidden: cannot create"}

    told = found(sweep)

    assert told["service account"]["verdict"] == "fault"
    assert "--serviceaccount=lab:default" in told["service account"]["command"]
    assert told["MLflow"]["verdict"] == "ok"


def test_argo_that_takes_no_notice_is_told_in_time(cluster: DoctoredCluster, sweep: str) -> None:
    cluster.argo = False
    began = time.monotonic()

    told = found(sweep, "--timeout", "10")

    assert told["try-out"]["verdict"] == "fault"
    assert "took no notice" in told["try-out"]["found"]
    assert time.monotonic() - began < 60
    assert len(cluster.removed) == 1


@pytest.mark.parametrize(
    ("waits", "words"),
    [
        (
            {
                "containerStatuses": [
                    {"name": "main", "state": {"waiting": {"reason": "ErrImagePull", "message": "no such"}}}
                ]
            },
            "ErrImagePull: no such",
        ),
        (
            {
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": 'persistentvolumeclaim "specon-state" not found',
                    }
                ]
            },
            "persistentvolumeclaim",
        ),
    ],
    ids=["image", "claim"],
)
def test_a_pod_that_waits_for_what_never_comes_is_not_waited_for(
    cluster: DoctoredCluster, sweep: str, waits: dict[str, Any], words: str
) -> None:
    cluster.waits = waits
    began = time.monotonic()

    told = found(sweep, "--timeout", "600")

    assert words in told["try-out"]["found"]
    assert told["try-out"]["verdict"] == "fault"
    assert time.monotonic() - began < 120
    assert len(cluster.removed) == 1


@pytest.mark.parametrize(("code", "words"), [(403, "refused it"), (422, "refused it")])
def test_a_resize_that_is_refused_costs_no_trial(cluster: DoctoredCluster, sweep: str, code: int, words: str) -> None:
    cluster.refusals["PATCH", "resize"] = code

    told = found(sweep)["resize tried"]

    assert told["verdict"] == "warning"
    assert words in told["found"]


def test_a_pod_that_another_controller_deletes_for_its_resize_is_told(cluster: DoctoredCluster, sweep: str) -> None:
    cluster.deletes_resized = True
    cluster.status = {"phase": "Error", "message": "pod deleted"}

    told = found(sweep)["resize tried"]

    assert told["verdict"] == "warning"
    assert "deleted" in told["found"]


def test_without_the_permission_to_open_gates_the_pod_has_none(cluster: DoctoredCluster, sweep: str) -> None:
    cluster.denied |= {"patch pods", "patch pods/resize"}

    told = found(sweep)

    assert told["try-out"]["verdict"] == "ok"
    assert "gate" not in told
    assert told["resize tried"]["verdict"] == "cannot tell"


@pytest.mark.parametrize(
    "words", [HOSTILE * 100, json.dumps({"self": HOSTILE, "mlflow": [HOSTILE], "state": 7, "clock": {"ahead": "x"}})]
)
def test_hostile_words_of_the_pod_steer_no_terminal(cluster: DoctoredCluster, sweep: str, words: str) -> None:
    cluster.words = words

    result = doctor(sweep)

    assert not set("\x1b\x07\u202e") & set(result.stdout + result.stderr)
    assert len(result.output) < 20_000
    assert "specon itself failed" not in result.output


def test_a_workflow_that_cannot_be_removed_is_told_with_the_command_for_it(
    cluster: DoctoredCluster, sweep: str
) -> None:
    cluster.refusals["DELETE", "any"] = 403

    told = found(sweep)

    assert told["clean-up"]["verdict"] == "warning"
    assert told["clean-up"]["command"].startswith("kubectl delete workflow/specon-doctor-")


def test_ctrl_c_removes_the_try_out(cluster: DoctoredCluster, sweep: str) -> None:
    cluster.argo = False
    command = [sys.executable, "-m", "hera_specon.cli", "doctor", sweep, "--timeout", "600"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "waiting for Argo" in line:
                break
        until = time.monotonic() + 60
        while cluster.workflow is None and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.stderr.read()
    assert process.returncode == 130
    assert len(cluster.removed) == 1


def test_a_file_that_names_no_sweep_is_bad_input(cluster: DoctoredCluster, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")

    assert doctor(str(tmp_path / "train.py")).exit_code == 2
    assert not cluster.asked


def test_a_cluster_that_does_not_answer_is_one_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path, "http://127.0.0.1:1")))

    result = doctor("--json")

    assert result.exit_code == 1
    assert [one["subject"] for one in json.loads(result.stdout)["findings"]] == ["API server"]
