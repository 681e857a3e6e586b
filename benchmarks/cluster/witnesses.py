"""What a run did by the word of those who carried it out: the API server's counters, the kernel's cgroups, the pods."""

import re
import threading
from collections import defaultdict
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Final

from controllers.core import labels
from tests.cluster.kubectl import Kubectl
from tests.cluster.layout import CGROUP

_CPU: Final = Path("/sys/fs/cgroup/cpu") / CGROUP
_EVERY_S: Final = 0.25
_RESIZES: Final = re.compile(
    r'^apiserver_request_total\{.*code="200".*subresource="resize".*verb="(?:PATCH|APPLY)".*\} (\S+)$'
)


def resizes_served(kubectl: Kubectl) -> int:
    """Return how many resizes the API server has carried out since it started."""
    counted = (_RESIZES.match(line) for line in kubectl("get", "--raw", "/metrics").splitlines())
    return sum(int(float(found.group(1))) for found in counted if found)


class WeightsSeen(threading.Thread):
    """Counts how often the weight of a container's cgroup changed, on every node, by looking four times a second."""

    def __init__(self) -> None:
        super().__init__(name="weights-seen", daemon=True)
        self._seen: dict[Path, list[int]] = defaultdict(list)
        self._over = threading.Event()

    def run(self) -> None:
        """Look until told to stop."""
        while not self._over.wait(_EVERY_S):
            # A pod that ends takes its folder along while we look: the next look, soon, sees the others again.
            with suppress(OSError):
                for file in _CPU.glob("*/kubepods/*/pod*/*/cpu.shares"):
                    weight = int(file.read_text())
                    if self._seen[file][-1:] != [weight]:
                        self._seen[file].append(weight)

    def changes(self) -> int:
        """Stop, and return the number of changes."""
        self._over.set()
        self.join()
        return sum(len(weights) - 1 for weights in self._seen.values())


def moves_made(kubectl: Kubectl, workflow: str) -> int:
    """Return how many attempts of a workflow's trials were on another node than the attempt before, after a mark."""
    pods = kubectl.items("pods", "--selector", f"workflows.argoproj.io/workflow={workflow},{labels.LABEL_TRIAL}")
    attempts = defaultdict(list)
    for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"])):
        attempts[pod["metadata"]["labels"][labels.LABEL_TRIAL]].append(pod)
    return sum(
        labels.ANNOTATION_MOVE_TO in before["metadata"]["annotations"]
        and before["spec"].get("nodeName") != after["spec"].get("nodeName")
        for of_trial in attempts.values()
        for before, after in pairwise(of_trial)
    )
