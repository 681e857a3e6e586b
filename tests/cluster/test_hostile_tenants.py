"""A tenant who does what a tenant may do to harm another: the other's sweep goes on as if nobody were there.

One controller steers two namespaces. An honest sweep runs in the one, first in peace and then while everything that is
known to have worked once is done at a time in the other; nothing of it may show in the honest sweep.
"""

import contextlib
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from mlflow.tracking import MlflowClient

from controllers.worlds.argo.calls.api import CONFIG_MAPS, PODS, WORKFLOWS, Json, Resource
from controllers.worlds.argo.calls.errors import ApiError
from controllers.worlds.argo.calls.untrusted import epoch
from hera_specon.records.tracked import tracked_record
from mlflow_hooks import contract
from tests.cluster.cluster import Cluster
from tests.cluster.sweeps.bench import Bench, Workflow, opened_bench
from tests.cluster.sweeps.controllers import ControllerProcess
from tests.cluster.sweeps.descent_sweep import NAME
from tests.cluster.sweeps.growth import Growth
from tests.cluster.sweeps.namespace import ACCOUNT, controller_kubeconfig
from tests.cluster.sweeps.ports import free_ports
from tests.cluster.sweeps.proofs import check_whole, runs_of
from tests.cluster.sweeps.tracking import Tracking
from tests.hostile_tenants.hostile_objects import (
    claim,
    continuing,
    empty_lists,
    forged_pod,
    full_of_placeholders,
    hostile_workflow,
    journal,
    long_text,
    of_many_policies,
    unpacks_to,
)

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

MOVED: Final = "t001"
STEPS: Final = 160
SLOWER: Final = 1.3
"""The attacked sweep's makespan over that of the same sweep in peace, at most: one machine does the work of both."""
MOST_MIB: Final = 450
"""Of the 512 MiB that the manifests allow."""
MORE_THREADS: Final = 40
FORGES_EVERY_S: Final = 2.0
"""Pods of a hostile tenant that did start would take their part of the nodes, as everybody's do."""
SILENCES: Final = 2
"""Times that a busy machine may let the question pass whether the controller lives."""
KEPT_TAGS: Final = (contract.TAG_MOVES, contract.TAG_SUSPENSIONS, contract.TAG_OUTCOME)
TOLD: Final = (
    "the nodes of workflow lists cannot be unpacked",
    "the nodes of workflow text cannot be unpacked",
    "cannot read the state in ConfigMap specon-",
    "thief is left alone",
    "crowd is left alone",
)
"""What the controller says of the hostile objects: it has seen each, and who looks at its log learns whose it is."""
_QUOTAS: Final = Resource("api/v1", "resourcequotas")
_BINDING: Final = "another-controller"


@contextmanager
def two_namespaces(cluster: Cluster, tracking: Tracking, folder: Path) -> Iterator[tuple[Bench, Bench]]:
    """Make the namespaces of victim and attacker."""
    with ExitStack() as stack:
        victim, attacker = (
            stack.enter_context(opened_bench(cluster, tracking, folder / name)) for name in ("victim", "attacker")
        )
        yield victim, attacker


def controller_of(victim: Bench, attacker: Bench) -> ControllerProcess:
    """Return a controller of both namespaces, with the account of the victim's."""
    access = controller_kubeconfig(victim.kubectl, victim.folder / "of-both.kubeconfig")
    namespaces = ["--namespace", victim.namespace, "--namespace", attacker.namespace]
    arguments = [*namespaces, "--lease-namespace", victim.namespace, "--kubeconfig", str(access)]
    arguments += ["--mlflow-tracking-uri", victim.tracking.uri, "--policy", "default", "--interval", "1"]
    return ControllerProcess((*arguments, "--no-leader-elect"), victim.folder / "of-both.log", free_ports(2)[0])


def let_in(victim: Bench, attacker: Bench) -> None:
    """Let the victim's controller into the attacker's namespace, as a platform team does for each namespace."""
    group = "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": victim.namespace}
    attacker.kubectl.create(
        [
            {
                "apiVersion": f"{group}/v1",
                "kind": "RoleBinding",
                "metadata": {"name": f"{_BINDING}-{role}", "namespace": attacker.namespace},
                "roleRef": {"apiGroup": group, "kind": "Role", "name": f"{ACCOUNT}-{role}"},
                "subjects": [subject],
            }
            for role in ("observe", "act")
        ]
    )


def lock_out(attacker: Bench) -> None:
    """Take the bindings away again."""
    attacker.kubectl("delete", "rolebinding", f"{_BINDING}-observe", f"{_BINDING}-act")


