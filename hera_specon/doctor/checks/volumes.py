"""The claims that hold checkpoints, and trials that no node holds."""

from collections.abc import Iterator

from hera_specon.doctor.facts import VolumeFacts
from hera_specon.doctor.findings import Finding, fault, ok, warning


def check_volumes(facts: VolumeFacts) -> Iterator[Finding]:
    """Yield whether the volumes of a sweep are there for every node, and its trials not too large."""
    for claim, (problem, warnings) in facts.claims.items():
        subject, show = f"claim {claim}", f"kubectl describe persistentvolumeclaim {claim} -n {facts.name}"
        if problem:
            yield fault(subject, problem, "Create it with ReadWriteMany, or keep checkpoints in a bucket.", show)
        elif warnings:
            yield warning(subject, "; ".join(warnings), "Use a claim with ReadWriteMany, or a bucket.", show)
        else:
            yield ok(subject, "it is there, or you may not look; the try-out pod mounts it")
    for found in facts.too_large:
        yield warning(
            "nodes", found, "Ask for less, or see whether an autoscaler adds such a node.", "kubectl get nodes"
        )
