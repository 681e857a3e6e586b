"""Trials of several workers: the pods of an attempt read as one, and the plan of how many each attempt has. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from controllers.worlds.argo.definitions import MOST_WORKERS, TrialDefinition
from controllers.worlds.argo.demands import Demands
from controllers.worlds.argo.pods import MainState, PodRecord, ResizeState, Share

MOST_ATTEMPTS: Final = 160
"""Attempts after which a gang is moved no more: Argo makes only so many."""
_MOST_ANNOTATION: Final = 4096
_WORST: Final = (ResizeState.INFEASIBLE, ResizeState.DEFERRED, ResizeState.GRANTED)


@dataclass(frozen=True, slots=True)
class GangPlan:
    """How many workers each attempt of a gang has, from the first, and which attempts were asked to leave.

    Both stand in annotations of the workflow, where Argo's expressions read them. Whoever may write workflows may write
    them too: the numbers of workers that count are those of the pods.
    """

    sizes: tuple[int, ...] = ()
    left: frozenset[int] = frozenset()

    @classmethod
    def of(cls, annotations: Mapping[str, str], trial: TrialDefinition) -> "GangPlan":
        """Return the plan that a workflow's annotations have for ``trial``; what makes no sense is left out."""
        sizes = _numbers(annotations.get(trial.gang_mark, ""))
        return cls(
            tuple(size for size in sizes if 0 < size <= MOST_WORKERS),
            frozenset(_numbers(annotations.get(trial.left_mark, ""))),
        )

    def annotations(self, trial: TrialDefinition) -> dict[str, str | None]:
        """Return the annotations that keep it."""
        left = ",".join(str(attempt) for attempt in sorted(self.left))
        return {trial.gang_mark: ",".join(map(str, self.sizes)), trial.left_mark: left or None}

    def at(self, attempt: int, size: int, after: int, *, leaves: bool, left: Iterable[int] = ()) -> "GangPlan":
        """Return the plan for the time of an attempt.

        Args:
            attempt: Its number, from 0. Argo counts from there again where it was told to retry the workflow.
            size: How many workers it has.
            after: How many the next one begins with.
            leaves: Whether it is asked to leave, which is no failure.
            left: Attempts before it that left of their own accord.
        """
        before = (*self.sizes[:attempt], *(size for _ in range(attempt - len(self.sizes))))
        asked = {one for one in (*self.left, *left) if one < attempt} | ({attempt} if leaves else set())
        return GangPlan((*before, size, after), frozenset(asked))


NO_PLAN: Final = GangPlan()


def _numbers(written: str) -> list[int]:
    words = written.split(",") if 0 < len(written) <= _MOST_ANNOTATION else []
    return [int(word) for word in words if word.isdecimal() and word.isascii()]


def written_nodes(nodes: Sequence[str]) -> str:
    """Return the nodes of a gang's workers, by rank, as annotations have them."""
    return ",".join(nodes)


def why_unwritable(nodes: Sequence[str]) -> str:
    """Return why the nodes of a gang cannot be noted on its pod, empty where they can."""
    length = len(written_nodes(nodes))
    return f"the names of its {len(nodes)} nodes have {length} letters" if length > _MOST_ANNOTATION else ""


def attempts_of(pods: Sequence[PodRecord], known: Iterable[PodRecord | None]) -> list[PodRecord]:
    """Return a record for each attempt in place of the pods of its workers; pods of single trials stay as they are.

    Args:
        pods: The trial's pods that are there now.
        known: Records of attempts from the look before. One of the very same workers is returned again. Of one whose
            pods vanish while others run, they count as failed: Argo or its collector took them away.
    """
    by_attempt: dict[int, dict[int, PodRecord]] = {}
    for pod in sorted(pods, key=lambda pod: pod.created_at):
        if pod.rank is not None:
            by_attempt.setdefault(pod.attempt, {})[pod.rank] = pod
    before = {record.attempt: record for record in known if record is not None and record.workers}
    singles = [pod for pod in pods if pod.rank is None]
    return singles + [_attempt(ranks, before.get(attempt)) for attempt, ranks in by_attempt.items()]


def _attempt(ranks: dict[int, PodRecord], before: PodRecord | None) -> PodRecord:
    here = {pod.uid for pod in ranks.values()}
    if before is not None and any(one.uid in here for one in before.workers):
        for one in before.workers:
            began = one.node and one.main is not MainState.WAITING
            if one.rank is not None and one.rank not in ranks and began:
                ranks[one.rank] = one if one.over else replace(one, phase="Failed", main=MainState.OVER)
        if tuple(ranks[rank] for rank in sorted(ranks)) == before.workers:
            return before
    return together(tuple(ranks[rank] for rank in sorted(ranks)))


def together(workers: tuple[PodRecord, ...]) -> PodRecord:
    """Return the record of an attempt of a gang: that of its first pod, with what holds of all ``workers``, by rank.

    It is on its node and runs once all workers are there and have begun, and is over once all are.
    """
    lead = workers[0]
    size = max(worker.size for worker in workers)
    whole = [worker.rank for worker in workers] == list(range(size))
    return replace(
        lead,
        workers=workers,
        size=size,
        phase=_phase(workers, whole=whole),
        main=_main(workers, whole=whole),
        node=lead.node if whole and all(worker.node for worker in workers) else "",
        gated=all(worker.gated for worker in workers),
        created_at=max(worker.created_at for worker in workers),
        deleted_at=max((one.deleted_at for one in workers if one.deleted_at is not None), default=None),
        unschedulable_since=None,
        share=_share([worker.share for worker in workers]),
        ends=all(worker.ends for worker in workers),
        shares_processes=next((one.shares_processes for one in workers if one.shares_processes), ""),
        demands=_demands(workers),
        failure=next((worker.failure for worker in workers if worker.failure is not None), None),
    )


def _phase(workers: Sequence[PodRecord], *, whole: bool) -> str:
    if whole and all(worker.over for worker in workers):
        return "Succeeded" if all(worker.phase == "Succeeded" for worker in workers) else "Failed"
    return "Running" if any(worker.phase == "Running" for worker in workers) else "Pending"


def _main(workers: Sequence[PodRecord], *, whole: bool) -> MainState:
    states = {worker.main for worker in workers}
    if not whole or MainState.WAITING in states:
        return MainState.WAITING
    return MainState.OVER if states == {MainState.OVER} else MainState.RUNNING


def _demands(workers: Sequence[PodRecord]) -> Demands:
    # The template gives all workers the same. Where a node for one is none for another, none is chosen for the gang.
    first = workers[0].demands
    return first if all(worker.demands == first for worker in workers) else replace(first, understood=False)


def _share(shares: Sequence[Share]) -> Share:
    worst = min(shares, key=lambda share: _WORST.index(share.state))
    # All train at the pace of the slowest.
    return replace(worst, wanted=max(one.wanted for one in shares), has=min(one.has for one in shares))
