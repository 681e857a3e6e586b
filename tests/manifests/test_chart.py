"""The Helm chart installs what kustomize installs, and grants what is written down."""

import json
import os
import re
import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.cluster.commands import ClusterError, run
from tests.manifests.helm import template
from tests.manifests.kustomize import MANIFESTS, Json, render
from tests.manifests.permission_table import bound_to, documented
from tests.manifests.test_manifests import rendered, without_role

# One of the tests may have to build helm, and those beside it wait for that.
pytestmark = pytest.mark.timeout(1800)

NAMESPACE: Final = "hera-specon"
SCOPES: Final = ("namespaced", "platform", "cluster-wide")
TEAMS: Final = ("team-a", "team-b")
URI: Final = "http://mlflow.other:5000"
SERVER: Final = {"mlflow": {"server": {"enabled": True}}}
HELMS: Final = {"instance", "managed-by", "part-of", "chart"}
"""The last parts of the labels that the chart adds."""
every_scope = pytest.mark.parametrize("scope", SCOPES)


def chosen(scope: str, **others: Any) -> Json:  # noqa: ANN401 - values are any JSON
    """Return the least values for a scope, with the image that the manifests name."""
    teams = () if scope == "namespaced" else TEAMS
    values = {"scope": scope, "namespaces": teams, "mlflow": {"trackingUri": URI}}
    return {**values, "image": {"repository": "hera-specon/controller"}, **others}


def kustomized(folder: Path, scope: str, components: Sequence[str]) -> list[Json]:
    """Return what kustomize makes of the same wishes: of an overlay, and of each namespace of sweeps."""
    teams = () if scope == "namespaced" else TEAMS
    literals = [f"SPECON_CONTROLLER_MLFLOW_TRACKING_URI={URI}"]
    if scope == "platform":
        literals.append(f"SPECON_CONTROLLER_NAMESPACE={','.join(TEAMS)}")
    generator = {"name": "specon-controller-settings", "behavior": "merge", "literals": literals}
    own = {"resources": [f"overlays/{scope}"], "components": [f"components/{name}" for name in components]}
    found = [*built(folder / "own", {"namespace": NAMESPACE, **own, "configMapGenerator": [generator]})]
    opened = "steered-namespace" if scope == "platform" else "sweep-namespace"
    for team in teams:
        found += built(folder / team, {"namespace": team, "resources": [opened]})
    # A controller that recommends has no role to act; the bindings to it would lead nowhere.
    return [one for one in found if not ("recommend" in components and one["metadata"]["name"].endswith("-act"))]


def built(folder: Path, kustomization: Json, manifests: Path = MANIFESTS) -> tuple[Json, ...]:
    folder.mkdir()

    def beside(names: Sequence[str]) -> list[str]:
        return [os.path.relpath(manifests / name, folder.resolve()) for name in names]

    paths: Json = {key: beside(kustomization[key]) for key in ("resources", "components") if key in kustomization}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump({**kustomization, **paths}))
    return render(folder)


def alike(objects: Sequence[Json]) -> dict[tuple[str, str, str], Json]:
    """Return objects by kind, namespace and name, without what Helm and kustomize must do differently.

    These are Helm's labels, ends of names (a hash of kustomize's, the namespace of the chart's), what the chart tells
    Helm and the Deployment by annotations, and the release's namespace, which Helm makes itself.
    """
    text = re.sub(r"(specon-controller-settings)-[a-z0-9]{10}\b", r"\1", json.dumps(objects))
    text = re.sub(rf"(specon-controller-(?:observe|act|nodes))-{NAMESPACE}\b", r"\1", text)
    found: list[Json] = [one for one in json.loads(text) if one["kind"] != "Namespace"]
    for one in found:
        metadata = one["metadata"]
        labels = metadata.pop("labels", {})
        metadata["labels"] = {name: text for name, text in labels.items() if re.split("[./]", name)[-1] not in HELMS}
        pods = one["spec"].get("template", {}).get("metadata", {}) if one["kind"] == "Deployment" else {}
        for annotated in (metadata, pods):
            annotations = annotated.get("annotations", {})
            annotated["annotations"] = {
                name: annotations[name] for name in annotations if name.startswith("prometheus.io/")
            }
    return {(one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): one for one in found}