@dataclass
class Attack:
    """All that is done in the attacker's namespace to a sweep in the victim's.

    Attributes:
        workflow: the honest sweep.
    """

    victim: Bench
    attacker: Bench
    workflow: Workflow
    _stop: threading.Event = field(default_factory=threading.Event)
    forged: int = 0

    def prepare(self) -> None:
        """Write the objects that stay, before the controller may see them: so it lists them all at once."""
        namespace = self.attacker.namespace
        owner = self._workflow(hostile_workflow(namespace, "claims"))
        kept = self._workflow(hostile_workflow(namespace, "journal"))
        self._create(CONFIG_MAPS, journal(namespace, kept["metadata"]["uid"], empty_lists()))
        self._workflow(unpacks_to(namespace, "lists", empty_lists()))
        self._workflow(unpacks_to(namespace, "text", long_text()))
        self._workflow(full_of_placeholders(namespace, "placeholders"))
        self._workflow(of_many_policies(namespace, "crowd"))
        self._workflow(continuing(namespace, "thief", self.workflow.uid, NAME))
        for node in self.victim.cluster.node_names:
            self._create(PODS, claim(namespace, f"claim-on-{node}", owner, node))
        # No journal of a sweep of this namespace can be written any more.
        quota = {"metadata": {"name": "none"}, "spec": {"hard": {"count/configmaps": "0"}}}
        self._create(_QUOTAS, quota)

    @contextmanager
    def forging(self) -> Iterator[None]:
        """Make pods that pass for the victim's while the context lasts: Kubernetes collects each after a while."""
        thread = threading.Thread(target=self._forge, name="forging", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _forge(self) -> None:
        nodes = self.victim.cluster.node_names
        while not self._stop.wait(FORGES_EVERY_S):
            pods = list(self.victim.running(self.workflow).values())
            if not pods:
                continue
            name, node = f"forged-{secrets.token_hex(3)}", nodes[self.forged % len(nodes)]
            made = forged_pod(pods[self.forged % len(pods)].last, self.attacker.namespace, name, nodeName=node)
            # One that the API server will not have keeps none of the next from being tried.
            with contextlib.suppress(ApiError):
                self._create(PODS, made)
                self.forged += 1

    def _workflow(self, made: Json) -> Json:
        return self._create(WORKFLOWS, made)

    def _create(self, resource: Resource, made: Json) -> Json:
        return {**made, **self.attacker.api.create(resource.path(self.attacker.namespace), made)}


def seen(controller: ControllerProcess) -> bool:
    """Whether the controller has told of every hostile object."""
    messages = "\n".join(str(line.get("message")) for line in controller.lines())
    return all(told in messages for told in TOLD)


def moved(bench: Bench, workflow: Workflow) -> tuple[str, str]:
    """Move one trial; return where it was to go, and where it went."""
    pod, target = bench.begin_move(workflow, MOVED)
    bench.wait(lambda: len(bench.pods.of(workflow.name, MOVED)) > 1, "the next attempt is there", 60)
    bench.wait(lambda: bool(bench.pods.of(workflow.name, MOVED)[1].node), "the next attempt has a node", 60)
    assert bench.pods.of(workflow.name, MOVED)[0].uid == pod.uid
    return target, bench.pods.of(workflow.name, MOVED)[1].node


def ended_whole(bench: Bench, workflow: Workflow) -> float:
    """Wait for the end, check that nothing was lost or doubled, and return the seconds that the sweep took."""
    bench.wait_for_end(workflow, 150)
    check_whole(bench, workflow)
    client = MlflowClient(bench.tracking.uri)
    bench.wait(lambda: bool(tracked_record(client, workflow.name).results()), "its record is complete", 60)
    status: Mapping[str, Any] = bench.workflow(workflow)["status"]
    began, ended = epoch(status, "startedAt"), epoch(status, "finishedAt")
    assert began is not None
    assert ended is not None
    return ended - began


def tags_of(bench: Bench, workflow: Workflow) -> Mapping[str, Mapping[str, str]]:
    """Return what MLflow shows of each trial, as far as it is the same in every run of the sweep."""
    return {
        trial.removeprefix(workflow.uid): {name: run.data.tags[name] for name in KEPT_TAGS if name in run.data.tags}
        for trial, (run,) in runs_of(bench, workflow).items()
    }


def check_one_parent(bench: Bench, workflow: Workflow) -> None:
    """Check that the sweep has one parent run, and that it is the victim's."""
    client = MlflowClient(bench.tracking.uri)
    experiments = [one.experiment_id for one in client.search_experiments()]
    wanted = f"tags.`{contract.TAG_SWEEP_ID}` = '{workflow.uid}.{NAME}' AND tags.`specon.policy` != ''"
    (parent,) = client.search_runs(experiments, wanted)
    assert parent.data.tags["specon.namespace"] == bench.namespace
    assert parent.info.status == "FINISHED"


def test_whatever_another_tenant_does_a_sweep_runs_as_in_peace(
    own_cluster: Cluster, tracking: Tracking, tmp_path: Path
) -> None:
    with two_namespaces(own_cluster, tracking, tmp_path) as (victim, attacker):
        controller = controller_of(victim, attacker).start()
        try:
            controller.wait_ready()
            _attack(victim, attacker, controller)
        finally:
            controller.kill()


def _attack(victim: Bench, attacker: Bench, controller: ControllerProcess) -> None:
    with Growth(controller) as in_peace:
        # Until it is let in, the controller may not look at the attacker's namespace: that is no concern of others.
        calm = victim.submit(steps=STEPS)
        victim.wait_all_training(calm)
        target, node = moved(victim, calm)
        assert node == target
        undisturbed_s = ended_whole(victim, calm)
    with Growth(controller) as attacked:
        workflow = victim.submit(steps=STEPS)
        attack = Attack(victim, attacker, workflow)
        attack.prepare()
        victim.wait_all_training(workflow)
        with attack.forging():
            let_in(victim, attacker)
            victim.wait(lambda: seen(controller), "the controller has seen every hostile object", 60)
            target, node = moved(victim, workflow)
            lock_out(attacker)
            disturbed_s = ended_whole(victim, workflow)
        print(  # noqa: T201 - shown where the test fails
            f"makespan {undisturbed_s:.0f} s in peace, {disturbed_s:.0f} s attacked by {attack.forged} forged pods; "
            f"{attacked.peak_mib:.0f} MiB, {in_peace.most_threads} and {attacked.most_threads} threads"
        )
        assert node == target, "claims of a million cores closed the node"
        assert tags_of(victim, workflow) == tags_of(victim, calm)
        check_one_parent(victim, workflow)
        assert disturbed_s <= SLOWER * undisturbed_s
        assert attack.forged > 0
        assert attacked.same_process
        assert attacked.silences <= SILENCES
        assert attacked.peak_mib < MOST_MIB
        assert attacked.most_threads <= in_peace.most_threads + MORE_THREADS
