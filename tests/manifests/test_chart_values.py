"""A value of the chart changes what it names; what the chart does not know is refused; the page lists all values."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from controllers.cluster.namespace_terms import read_terms
from controllers.cluster.node_kinds_file import read_node_kinds
from tests.cluster.commands import ClusterError
from tests.manifests.helm import template
from tests.manifests.kustomize import MANIFESTS, Json, of_kind
from tests.manifests.test_manifests import known_variables, settings_of
from tests.manifests.values_page import PAGE, values, with_table

# One of the tests may have to build helm, and those beside it wait for that.
pytestmark = pytest.mark.timeout(1800)

URI: Final = "http://mlflow.other:5000"
MLFLOW: Final = {"trackingUri": URI}
SERVER: Final = {"mlflow": {"server": {"enabled": True}}}
DIGEST: Final = "sha256:" + "0f" * 32
NOT_SETTINGS: Final = {
    # Other values are for these,
    *("NAMESPACE", "ALL_NAMESPACES", "RECOMMEND", "MLFLOW_TRACKING_URI", "NODE_KINDS", "SHARES"),
    # other objects rely on these,
    *("LEADER_ELECT", "LEASE_NAME", "LEASE_NAMESPACE", "HEALTH_PORT", "METRICS_PORT"),
    # and these are for a controller outside of a cluster.
    *("KUBECONFIG", "CONTEXT"),
}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"recomend": True}, "'recomend' not allowed"),
        ({"mlflow": {"server": {"enable": True}}}, "'/mlflow/server': additional properties 'enable' not allowed"),
        ({"settings": {"SPECON_CONTROLLER_INTERVALL": 1}}, "'SPECON_CONTROLLER_INTERVALL' not allowed"),
        ({"podSpec": {"hostNetwork": True}}, "'hostNetwork' not allowed"),
        ({"scope": "cluster"}, "'namespaced', 'platform', 'cluster-wide'"),
        ({"recommend": "false"}, "/recommend.*want boolean"),
        ({"mlflow": {"trackingUri": "http://me:secret@mlflow"}}, "/mlflow/trackingUri"),
        ({"image": {"digest": "0.2.0"}}, "/image/digest"),
        ({"image": {"tag": "7", "digest": DIGEST}}, f"image.tag is 7 and image.digest is {DIGEST}: which of them"),
        ({"replicas": 0}, "/replicas"),
        ({"scope": "platform"}, "namespaces is empty. Set, for instance"),
        ({"namespaces": ["team-a"]}, "the release's own namespace, hera-specon, and namespaces names team-a"),
        ({"mlflow": {"trackingUri": ""}}, "mlflow.trackingUri is empty: where do your sweeps log?"),
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_refused_with_its_name(helm: str, wrong: Json, told: str) -> None:
    with pytest.raises(ClusterError, match=told):
        template(helm, {"mlflow": MLFLOW, **wrong})


def one_of(found: tuple[Json, ...], kind: str, name: str = "specon-controller") -> Json:
    (one,) = [o for o in of_kind(found, kind) if o["metadata"]["name"] == name]
    return one


def added_ports(found: tuple[Json, ...]) -> list[int]:
    """Return the ports that the controller may reach besides those of the manifests, which have three rules."""
    return [port["port"] for rule in one_of(found, "NetworkPolicy")["spec"]["egress"][3:] for port in rule["ports"]]


def labels(found: tuple[Json, ...], kind: str) -> Mapping[str, str]:
    named: Mapping[str, str] = one_of(found, kind)["metadata"]["labels"]
    return named


def claim(found: tuple[Json, ...]) -> Json:
    spec: Json = one_of(found, "PersistentVolumeClaim", "mlflow")["spec"]
    return spec


def pods(found: tuple[Json, ...]) -> list[Json]:
    return [one["spec"]["template"]["spec"] for one in of_kind(found, "Deployment")]


def container(found: tuple[Json, ...], name: str = "specon-controller") -> Mapping[str, Any]:
    first: Mapping[str, Any] = one_of(found, "Deployment", name)["spec"]["template"]["spec"]["containers"][0]
    return first


Change = Callable[[tuple[Json, ...]], object]
CHANGES: Final[Sequence[tuple[Json, Change, object]]] = [
    ({"image": {"tag": "7", "repository": "a.example:5000/c"}}, lambda o: container(o)["image"], "a.example:5000/c:7"),
    ({"image": {"digest": DIGEST, "repository": "a/c"}}, lambda o: container(o)["image"], f"a/c@{DIGEST}"),
    ({**SERVER, "image": {"tag": "7", "repository": "a/c"}}, lambda o: container(o, "mlflow")["image"], "a/c:7"),
    ({"image": {"pullPolicy": "Never"}}, lambda o: container(o)["imagePullPolicy"], "Never"),
    ({"mlflow": {**MLFLOW, "secret": "l"}}, lambda o: container(o)["envFrom"][1], {"secretRef": {"name": "l"}}),
    ({"resources": {"limits": {"memory": "2Gi"}}}, lambda o: container(o)["resources"]["limits"]["memory"], "2Gi"),
    ({"resources": {"limits": {"memory": "2Gi"}}}, lambda o: container(o)["resources"]["requests"]["cpu"], "100m"),
    ({"replicas": 3}, lambda o: one_of(o, "Deployment")["spec"]["replicas"], 3),
    ({"replicas": 3}, lambda o: len(of_kind(o, "PodDisruptionBudget")), 1),
    ({"replicas": 1}, lambda o: of_kind(o, "PodDisruptionBudget"), []),
    ({"settings": {"SPECON_CONTROLLER_INTERVAL": 2}}, lambda o: settings_of(o)["SPECON_CONTROLLER_INTERVAL"], "2"),
    ({"settings": {"SPECON_CONTROLLER_POLICY": "fifo"}}, lambda o: settings_of(o)["SPECON_CONTROLLER_POLICY"], "fifo"),
    ({**SERVER, "networkPolicy": {"enabled": False}}, lambda o: of_kind(o, "NetworkPolicy"), []),
    ({"networkPolicy": {"extraPorts": [8443, 443]}}, added_ports, [8443]),
    ({"serviceMonitor": {"enabled": True, "labels": {"a": "b"}}}, lambda o: labels(o, "ServiceMonitor")["a"], "b"),
    (
        {"mlflow": {"server": {"enabled": True, "storage": "9Gi"}}},
        lambda o: claim(o)["resources"]["requests"]["storage"],
        "9Gi",
    ),
    ({"mlflow": {"server": {"enabled": True, "storageClass": "fast"}}}, lambda o: claim(o)["storageClassName"], "fast"),
    (
        {**SERVER, "podSpec": {"nodeSelector": {"a": "b"}}},
        lambda o: [p["nodeSelector"] for p in pods(o)],
        [{"a": "b"}] * 2,
    ),
]


@pytest.mark.parametrize(("given", "read", "wanted"), CHANGES, ids=[json.dumps(case[0]) for case in CHANGES])
def test_a_value_changes_what_it_names(helm: str, given: Json, read: Change, wanted: object) -> None:
    assert read(template(helm, {"mlflow": MLFLOW, **given})) == wanted


@pytest.mark.parametrize(
    ("address", "added"),
    [
        ("http://mlflow", [80]),
        ("http://mlflow:8080/path", [8080]),
        ("http://[fd00::1]:8080", [8080]),
        ("http://mlflow:5000", []),
        ("https://mlflow.example.org", []),
    ],
)
def test_the_controller_may_reach_the_port_of_mlflows_address(helm: str, address: str, added: list[int]) -> None:
    assert added_ports(template(helm, {"mlflow": {"trackingUri": address}})) == added


def test_kinds_of_nodes_and_shares_reach_the_controller_as_the_files_that_it_is_told_of(
    helm: str, tmp_path: Path
) -> None:
    kind = {"name": "train", "labels": {"pool": "train"}, "cpu": 8, "memory": "32Gi", "most": 4}
    terms = {"production": {"priority": 10, "quota": {"cpu": 8, "memory": "64Gi"}}}
    found = template(helm, {"mlflow": MLFLOW, "nodeKinds": {"kinds": [kind]}, "shares": {"namespaces": terms}})
    (mount,) = [one for one in container(found)["volumeMounts"] if one["name"] == "files"]
    volumes = one_of(found, "Deployment")["spec"]["template"]["spec"]["volumes"]
    (volume,) = [one for one in volumes if one["name"] == "files"]
    settings = one_of(found, "ConfigMap", "specon-controller-settings")["data"]
    told = [settings["SPECON_CONTROLLER_NODE_KINDS"], settings["SPECON_CONTROLLER_SHARES"]]
    files = one_of(found, "ConfigMap", volume["configMap"]["name"])["data"]
    assert told == [f"{mount['mountPath']}/{name}" for name in files]
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    kinds_file, shares_file = (tmp_path / Path(name).name for name in told)
    assert [given.name for given in read_node_kinds(str(kinds_file)).kinds] == ["train"]
    assert read_terms(shares_file)["production"].priority == 10


def test_a_change_of_the_settings_restarts_the_controller_and_nothing_else_does(helm: str) -> None:
    def deployed(**others: object) -> object:
        return one_of(template(helm, {"mlflow": MLFLOW, **others}), "Deployment")["spec"]["template"]

    assert deployed(recommend=True) != deployed()
    assert deployed(nodeKinds={"prices": [{"labels": {"a": "b"}, "price": 1}]}) != deployed()
    assert deployed(shares={"namespaces": {"team": {"weight": 2}}}) != deployed()
    assert deployed(settings={"SPECON_CONTROLLER_INTERVAL": 2}) != deployed()
    assert deployed(serviceMonitor={"enabled": True}) == deployed()


def of_schema(schema: Json, path: str = "") -> set[str]:
    """Return the names of all values that the schema knows; a map that is open, or that a value gives, is one."""
    inner = schema.get("properties", {})
    if not inner or path in {"settings", "resources", "podSpec", "nodeKinds", "shares"}:
        return {path}
    assert schema["additionalProperties"] is False, path
    return {name for key, part in inner.items() for name in of_schema(part, f"{path}.{key}".lstrip("."))}


def test_the_schema_knows_the_values_and_no_others() -> None:
    schema = json.loads((MANIFESTS / "values.schema.json").read_text(encoding="utf-8"))
    assert of_schema(schema) == {value.name for value in values()} | {"global"}


def test_the_schema_knows_every_setting_that_no_other_value_makes() -> None:
    schema = json.loads((MANIFESTS / "values.schema.json").read_text(encoding="utf-8"))
    settings = {name.removeprefix("SPECON_CONTROLLER_") for name in schema["properties"]["settings"]["properties"]}
    assert settings == known_variables() - NOT_SETTINGS
    assert known_variables() >= NOT_SETTINGS


def test_the_page_of_values_is_made_of_the_values() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_table(page) == page, "python -m tests.manifests.values_page writes it"
    given = yaml.safe_load((MANIFESTS / "values.yaml").read_text(encoding="utf-8"))
    for value in values():
        found = given
        for part in value.name.split("."):
            found = found[part]
        assert found == value.default
        assert value.meaning


def test_the_image_is_that_of_the_projects_own_registry() -> None:
    given = yaml.safe_load((MANIFESTS / "values.yaml").read_text(encoding="utf-8"))
    home = yaml.safe_load((MANIFESTS / "Chart.yaml").read_text(encoding="utf-8"))["home"]
    assert given["image"]["repository"] == f"{home.replace('https://github.com', 'ghcr.io')}/controller"
