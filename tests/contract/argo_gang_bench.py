"""Gangs in the Argo world behind the bench: their workers are pods that share a folder of this machine."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from controllers.core import labels
from controllers.core.expressions import worker_container, worker_gates, workers
from controllers.core.model import TrialId
from controllers.worlds.argo.writing.pod_changes import execute
from tests.contract.argo_bench import ArgoBench
from tests.contract.bench import Behaviour, GangBench


class ArgoGangBench(ArgoBench, GangBench):
    """Two nodes of a cluster for trials of several workers."""

    def submit(self, *, gated: bool = False, **behaviours: Behaviour) -> None:
        """Submit a workflow of these gangs; those that wait for a place begin with the least number of pods."""
        self._first = gated
        super().submit(gated=gated, **behaviours)

    def crew(self, name: str) -> Sequence[str]:
        """Return the node of each worker of the trial's newest attempt, by rank, as the workers tell."""
        return [node for _, node in self._newest(name)]

    def kill_worker(self, name: str, rank: int) -> None:
        """SIGKILL one worker of the trial's present attempt, by its pid in its container."""
        attempt = self.world.attempt(TrialId(self.trial(name).id))
        assert attempt is not None
        execute(self._api, attempt.workers[rank], ("/bin/sh", "-c", f"kill -9 {self._newest(name)[rank][0]}"))

    def _newest(self, name: str) -> Sequence[tuple[int, str]]:
        told = [line.split() for line in self._lines(name, "workers")]
        newest = [words for words in told if words[0] == told[-1][0]]
        return [(int(pid), node) for _, _, _, pid, node in sorted(newest, key=lambda words: int(words[1]))]

    def _template(self, name: str, behaviour: Behaviour) -> dict[str, Any]:
        made = super()._template(name, behaviour)
        gate, main = worker_gates("sweep", first=self._first), worker_container("sweep")
        patches = f'"containers": [{main}], "schedulingGates": {gate}'
        made["podSpecPatch"] = f'{{"terminationGracePeriodSeconds": 2, {patches}}}'
        return made

    def _manifest(self, behaviours: Mapping[str, Behaviour]) -> dict[str, Any]:
        """Return the workflow; gangs that wait for their first place begin as ``specon submit`` lets them."""
        made = super()._manifest(behaviours)
        templates = {template["name"]: template for template in made["spec"]["templates"]}
        for template in templates.values() if self._first else ():
            (step,) = template["steps"][0] if "retryStrategy" in template and "steps" in template else [{}]
            if "withSequence" in step:
                notes = templates[step["template"]]["metadata"]["annotations"]
                most, least = (int(notes[name]) for name in (labels.ANNOTATION_WORKERS, labels.ANNOTATION_MIN_WORKERS))
                whole, few = (json.dumps(workers("sweep", size)) for size in (most, least))
                template["steps"] = json.loads(json.dumps(template["steps"]).replace(whole, few))
        return made
