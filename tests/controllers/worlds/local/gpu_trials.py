"""Trials that hold GPUs in a local world whose attempts only say that they run."""

from controllers.core import labels
from controllers.worlds.local.gangs import Ended
from controllers.worlds.local.jobs import LocalJob
from controllers.worlds.local.workflow import Program
from tests.controllers.worlds.local.workflow.workflow_manifests import call, program, steps


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


def trials_with_gpus(asked: object = 1, names: str = "abc") -> Program:
    """Return trials by these names that ask for so many GPUs each, or for such a part of one."""
    resources = {"requests": {"cpu": "10m"}, "limits": {"nvidia.com/gpu": asked}}
    notes = {labels.ANNOTATION_OBJECTIVE: "loss", labels.ANNOTATION_DIRECTION: "minimize"}
    templates = []
    for name in names:
        env = [{"name": "SPECON_TRIAL_ID", "value": f"u.s.{name}"}]
        main = {"name": name, "container": {"command": ["run"], "env": env, "resources": resources}}
        templates.append(main | {"metadata": {"labels": {labels.LABEL_SWEEP: "s"}, "annotations": notes}})
    return program(steps([call(name, name) for name in names]), *templates)
