"""What is deployed: nothing runs as root, nothing may do more than the table of permissions says."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from mlflow.server.security_utils import is_allowed_host_header

from hera_specon.cli import main
from hera_specon.cli.backend import Backend
from tests.manifests.kustomize import MANIFESTS, Json, kubectl, of_kind, render, variation
from tests.manifests.permission_table import ROLES, Permission, bound_to, documented, granted, left_out

OVERLAYS = sorted(path.name for path in (MANIFESTS / "overlays").iterdir())
rendered = pytest.mark.skipif(kubectl() is None, reason="neither kubectl nor the test cluster's binary is here")
EXEC, EVICTION = "without-exec", "without-eviction"
every_overlay = pytest.mark.parametrize("overlay", OVERLAYS)


def objects(overlay: str) -> tuple[Json, ...]:
    return render(MANIFESTS / "overlays" / overlay)


def bound(overlay: str) -> tuple[Json, ...]:
    """Return the objects of an overlay, and of a namespace that was opened to its controller where that is needed."""
    opened = render(MANIFESTS / "steered-namespace") if overlay.startswith("platform") else ()
    return (*objects(overlay), *opened)


def workloads(overlay: str) -> Iterator[tuple[Json, Json]]:
    """Yield each Deployment's pod spec with each of its containers."""
    for deployment in of_kind(objects(overlay), "Deployment"):
        pod = deployment["spec"]["template"]["spec"]
        yield from ((pod, container) for container in pod["containers"])


def roles(overlay: str, account: str) -> Iterator[tuple[str, str, Permission]]:
    """Yield kind of the role, namespace of the binding, and permission, for all that is bound to ``account``."""
    yield from bound_to(account, bound(overlay))


def without_role(permissions: set[Permission]) -> set[tuple[str, str, str]]:
    return {(one.group, one.resource, one.verb) for one in permissions}


def test_every_permission_is_written_down_once() -> None:
    rows = list(documented())
    assert len(rows) == len(set(rows))
    assert {row.role for row in rows} == ROLES


@rendered
@every_overlay
def test_the_controller_is_granted_exactly_what_is_written_down(overlay: str) -> None:
    found = {permission for _, _, permission in roles(overlay, "specon-controller")}
    table = {row for row in documented() if row.role != "executor"}
    assert without_role(found) == without_role(table)
    assert {p for p in found if p.role in {"act", "lease"}} == {p for p in table if p.role in {"act", "lease"}}


@rendered
@pytest.mark.parametrize("overlay", [name for name in OVERLAYS if name.startswith("namespaced")])
def test_a_namespaced_controller_may_do_nothing_outside_its_namespace_but_look_at_nodes(overlay: str) -> None:
    outside = {p for kind, _, p in roles(overlay, "specon-controller") if kind == "ClusterRoleBinding"}
    assert outside == {row for row in documented() if row.role == "nodes"}
    assert {namespace for kind, namespace, _ in roles(overlay, "specon-controller") if kind == "RoleBinding"} == {
        "hera-specon"
    }


@rendered
@pytest.mark.parametrize("overlay", [name for name in OVERLAYS if name.startswith("platform")])
def test_a_platforms_controller_acts_in_the_namespaces_that_are_opened_to_it_and_nowhere_else(overlay: str) -> None:
    alone = {p for kind, _, p in roles(overlay, "specon-controller") if kind == "ClusterRoleBinding"}
    assert alone == {row for row in documented() if row.role == "nodes"}
    bindings = of_kind(objects(overlay), "RoleBinding", "ClusterRoleBinding")
    assert {o["roleRef"]["name"] for o in bindings} == {"specon-controller-lease", "specon-controller-nodes"}
    opened = of_kind(render(MANIFESTS / "steered-namespace"), "RoleBinding")
    controllers = [s for o in opened for s in o["subjects"] if s["name"] == "specon-controller"]
    assert [subject["namespace"] for subject in controllers] == ["hera-specon"] * 2


@rendered
def test_a_namespace_is_opened_in_its_own_name(tmp_path: Path) -> None:
    beside = os.path.relpath(MANIFESTS / "steered-namespace", tmp_path.resolve())
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump({"namespace": "team-a", "resources": [beside]}))
    found = render(tmp_path)
    assert {o["metadata"]["namespace"] for o in found} == {"team-a"}
    subjects = {(s["name"], s["namespace"]) for o in of_kind(found, "RoleBinding") for s in o["subjects"]}
    assert subjects == {("default", "team-a"), ("specon-controller", "hera-specon")}


@rendered
def test_the_lease_is_the_only_one_that_may_be_taken() -> None:
    for overlay in OVERLAYS:
        lease = next(o for o in of_kind(objects(overlay), "Role") if o["metadata"]["name"] == "specon-controller-lease")
        named = [rule for rule in lease["rules"] if set(rule["verbs"]) & {"get", "update"}]
        assert [rule["resourceNames"] for rule in named] == [["specon-controller"]]


