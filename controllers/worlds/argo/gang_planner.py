"""The rules that choose the next command for a gang from what can be seen now, as ``commands`` does for one worker.

A gang's gates are opened together, once every worker has its pod and a node with room. The workflow's annotations say
how many pods each attempt gets; pods can be added to an attempt that waits, and never taken away. So an attempt that
nobody has chosen a size for begins with the least number of workers, and grows before its gates open.
"""

from dataclasses import dataclass

from controllers.core.expressions import LEFT
from controllers.worlds.argo.commands import (
    ENDED_BY_ITSELF,
    AbandonMove,
    ChoosePlace,
    Command,
    Hold,
    LeaveRequest,
    OpenGates,
    Planner,
    Recreate,
    Remove,
    Replan,
    WithdrawResize,
    hand_over,
    limit_tries,
)
from controllers.worlds.argo.gangs import GangPlan, written_nodes
from controllers.worlds.argo.pods import MainState, PodRecord
from controllers.worlds.argo.trials import TrialState


def plan_of(state: TrialState, pod: PodRecord, next_size: int | None = None, *, leaves: bool | None = None) -> GangPlan:
    """Return the plan that fits what is seen of a gang.

    Args:
        state: The gang.
        pod: Its newest attempt.
        next_size: How many workers the next attempt gets; by default what the marks say.
        leaves: Whether this attempt is asked to leave; by default what the marks say.
    """
    marks, least = pod.marks, state.definition.min_workers
    # The pods that only end the step of a stopped trial need not be many.
    after = 1 if state.stopped else len(marks.move_nodes) or least
    asked = bool(state.stopped or marks.move_nodes or marks.rest)
    attempts = () if state.step is None else state.step.attempts
    return state.plan.at(
        pod.attempt - 1,
        max(pod.size, len(marks.place)),
        after if next_size is None else next_size,
        leaves=asked if leaves is None else leaves,
        left=[number for number, attempt in enumerate(attempts) if attempt.exit_code in LEFT],
    )


