"""What stands in on this machine for volumes, secrets and GPUs of a cluster's file."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from controllers.core import labels
from controllers.core.actions import Migrate
from controllers.core.errors import SpeconError
from controllers.core.model import NodeName, TrialId
from controllers.local_run.checks import check_gpus, stand_ins
from controllers.worlds.local.gangs import Ended
from controllers.worlds.local.gpus import devices_of, gpus_here, least_shared, replicas_of, shared_out
from controllers.worlds.local.jobs import JobLedger, LocalJob
from controllers.worlds.local.room import Machine
from controllers.worlds.local.stand_ins import stood_in
from controllers.worlds.local.workflow import PlannedTrial, PodStep, Program, UnsupportedWorkflowError, WorkflowError
from controllers.worlds.local.workflow.steps import Mount
from controllers.worlds.local.world import LocalWorld
from tests.controllers.worlds.local.workflow.workflow_manifests import Manifest, call, program, steps

if TYPE_CHECKING:
    from controllers.worlds.local.attempts import Attempts

DATA = [{"name": "data", "mountPath": "/no/data"}]


def container(name: str = "main", **fields: object) -> Manifest:
    return {"name": name, "container": {"command": ["run"], **fields}}


def step_of(main: Manifest, **spec: Any) -> PodStep:  # noqa: ANN401 - any field of a manifest
    (step,) = program(main, **spec).expand({}, ()).pods
    return step


def mount_of(volume: Mapping[str, Any], **mount: str) -> Mount:
    (found,) = step_of(container(volumeMounts=[{**DATA[0], **mount}]), volumes=[{"name": "data", **volume}]).mounts
    return found


def test_a_claim_is_a_folder_that_all_trials_share_and_an_empty_dir_one_for_each() -> None:
    assert mount_of({"persistentVolumeClaim": {"claimName": "x"}}) == Mount("/no/data", "data")
    assert mount_of({"emptyDir": {}}, subPath="a/b") == Mount("/no/data", "data", "a/b", own=True)


def test_a_folder_of_a_node_is_that_of_this_machine_where_there_is_one(tmp_path: Path) -> None:
    assert mount_of({"hostPath": {"path": str(tmp_path)}}) == Mount("/no/data", "data", folder=str(tmp_path))
    with pytest.raises(UnsupportedWorkflowError, match="is not there on this machine"):
        mount_of({"hostPath": {"path": str(tmp_path / "gone")}})


def test_a_path_that_this_machine_has_is_used_as_it_is(tmp_path: Path) -> None:
    mounts = [{"name": "data", "mountPath": str(tmp_path)}]
    assert step_of(container(volumeMounts=mounts), volumes=[{"name": "data", "emptyDir": {}}]).mounts == ()


@pytest.mark.parametrize("kind", ["configMap", "secret", "projected", "nfs", "csi"])
def test_a_volume_whose_content_is_on_a_cluster_is_refused(kind: str) -> None:
    with pytest.raises(UnsupportedWorkflowError, match="what it holds is on a cluster"):
        mount_of({kind: {}})


@pytest.mark.parametrize("inside", ["../up", "/etc"])
def test_no_sub_path_leads_out_of_a_volume(inside: str) -> None:
    with pytest.raises(UnsupportedWorkflowError, match="only a plain subPath"):
        mount_of({"emptyDir": {}}, subPath=inside)


def test_paths_of_volumes_in_commands_and_variables_become_folders_that_are_made(tmp_path: Path) -> None:
    mounts = (Mount("/mnt/data", "data"), Mount("/mnt/own", "own", own=True))
    args = ("--in=/mnt/data/a.csv", "/mnt/data", "/mnt/database", "x/mnt/data", "a:/mnt/own:/mnt/data/b")
    step = PodStep("s", "t", ("run",), args, env={"DATA": "/mnt/data", "K": "v"}, mounts=mounts)
    found = stood_in(step, tmp_path, "t000", None)
    shared, own = tmp_path / "volumes" / "data", tmp_path / "volumes" / "own" / "t000"
    assert found.args == (
        f"--in={shared}/a.csv", str(shared), "/mnt/database", "x/mnt/data", f"a:{own}:{shared}/b",
    )  # fmt: skip
    assert (found.env["DATA"], found.env["K"]) == (str(shared), "v")
    assert shared.is_dir()
    assert own.is_dir()


def test_a_variable_may_name_the_trials_folder_and_variables_before_it(tmp_path: Path) -> None:
    given = {"TORCH_HOME": "$(SPECON_TRIAL_FOLDER)/torch", "HUB": "$(TORCH_HOME)/hub", "LATE": "$(LAST) $$(HUB)"}
    env = stood_in(
        PodStep("s", "t", (), env={**given, "LAST": "x", "SPECON_TRIAL_FOLDER": "/scratch"}), tmp_path, "t000", None
    ).env
    own = env["SPECON_TRIAL_FOLDER"]
    assert own == str(tmp_path / "files" / "t000")
    assert (env["TORCH_HOME"], env["HUB"], env["LATE"]) == (f"{own}/torch", f"{own}/torch/hub", "$(LAST) $(HUB)")


def test_a_trial_has_a_folder_of_its_own_that_all_its_attempts_share(tmp_path: Path) -> None:
    folders = {stood_in(PodStep("s", "t", ()), tmp_path, "t000", None).env["SPECON_TRIAL_FOLDER"] for _ in range(2)}
    assert folders == {str(tmp_path / "files" / "t000")}
    assert (tmp_path / "files" / "t000").is_dir()


def test_a_secret_may_be_in_a_file_which_each_attempt_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("API_TOKEN", raising=False)
    monkeypatch.setenv("API_TOKEN_FILE", str(tmp_path / "token"))
    secret = {"name": "API_TOKEN", "valueFrom": {"secretKeyRef": {"name": "tokens", "key": "api"}}}
    step = step_of(container(env=[secret]))
    with pytest.raises(SpeconError, match=r"API_TOKEN_FILE names .* which cannot be read"):
        stood_in(step, tmp_path, "t000", None)
    (tmp_path / "token").write_text("s3cret\n")
    assert stood_in(step, tmp_path, "t000", None).env["API_TOKEN"] == "s3cret"  # noqa: S105
    assert "s3cret" not in str(step)


def test_memory_limits_and_gpus_are_read_and_a_part_of_a_gpu_is_refused() -> None:
    step = step_of(container(resources={"limits": {"memory": "1Gi", "nvidia.com/gpu": "2"}}))
    assert (step.memory_limit, step.gpus) == (2.0**30, 2)
    with pytest.raises(WorkflowError, match="must be a whole number"):
        step_of(container(resources={"limits": {"nvidia.com/gpu": "500m"}}))


def test_the_gpus_of_this_machine_are_those_that_may_be_used(tmp_path: Path) -> None:
    for name in ("nvidia10", "nvidia2", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    assert gpus_here({}, tmp_path) == ("2", "10")
    assert gpus_here({"CUDA_VISIBLE_DEVICES": "GPU-a, 3"}, tmp_path) == ("GPU-a", "3")
    assert gpus_here({"CUDA_VISIBLE_DEVICES": ""}, tmp_path) == ()
    assert gpus_here({"CUDA_VISIBLE_DEVICES": "-1"}, tmp_path) == ()


def test_gpus_are_dealt_so_that_some_node_holds_what_one_trial_asks_for() -> None:
    assert shared_out("abc", ["n1", "n2"], 2) == {"n1": ("a", "b"), "n2": ("c",)}
    assert shared_out("abc", ["n1", "n2"], 1) == {"n1": ("a", "c"), "n2": ("b",)}
    assert shared_out("", ["n1"], 1) == {"n1": ()}


def test_a_gpu_that_is_named_several_times_may_be_shared_by_as_many_trials_on_one_node(tmp_path: Path) -> None:
    named = gpus_here({"CUDA_VISIBLE_DEVICES": "0,0,1,1"}, tmp_path)
    assert shared_out(named, ["n1", "n2"], 1) == {"n1": ("0", "0"), "n2": ("1", "1")}
    assert shared_out(named, ["n1"], 1) == {"n1": ("0", "0", "1", "1")}
    assert (replicas_of(named), replicas_of(("0", "1")), replicas_of(())) == (2, 1, 1)


def test_trials_come_to_the_gpu_that_the_fewest_others_hold() -> None:
    assert least_shared(("0", "0", "1", "1"), {}) == ["0", "1", "0", "1"]
    assert least_shared(("0", "0", "1", "1"), {"0": 1}) == ["1", "0", "1"]
    assert least_shared(("0", "1"), {"0": 1}) == ["1"]


def test_gpus_that_are_named_unequally_often_and_trials_of_several_shared_ones_are_refused_by_name() -> None:
    with pytest.raises(SpeconError, match=r"names GPU 0 2 times, 1 1 times: name each equally often"):
        check_gpus([], ("0", "0", "1"))
    planned = [PlannedTrial(PodStep("s", "t", (), gpus=2), 0.0)]
    with pytest.raises(
        SpeconError, match=r"asks for 2 nvidia\.com/gpu, but CUDA_VISIBLE_DEVICES names each GPU several"
    ):
        check_gpus(planned, ("0", "0", "1", "1"))


def test_more_gpus_than_there_are_are_refused_before_anything_starts(tmp_path: Path) -> None:
    planned = [PlannedTrial(PodStep("s", "t", (), gpus=2, mounts=(Mount("/no/data", "data"),)), 0.0)]
    with pytest.raises(SpeconError, match=r"a trial asks for 2 nvidia\.com/gpu, but here are 1"):
        check_gpus(planned, ["0"])
    assert check_gpus(planned, "01") == 2
    where, volume = stand_ins(planned, tmp_path)
    assert f"trials run in {Path.cwd()}" in where
    assert "/no/data in commands and variables is volumes/data" in volume


class Started:
    """Attempts that run until the test ends them."""

    def __init__(self) -> None:
        self.gpus: dict[str, tuple[str, ...]] = {}
        self.over: list[Ended] = []

    def start(self, job: LocalJob, _: float) -> tuple[int, ...]:
        self.gpus[job.step.template] = job.gpus
        return (1,)

    def ended(self) -> list[Ended]:
        found, self.over = self.over, []
        return found

    def check_joined(self, *_: object) -> None:
        pass

    def broken(self) -> frozenset[str]:
        return frozenset()

    def node_cores_used(self, *_: object) -> float:
        return 0.0

    def cpu_seconds(self, _: LocalJob) -> float:
        return 0.0

    def threads(self, _: LocalJob, part: float) -> int:
        del part
        return 0

    def waited_seconds(self, _: LocalJob) -> float:
        return 0.0

    def memory(self, _: LocalJob) -> float:
        return 0.0

    def share(self, *_: object) -> None:
        pass

    def begins_again(self, _: LocalJob) -> bool:
        return False

    def ask_to_leave(self, _: LocalJob) -> None:
        pass


@pytest.fixture
def started() -> Started:
    return Started()


def three_trials() -> Program:
    """Return three trials of a GPU each."""
    asks = {"resources": {"requests": {"cpu": "10m"}, "limits": {"nvidia.com/gpu": 1}}}
    templates = []
    for name in "abc":
        one = container(name, env=[{"name": "SPECON_TRIAL_ID", "value": f"u.s.{name}"}], **asks)
        notes = {labels.ANNOTATION_OBJECTIVE: "loss", labels.ANNOTATION_DIRECTION: "minimize"}
        templates.append(one | {"metadata": {"labels": {labels.LABEL_SWEEP: "s"}, "annotations": notes}})
    return program(steps([call(name, name) for name in "abc"]), *templates)


@pytest.fixture
def world(started: Started) -> LocalWorld:
    """Three trials of a GPU each on two nodes that have two and one... and a third without any request."""
    machine = Machine({"n1": 1.0, "n2": 1.0}, 1e9, gpus={"n1": ("0", "1"), "n2": ()})
    return LocalWorld(three_trials(), "u", machine, cast("Attempts", started), JobLedger())


def test_each_trial_holds_a_gpu_of_its_own_and_the_next_waits_until_one_is_free(
    world: LocalWorld, started: Started
) -> None:
    world.advance(0.0)
    assert started.gpus == {"a": ("0",), "b": ("1",)}
    assert [str(node.devices) for node in world.nodes()] == ["2 nvidia.com/gpu", "no devices"]
    seen = world.trial(TrialId("u.s.c"))
    assert seen is not None
    assert seen.devices == devices_of(1)
    assert not seen.nodes
    first = next(job for job in world.jobs() if job.step.template == "a")
    started.over.append(Ended(first.key, 0, 1.0))
    world.advance(1.0)
    assert started.gpus["c"] == ("0",)


def test_two_trials_share_a_gpu_that_is_named_twice_and_policies_see_one_that_counts_twice(
    world: LocalWorld, started: Started
) -> None:
    shared = Machine({"n1": 1.0, "n2": 1.0}, 1e9, gpus={"n1": ("0", "0"), "n2": ()})
    world = LocalWorld(three_trials(), "u", shared, cast("Attempts", started), JobLedger())
    world.advance(0.0)
    assert started.gpus == {"a": ("0",), "b": ("0",)}
    assert [(str(node.devices), node.replicas) for node in world.nodes()] == [
        ("2 nvidia.com/gpu", 2),
        ("no devices", 1),
    ]
    seen = world.trial(TrialId("u.s.c"))
    assert seen is not None
    assert not seen.nodes


def test_no_trial_moves_to_a_node_that_has_no_gpu_for_it(world: LocalWorld) -> None:
    world.advance(0.0)
    assert "no room" in world.apply(Migrate(TrialId("u.s.a"), (NodeName("n2"),))).detail
