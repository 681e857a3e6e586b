from controllers.core.labels import ANNOTATION_ADOPTED, GATE_PLACEMENT
from tests.hera_specon.cli.api_server import Cluster
from tests.hera_specon.cli.cluster_objects import PODS, WORKFLOWS, listed, pod, workflow
from tests.hera_specon.cli.conftest import Specon

GATED = f"{PODS}/vae-x1-vae-trial-0-1"


def hold(cluster: Cluster) -> None:
    """A workflow with one gated pod and one that runs."""
    gated, runs = pod(0, attempt=1, gated=True), pod(1)
    cluster.objects |= {WORKFLOWS: listed(workflow()), f"{WORKFLOWS}/vae-x1": workflow()}
    cluster.objects |= {PODS: listed(gated, runs), GATED: gated}


def patches(cluster: Cluster) -> dict[str, object]:
    return {asked.path: asked.body for asked in cluster.asked if asked.method == "PATCH"}


def test_only_our_gate_is_taken_and_only_from_the_pod_that_was_seen(specon_there: Specon, cluster: Cluster) -> None:
    hold(cluster)

    result = specon_there("release", "vae-x1", "--yes")

    assert result.exit_code == 0, result.stderr
    assert patches(cluster)[GATED] == {
        "metadata": {"uid": "uid-vae-x1-vae-trial-0-1", "annotations": {}},
        "spec": {"schedulingGates": [{"$patch": "delete", "name": GATE_PLACEMENT}]},
    }
    assert "vae-x1-vae-trial-0-1 goes where the scheduler puts it" in result.stdout
    chosen = [asked.query["labelSelector"] for asked in cluster.asked if asked.path == PODS]
    assert all(selector.startswith("workflows.argoproj.io/workflow=vae-x1,") for selector in chosen)


def test_moves_to_come_wait_for_no_controller_either(specon_there: Specon, cluster: Cluster) -> None:
    hold(cluster)

    specon_there("release", "--all", "--yes")

    assert patches(cluster)[f"{WORKFLOWS}/vae-x1"] == {
        "metadata": {"uid": "uid-vae-x1", "annotations": {ANNOTATION_ADOPTED: None}}
    }


def test_a_dry_run_lists_what_waits_and_changes_nothing(specon_there: Specon, cluster: Cluster) -> None:
    hold(cluster)

    result = specon_there("release", "--all", "--dry-run")

    assert result.exit_code == 0
    assert "pod vae-x1-vae-trial-0-1 waits (trial vae.t000, attempt 2)" in result.stdout
    assert "trial-1" not in result.stdout
    assert patches(cluster) == {}


def test_nothing_is_let_go_without_a_yes(specon_there: Specon, cluster: Cluster) -> None:
    hold(cluster)

    result = specon_there("release", "--all")

    assert result.exit_code == 1
    assert patches(cluster) == {}


def test_a_pod_that_is_gone_by_now_is_passed_over(specon_there: Specon, cluster: Cluster) -> None:
    hold(cluster)
    cluster.refusals["PATCH", GATED] = 409

    result = specon_there("release", "--all", "--yes")

    assert result.exit_code == 0
    assert "is gone" in result.stdout


def test_a_refusal_is_told(specon_there: Specon, cluster: Cluster) -> None:
    hold(cluster)
    cluster.refusals["PATCH", GATED] = 403

    result = specon_there("release", "--all", "--yes")

    assert result.exit_code == 2
    assert "refused with 403" in result.stderr


def test_where_nothing_waits_that_is_said_and_nobody_asked(specon_there: Specon, cluster: Cluster) -> None:
    cluster.objects |= {WORKFLOWS: listed(workflow(annotations={})), PODS: listed(pod(0))}

    result = specon_there("release", "--all")

    assert result.exit_code == 0
    assert "Nothing waits for a controller in namespace lab" in result.stdout


def test_either_a_workflow_or_all_is_named(specon_there: Specon, cluster: Cluster) -> None:
    assert specon_there("release").exit_code == 2
    assert specon_there("release", "vae-x1", "--all").exit_code == 2
    assert cluster.asked == []