@dataclass(frozen=True, slots=True)
class GangPlanner:
    """Chooses the next command for a gang, with the rules for one worker where these hold for several, too."""

    one: Planner

    def next_command(self, state: TrialState, asked: LeaveRequest | None) -> Command | None:
        """Return what to do now, None where there is nothing; as for one worker."""
        pod = state.pod
        if pod is None or pod.over or pod.ends or state.phase.ended:
            return limit_tries(state)
        there = [worker for worker in pod.workers if not worker.over]
        for worker in there:
            gone = None if worker.deleted_at is None else self.one.for_deleted(worker, worker.deleted_at)
            if isinstance(gone, Remove):
                return Remove(pod, gone.reason, _ranks([worker]))
        unplaced = [worker for worker in there if not worker.node and worker.deleted_at is None]
        if state.stopped and unplaced:
            # Argo makes them anew, as pods that only end.
            return Remove(pod, "its trial is stopped", _ranks(unplaced))
        leaving = bool(pod.marks.move_to or pod.marks.rest or state.stopped)
        broken = any(worker.phase == "Failed" for worker in pod.workers)
        if (leaving or broken) and any(worker.main is MainState.RUNNING for worker in there):
            return self._for_leaving(state, pod, asked, leaving=leaving)
        if not state.waits_to_begin and (plan := plan_of(state, pod)) != state.plan:
            return Replan(pod, plan)
        if any(worker.gated for worker in there):
            return self._for_gated(state, pod)
        if unplaced:
            return self._for_unscheduled(state, pod, unplaced) or _hand_over(state, there)
        if any(self.one.resize_is_overdue(worker) for worker in there):
            return WithdrawResize(pod)
        return _hand_over(state, there) or self.one.for_steady(state, pod)

    def _for_leaving(
        self, state: TrialState, pod: PodRecord, asked: LeaveRequest | None, *, leaving: bool
    ) -> Command | None:
        command = self.one.for_leaving(state, pod, asked)
        if isinstance(command, AbandonMove) and not leaving:
            # A gang that has lost a worker cannot go on.
            rest = [worker for worker in pod.workers if not worker.over]
            return Remove(pod, f"one of its workers failed, and {command.reason}", _ranks(rest))
        if isinstance(command, Remove):
            rest = [worker for worker in pod.workers if not worker.over]
            return Remove(pod, command.reason, _ranks(rest))
        return command

    def _for_gated(self, state: TrialState, pod: PodRecord) -> Command | None:
        if not pod.gated:
            return self._for_the_rest(state, pod)
        if state.suspended and not pod.marks.suspended:
            return Hold(pod)
        if state.waits_to_begin or state.suspended:
            return None  # only the policy opens the gates, by a Place
        nodes = self._nodes_for(state, pod)
        if not nodes:
            return None  # part of a gang would hold room for nothing
        if nodes != pod.marks.place and (nodes != state.targets_of_previous or len(nodes) > pod.size):
            # What is noted is reserved: of two gangs that wait for the same room, one gets all of it.
            return ChoosePlace(pod, nodes)
        return self._opening(state, pod, nodes) if pod.whole and len(nodes) == pod.size else None

    def _opening(self, state: TrialState, pod: PodRecord, nodes: tuple[str, ...]) -> OpenGates:
        previous, targets = state.history.previous, state.targets_of_previous
        left = written_nodes(previous.nodes) if previous is not None and targets else ""
        if pod.marks.place and not targets:
            why = f"as its policy wants: {written_nodes(nodes)}"
        else:
            why = f"it moves from {left} to {written_nodes(nodes)}" if left else ENDED_BY_ITSELF
        known = self.one.room.nodes
        return OpenGates(
            pod, tuple(known.get(name) for name in nodes), pod.workers[0].uid, why, left, state.definition.point
        )

    def _nodes_for(self, state: TrialState, pod: PodRecord) -> tuple[str, ...]:
        """Return where the workers of an attempt go that waits at its gates: all of them, or none yet."""
        trial, room, previous = state.definition, self.one.room, state.history.previous
        chosen = pod.marks.place or tuple(state.targets_of_previous)
        if len(chosen) >= pod.size and not room.why_no_gang(chosen, pod.requests, pod.demands, trial.id):
            return chosen
        before = chosen or (() if previous is None else previous.nodes)
        most = max(pod.size, min(len(before), trial.workers))
        for workers in range(most, max(pod.size, trial.min_workers) - 1, -1):
            if found := room.places(workers, pod.requests, pod.demands, trial.id, before):
                return found
        return ()

    def _for_the_rest(self, state: TrialState, pod: PodRecord) -> Command:
        """Open the gates that a controller left which ended while it opened them, or those of pods made anew."""
        opened = next(worker for worker in pod.workers if not worker.gated)
        chosen, room, trial = pod.marks.place or state.targets_of_previous, self.one.room, state.definition.id
        nodes = []
        for worker in pod.workers:
            name = chosen[worker.rank or 0] if (worker.rank or 0) < len(chosen) else ""
            fits = worker.gated and not room.why_unfit(name, worker.requests, worker.demands, trial)
            nodes.append(room.nodes[name] if fits else None)
        return OpenGates(
            pod, tuple(nodes), opened.token, "the others of its gang have started", "", state.definition.point
        )

    def _for_unscheduled(self, state: TrialState, pod: PodRecord, unplaced: list[PodRecord]) -> Command | None:
        anew = [command for worker in unplaced if (command := self.one.for_unscheduled(state, worker)) is not None]
        ranks = _ranks([command.pod for command in anew])
        return Recreate(pod, state.history.previous, anew[0].reason, ranks) if anew else None


def _hand_over(state: TrialState, there: list[PodRecord]) -> Command | None:
    first = next((worker for worker in there if worker.rank == 0 and worker.deleted_at is None), None)
    return None if first is None else hand_over(state, first)


def _ranks(workers: list[PodRecord]) -> frozenset[int]:
    return frozenset(worker.rank or 0 for worker in workers)