@rendered
def test_the_pods_of_sweeps_may_report_and_nothing_else() -> None:
    executor = {row for row in documented() if row.role == "executor"}
    assert {p for _, _, p in roles("namespaced", "default")} == executor
    (role,) = of_kind(render(MANIFESTS / "sweep-namespace"), "Role")
    assert set(granted("executor", role["rules"])) == executor


@rendered
@pytest.mark.parametrize("overlay", ["namespaced", "platform", "cluster-wide"])
def test_a_controller_that_recommends_may_change_nothing_but_its_lease(overlay: str, tmp_path: Path) -> None:
    found = render(variation(tmp_path, overlay, components=["recommend"]))
    kept = [o for o in of_kind(found, "Role", "ClusterRole") if o["metadata"]["name"].startswith("specon-controller")]
    verbs = {p.verb for o in kept for p in granted("", o["rules"]) if p.resource != "leases"}
    assert verbs == {"list", "watch"}
    assert not [o for o in of_kind(found, "RoleBinding", "ClusterRoleBinding") if o["roleRef"]["name"].endswith("-act")]
    assert settings_of(found)["SPECON_CONTROLLER_RECOMMEND"] == "true"


@rendered
@every_overlay
@pytest.mark.parametrize(
    "components",
    [[EXEC], [EVICTION], [EXEC, EVICTION], [EVICTION, EXEC]],
    ids="+".join,
)
def test_a_component_leaves_out_what_the_table_says_and_no_more(
    overlay: str, components: list[str], tmp_path: Path
) -> None:
    found = of_kind(render(variation(tmp_path, overlay, components)), "Role", "ClusterRole")
    (act,) = [one for one in found if one["metadata"]["name"] == "specon-controller-act"]
    assert set(granted("act", act["rules"])) == {row for row in documented(*components) if row.role == "act"}
    assert all(rule["verbs"] for rule in act["rules"])


def test_there_is_a_component_for_each_permission_that_may_be_left_out() -> None:
    there = {path.name for path in (MANIFESTS / "components").iterdir() if path.name.startswith("without-")}
    assert left_out() == there


@rendered
def test_a_controller_that_recommends_takes_these_components_too(tmp_path: Path) -> None:
    found = render(variation(tmp_path, "namespaced", ["recommend", "without-exec", "without-eviction"]))
    assert "specon-controller-act" not in {one["metadata"]["name"] for one in of_kind(found, "Role", "RoleBinding")}


@rendered
def test_a_team_puts_everything_in_its_own_namespace(tmp_path: Path) -> None:
    found = render(variation(tmp_path, "namespaced-with-mlflow", []))
    subjects = [s for o in of_kind(found, "RoleBinding", "ClusterRoleBinding") for s in o["subjects"]]
    assert {subject["namespace"] for subject in subjects} == {"team-a"}
    cluster_scoped = {"ClusterRole", "ClusterRoleBinding"}
    assert {o["metadata"].get("namespace") for o in found if o["kind"] not in cluster_scoped} == {"team-a"}


@rendered
@every_overlay
def test_nothing_runs_as_root_or_can_become_more_than_it_is(overlay: str) -> None:
    for pod, container in workloads(overlay):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
        assert not any("hostPath" in volume for volume in pod["volumes"])
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


@rendered
@every_overlay
def test_everything_asks_for_what_it_needs_and_is_looked_after(overlay: str) -> None:
    for pod, container in workloads(overlay):
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert container["resources"]["limits"].keys() == {"memory"}
        assert {"livenessProbe", "readinessProbe"} <= container.keys()
        assert container["image"].startswith("hera-specon/")
        mounts = {mount["name"] for mount in container["volumeMounts"]}
        assert mounts == {volume["name"] for volume in pod["volumes"]}
        assert "/tmp" in {mount["mountPath"] for mount in container["volumeMounts"]}  # noqa: S108 - in the container


@rendered
@every_overlay
def test_two_replicas_stand_apart_and_one_survives_a_drain(overlay: str) -> None:
    found = objects(overlay)
    deployment = next(d for d in of_kind(found, "Deployment") if d["metadata"]["name"] == "specon-controller")
    assert deployment["spec"]["replicas"] == 2
    affinity = deployment["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"]
    assert affinity.keys() == {"preferredDuringSchedulingIgnoredDuringExecution"}
    (budget,) = of_kind(found, "PodDisruptionBudget")
    assert budget["spec"]["minAvailable"] == 1
    assert budget["spec"]["selector"]["matchLabels"] == deployment["spec"]["selector"]["matchLabels"]


