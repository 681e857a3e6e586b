"""What a cluster can do, by the versions of its parts, and the line that says so."""

from dataclasses import replace

import pytest

from controllers.core.actions import ACTION_KINDS, Resize
from controllers.worlds.argo.meaning.abilities import Abilities, abilities_of
from controllers.worlds.argo.reading.nodes import NodeRecord, project_node
from controllers.worlds.argo.reading.versions import Version, version_in
from tests.controllers.worlds.argo.objects import node

IN_PLACE, NONE = "shares change in place", "no share of a running trial can be changed"
CLAIMS = "resource claims keep the share that they begin with"


def record(name: str, kubelet: str) -> NodeRecord:
    made = project_node(node(name))
    assert made is not None
    return replace(made, kubelet=version_in(kubelet))


def found(
    kubernetes: str = "1.36.2",
    kubelets: tuple[str, ...] = ("1.36.2", "1.36.2"),
    argo: tuple[str, ...] = ("4.0.7",),
    *,
    subresource: bool = True,
) -> Abilities:
    nodes = [record(f"n{number}", kubelet) for number, kubelet in enumerate(kubelets)]
    return abilities_of(version_in(kubernetes), nodes, map(version_in, argo), subresource=subresource)


@pytest.mark.parametrize(
    ("abilities", "line"),
    [
        (
            found("1.33.13", ("1.33.13",), ("3.7.14",)),
            [
                "Kubernetes 1.33.13, Argo 3.7.14",
                IN_PLACE,
                f"pods with pod-level resources or {CLAIMS}",
            ],
        ),
        (found(), ["Kubernetes 1.36.2, Argo 4.0.7", IN_PLACE, f"pods with {CLAIMS}"]),
        (found("1.37.2"), ["Kubernetes 1.37.2, Argo 4.0.7", IN_PLACE]),
        (
            found("1.37.2", argo=("3.6.18",)),
            [
                "Kubernetes 1.37.2, Argo 3.6.18",
                IN_PLACE,
                "each retry waits a second or two for the controller, not only one that follows a move",
            ],
        ),
        (
            found("1.37.2", ("1.37.2", "1.32.9"), ()),
            [
                "Kubernetes 1.37.2, Argo of unknown version",
                f"{IN_PLACE} but on 1 of 2 nodes, whose kubelets are too old (n1)",
            ],
        ),
        (
            found("1.34.4", ("1.32.9", "1.32.9")),
            ["Kubernetes 1.34.4, Argo 4.0.7", f"{NONE}: no node's kubelet is 1.33.0 or newer: upgrade the nodes"],
        ),
        (
            found("1.32.9", ("1.32.9",), ("3.5.1",), subresource=False),
            [
                "Kubernetes 1.32.9, Argo 3.5.1",
                f"{NONE}: the API server of Kubernetes 1.32.9 has no pods/resize: upgrade it to 1.33 or newer",
                "Kubernetes before 1.33 is not supported",
                "Argo before 3.6 is not supported",
            ],
        ),
    ],
)
def test_one_line_says_all_of_it(abilities: Abilities, line: list[str]) -> None:
    assert abilities.line == "; ".join(line)


def test_of_many_old_nodes_the_line_names_three() -> None:
    abilities = found("1.34.4", ("1.32.9",) * 50 + ("1.34.4",))
    assert "on 50 of 51 nodes" in abilities.line
    assert "(n0, n1, n10, ...)" in abilities.line


def test_a_cluster_with_one_node_that_can_is_not_kept_from_it() -> None:
    assert found("1.34.4", ("1.32.9", "1.34.4")).can == set(ACTION_KINDS)
    assert found("1.34.4", ("1.32.9", "1.32.9")).can == set(ACTION_KINDS) - {Resize}
    assert found("1.32.9", subresource=False).can == set(ACTION_KINDS) - {Resize}


def test_what_is_not_known_yet_keeps_nothing_back() -> None:
    assert Abilities().can == set(ACTION_KINDS)
    assert found("", (), ("",)).can == set(ACTION_KINDS)


def test_the_newest_argo_that_made_a_pod_counts() -> None:
    assert found(argo=("3.7.14", "4.0.7", "")).argo == Version(4, 0, 7)


@pytest.mark.parametrize("forged", ["9999.9999.9999", "3.0.0"])
def test_a_forged_version_of_argo_changes_what_is_said_and_nothing_that_is_done(forged: str) -> None:
    abilities = found(argo=(forged,))
    assert f"Argo {forged}" in abilities.line
    assert (abilities.can, abilities.why_no_shares) == (found().can, "")