@pytest.mark.parametrize(
    "components",
    [(), ("recommend",), ("mlflow", "service-monitor"), ("without-exec", "without-eviction")],
    ids=" and ".join,
)
@every_scope
@rendered
def test_the_chart_installs_what_kustomize_installs(
    helm: str, scope: str, components: Sequence[str], tmp_path: Path
) -> None:
    switches = {
        "recommend": "recommend" in components,
        "exec": "without-exec" not in components,
        "eviction": "without-eviction" not in components,
        "mlflow": {"trackingUri": URI, "server": {"enabled": "mlflow" in components}},
        "serviceMonitor": {"enabled": "service-monitor" in components},
    }
    found, wanted = alike(template(helm, chosen(scope, **switches))), alike(kustomized(tmp_path, scope, components))
    assert found.keys() == wanted.keys()
    for key, one in wanted.items():
        assert found[key] == one


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the chart, in which a test may write another component in the place of `recommend`."""
    return Path(shutil.copytree(MANIFESTS, tmp_path / "manifests"))


def write_component(copy: Path, patch: str, **target: str) -> None:
    selected = {"group": "rbac.authorization.k8s.io", "name": "specon-controller-act", **target}
    head = {"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component"}
    text = yaml.safe_dump({**head, "patches": [{"target": selected, "patch": patch}]})
    (copy / "components" / "recommend" / "kustomization.yaml").write_text(text)


@every_scope
@rendered
def test_the_chart_patches_rules_as_kustomize_does(helm: str, scope: str, copy: Path) -> None:
    steps = [
        {"op": "test", "path": "/rules/2/resources/0", "value": "pods/exec"},
        {"op": "replace", "path": "/rules/2", "value": {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}},
    ]
    write_component(copy, yaml.safe_dump(steps), kind="(Cluster)?Role")
    own = {"namespace": NAMESPACE, "resources": [f"overlays/{scope}"], "components": ["components/recommend"]}
    wanted = alike(built(copy / "own", own, copy))
    found = alike(template(helm, chosen(scope, recommend=True), chart=copy))
    patched = [key for key in wanted if key[0] in {"Role", "ClusterRole"} and key[2] == "specon-controller-act"]
    assert [found[key]["rules"] for key in patched] == [wanted[key]["rules"] for key in patched] != []
    assert "pods/exec" not in json.dumps(found[patched[0]])


@pytest.mark.parametrize(
    ("patch", "told"),
    [
        (
            "- {op: test, path: /rules/2/resources/0, value: secrets}",
            '/rules/2/.* is "pods/exec", and not "secrets"',
        ),
        ("- {op: remove, path: /rules/2}", "can replace an entry of a list, and test, not: .*remove"),
        ("metadata: {name: specon-controller-act}", "can apply patches that delete, and lists of steps, not: metadata"),
    ],
)
def test_a_patch_that_the_chart_cannot_apply_is_refused(helm: str, patch: str, told: str, copy: Path) -> None:
    write_component(copy, patch, kind="Role")
    with pytest.raises(ClusterError, match=f"components/recommend/kustomization.yaml: .*{told}"):
        template(helm, chosen("namespaced", recommend=True), chart=copy)


@pytest.mark.parametrize("name", ["components/recommend/kustomization.yaml", "base/deployment.yaml"])
def test_a_file_that_is_no_yaml_is_named(helm: str, name: str, copy: Path) -> None:
    (copy / name).write_text("kind: [Deployment")
    with pytest.raises(ClusterError, match=f"{name}: error"):
        template(helm, chosen("namespaced", recommend=True), chart=copy)


@every_scope
def test_the_chart_grants_exactly_what_is_written_down(helm: str, scope: str) -> None:
    found = list(bound_to("specon-controller", template(helm, chosen(scope))))
    table = {row for row in documented() if row.role != "executor"}
    assert without_role({permission for *_, permission in found}) == without_role(table)
    everywhere = {permission for kind, _, permission in found if kind == "ClusterRoleBinding"}
    nodes = {row for row in documented() if row.role == "nodes"}
    cluster = {row for row in documented() if row.role in {"nodes", "observe", "act"}}
    assert without_role(everywhere) == without_role(cluster if scope == "cluster-wide" else nodes)
    inside = {namespace for kind, namespace, p in found if kind == "RoleBinding" and p.resource == "pods"}
    assert inside == {"namespaced": {NAMESPACE}, "platform": set(TEAMS), "cluster-wide": set()}[scope]


@every_scope
def test_the_pods_of_sweeps_may_report_in_their_namespaces_unless_they_may_already(helm: str, scope: str) -> None:
    executor = {row for row in documented() if row.role == "executor"}
    found = list(bound_to("default", template(helm, chosen(scope))))
    assert {permission for *_, permission in found} == executor
    assert {namespace for _, namespace, _ in found} == ({NAMESPACE} if scope == "namespaced" else set(TEAMS))
    assert list(bound_to("default", template(helm, chosen(scope, executorRole=False)))) == []


@every_scope
def test_a_chart_that_recommends_grants_nothing_but_looking_and_its_lease(helm: str, scope: str) -> None:
    found = template(helm, chosen(scope, recommend=True))
    granted = {p for *_, p in bound_to("specon-controller", found)}
    assert {p.verb for p in granted if p.resource != "leases"} == {"list", "watch"}
    assert not [one for one in found if "-act" in one["metadata"]["name"]]


@every_scope
def test_releases_in_two_namespaces_have_no_object_in_common(helm: str, scope: str) -> None:
    def names(namespace: str, team: str) -> set[tuple[str, str, str]]:
        teams = [team] if scope == "platform" else []
        return set(alike(template(helm, chosen(scope, namespaces=teams), namespace)))

    assert len(names("one", "team-a")) > 8
    assert names("one", "team-a") & names("two", "team-b") == set()


def test_helm_finds_nothing_to_say_against_the_chart(helm: str, tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    for scope in SCOPES:
        file.write_text(yaml.safe_dump(json.loads(json.dumps(chosen(scope)))))
        assert "0 chart(s) failed" in run(helm, "lint", "--strict", MANIFESTS, "--values", file)


def test_the_data_of_an_mlflow_server_outlives_its_release(helm: str) -> None:
    kept = [
        one["kind"]
        for one in template(helm, SERVER)
        if one["metadata"].get("annotations", {}).get("helm.sh/resource-policy") == "keep"
    ]
    assert kept == ["PersistentVolumeClaim"]


def test_a_package_holds_what_the_templates_read_and_no_more(helm: str, tmp_path: Path) -> None:
    run(helm, "package", MANIFESTS, "--destination", tmp_path)
    (package,) = tmp_path.glob("hera-specon-*.tgz")
    with tarfile.open(package) as file:
        names = {name.removeprefix("hera-specon/").split("/")[0] for name in file.getnames()}
    folders = {"base", "components", "overlays", "steered-namespace", "sweep-namespace", "templates"}
    assert names == {"Chart.yaml", ".helmignore", "values.yaml", "values.schema.json", *folders}
    assert template(helm, chosen("platform"), chart=package) == template(helm, chosen("platform"))


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (chosen("platform"), "specon submit FILE -n team-a"),
        (chosen("cluster-wide", namespaces=[]), "specon submit FILE -n TEAM"),
        (chosen("namespaced", recommend=True), "--set recommend=false lets it act"),
        (chosen("namespaced", **SERVER), "port-forward service/mlflow 5000"),
        (chosen("namespaced"), "set image.digest"),
    ],
)
def test_the_notes_say_what_to_do_next(helm: str, values: Json, told: str, copy: Path) -> None:
    # Without a cluster, helm renders no notes. So they are rendered as the only object of a copy.
    (copy / "templates" / "NOTES.txt").rename(copy / "NOTES.txt")
    (copy / "templates" / "objects.yaml").unlink()
    (copy / "templates" / "notes.yaml").write_text('notes: {{ tpl (.Files.Get "NOTES.txt") . | toJson }}\n')
    (found,) = template(helm, values, "team-a", copy)
    assert told in found["notes"]
    assert "kubectl -n team-a rollout status deployment/specon-controller" in found["notes"]