@rendered
@every_overlay
def test_probes_services_and_policies_point_at_ports_that_are_there(overlay: str) -> None:
    found = objects(overlay)
    ports = {p["name"]: p["containerPort"] for _, c in workloads(overlay) for p in c["ports"]}
    for _, container in workloads(overlay):
        probes = [container[name] for name in container if name.endswith("Probe")]
        assert {probe["httpGet"]["port"] for probe in probes} <= ports.keys()
    for service in of_kind(found, "Service"):
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports.keys()
    pods = {d["metadata"]["name"]: d["spec"]["template"]["metadata"]["labels"] for d in of_kind(found, "Deployment")}
    for policy in of_kind(found, "NetworkPolicy"):
        chosen = policy["spec"]["podSelector"]["matchLabels"].items()
        assert chosen
        assert [name for name, marks in pods.items() if chosen <= marks.items()] == [policy["metadata"]["name"]]
        assert set(policy["spec"]["policyTypes"]) == {"Ingress", "Egress"}
        allowed = {port["port"] for rule in policy["spec"].get("ingress", []) for port in rule["ports"]}
        assert allowed <= ports.keys()
    metrics = next(s for s in of_kind(found, "Service") if s["metadata"]["name"] == "specon-controller-metrics")
    assert metrics["metadata"]["annotations"]["prometheus.io/port"] == str(ports["metrics"])


def settings_of(found: tuple[Json, ...]) -> Mapping[str, str]:
    config = of_kind(found, "ConfigMap")
    settings: Mapping[str, str] = config[0]["data"]
    assert len(config) == 1
    return settings


@rendered
@every_overlay
def test_the_command_understands_the_settings_it_is_deployed_with(overlay: str) -> None:
    started: list[Any] = []

    def never(*_: Any) -> Any:  # noqa: ANN401 - never called
        raise AssertionError

    backend = Backend(never, never, never, lambda settings, _stop: started.append(settings))
    environment = {**settings_of(objects(overlay)), "POD_NAMESPACE": "own"}
    result = CliRunner(env=environment).invoke(main, ["controller"], obj=backend)
    assert result.exit_code == 0, result.output
    assert started[0].namespaces == (() if overlay.startswith("cluster-wide") else ("own",))
    assert set(settings_of(objects(overlay))) <= {f"SPECON_CONTROLLER_{name}" for name in known_variables()}
    ports = {port["name"]: port["containerPort"] for _, c in workloads(overlay) for port in c["ports"]}
    assert (started[0].metrics_port, started[0].health_port) == (ports["metrics"], ports["health"])


def known_variables() -> set[str]:
    shown = CliRunner().invoke(main, ["controller", "--help"], terminal_width=500).stdout
    return set(re.findall(r"SPECON_CONTROLLER_([A-Z_]+)", shown))


@rendered
def test_a_bundled_mlflow_is_there_only_where_it_was_asked_for() -> None:
    for overlay in OVERLAYS:
        names = {deployment["metadata"]["name"] for deployment in of_kind(objects(overlay), "Deployment")}
        assert ("mlflow" in names) == overlay.endswith("-with-mlflow")


@rendered
@pytest.mark.parametrize(
    ("host", "answered"),
    [
        ("mlflow:5000", True),
        ("mlflow.hera-specon:5000", True),
        ("mlflow.hera-specon.svc.cluster.local:5000", True),
        ("127.0.0.1:41873", True),
        ("localhost:8080", True),
        ("127.0.0.1.rebinding.example:5000", False),
        ("elsewhere.example", False),
    ],
)
def test_the_bundled_mlflow_answers_in_its_cluster_and_through_a_forwarded_port(host: str, *, answered: bool) -> None:
    container = next(c for _, c in workloads("namespaced-with-mlflow") if c["name"] == "mlflow")
    (allowed,) = [arg.removeprefix("--allowed-hosts=") for arg in container["args"] if "--allowed-hosts=" in arg]
    patterns = allowed.replace("$(POD_NAMESPACE)", "hera-specon").split(",")
    assert is_allowed_host_header(patterns, host) is answered


def test_the_settings_page_lists_every_setting_with_its_variable() -> None:
    page = (MANIFESTS.parent / "docs" / "reference" / "controller-settings.md").read_text(encoding="utf-8")
    for name in known_variables():
        flag = "--" + name.lower().replace("_", "-")
        assert f"`SPECON_CONTROLLER_{name}`" in page
        assert flag in page


def test_the_metrics_page_lists_every_metric() -> None:
    from controllers.cluster.instruments import Instruments  # noqa: PLC0415 - only here

    page = (MANIFESTS.parent / "docs" / "reference" / "controller-metrics.md").read_text(encoding="utf-8")
    families = [family for family in Instruments().registry.collect() if family.name.startswith("specon_")]
    for family in families:
        name = family.name + ("_total" if family.type == "counter" else "")
        assert re.search(rf"^\| `{name}`", page, re.MULTILINE), name
