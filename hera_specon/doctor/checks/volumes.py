"""The claims that hold checkpoints, trials that no node holds, and devices that they claim."""

from collections.abc import Iterator

from hera_specon.doctor.facts import VolumeFacts
from hera_specon.doctor.findings import Finding, fault, ok, warning


def check_volumes(facts: VolumeFacts) -> Iterator[Finding]:
    """Yield whether the volumes of a sweep are there for every node, its trials not too large, their devices there."""
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
    show = f"kubectl get resourceslices,deviceclasses && kubectl get resourceclaimtemplates -n {facts.name}"
    for found in facts.claimed:
        yield warning("resource claims", found, "See what the drivers offer and what the template asks for.", show)
