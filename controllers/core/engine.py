"""The level-triggered heart: observe, decide, recheck, act, journal. Never sleeps, knows no world."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from controllers.core.goals import with_goals_told
from controllers.core.model import Action, Migrate, Place, Progress, Proposal, Sample, Snapshot, Trial, TrialId
from controllers.core.policy import Policy
from controllers.core.ports import Cluster, Journal, MetricSource, Observer, Outcome
from controllers.core.progress import merge

S = TypeVar("S")


@dataclass(frozen=True)
class Memory:
    """What the engine itself must remember between ticks, beside the policy's state."""

    policy: str
    decisions: str
    progress: Mapping[TrialId, Progress] = field(default_factory=dict)
    reasons: Mapping[TrialId, str] = field(default_factory=dict)


_MEMORY = TypeAdapter(Memory)


class Engine(Generic[S]):
    """Drives one policy over one sweep.

    Every tick rebuilds its view from the world and the metrics; what it remembers is saved before
    anything is acted upon, so that a controller killed at any instant continues where it stood.
    """

    def __init__(
        self,
        policy: Policy[S],
        cluster: Cluster,
        source: MetricSource,
        journal: Journal,
        observers: Sequence[Observer] = (),
    ) -> None:
        self._policy = policy
        self._cluster = cluster
        self._source = source
        self._journal = journal
        self._observers = observers
        self._state_codec: TypeAdapter[S] = TypeAdapter(policy.state_type)
        self._state, self._progress, self._reasons = self._restored()
        self._seen: dict[TrialId, tuple[Trial, Sample | None, Trial]] = {}

    def tick(self, now: float) -> float | None:
        """Look, decide and act once, at ``now`` seconds of the sweep's clock.

        Returns:
            When the policy wants to be asked again, in seconds; None if only a change needs it.
        """
        snapshot = self._snapshot(now)
        decision = self._policy.decide(snapshot, self._state)
        self._state = decision.state
        self._save(urgent=bool(decision.proposals))
        for proposal, objection in decision.vetoed:
            self._journal.acted(now, proposal.action, proposal.reason, Outcome(accepted=False, detail=objection))
        before = {trial.id: trial for trial in snapshot.trials}
        for proposal in decision.proposals:
            self._act(now, proposal, before)
        assessments = with_goals_told(snapshot, decision.assessments)
        for observer in self._observers:
            observer.observe(snapshot, assessments, self._reasons)
        return decision.wake_at

    def _snapshot(self, now: float) -> Snapshot:
        samples = self._source.poll()
        trials = sorted(self._cluster.trials(), key=lambda trial: trial.id)
        return Snapshot(
            now=now,
            trials=tuple(self._informed(trial, samples.get(trial.id)) for trial in trials),
            nodes=tuple(sorted(self._cluster.nodes(), key=lambda node: node.name)),
        )

    def _informed(self, trial: Trial, sample: Sample | None) -> Trial:
        """Return ``trial`` with its progress; the same object as last time where nothing has come in since."""
        seen = self._seen.get(trial.id)
        if seen is not None and seen[0] is trial and seen[1] is sample:
            return seen[2]
        merged = None if sample is None else merge(self._progress.get(trial.id), sample, trial.direction)
        if merged is not None:
            self._progress[trial.id] = merged
        informed = replace(trial, progress=self._progress.get(trial.id))
        self._seen[trial.id] = trial, sample, informed
        return informed

    def _act(self, now: float, proposal: Proposal, seen: Mapping[TrialId, Trial]) -> None:
        outcome = self._recheck(proposal.action, seen) or self._cluster.apply(proposal.action)
        self._journal.acted(now, proposal.action, proposal.reason, outcome)
        if outcome.accepted:
            self._reasons[proposal.action.trial] = proposal.reason

    def _recheck(self, action: Action, seen: Mapping[TrialId, Trial]) -> Outcome | None:
        """Return a refusal if the world has moved on since ``seen``, None if the action still fits."""
        before = seen.get(action.trial)
        after = self._cluster.trial(action.trial)
        if before is None or after is None:
            return Outcome(accepted=False, detail="the trial is gone")
        if (before.phase, before.nodes, before.attempt) != (after.phase, after.nodes, after.attempt):
            return Outcome(accepted=False, detail="the trial has changed since it was looked at")
        if isinstance(action, Migrate | Place) and action.node is not None:
            node = self._cluster.node(action.node)
            return (
                None
                if node is not None and node.ready
                else Outcome(accepted=False, detail=f"node {action.node} is not ready")
            )
        return None

    def _save(self, *, urgent: bool) -> None:
        state, progress, reasons = self._state, dict(self._progress), dict(self._reasons)

        def dumped() -> str:
            decisions = self._state_codec.dump_json(state).decode()
            return _MEMORY.dump_json(Memory(self._policy.name, decisions, progress, reasons)).decode()

        self._journal.save(dumped, urgent=urgent)

    def _restored(self) -> tuple[S, dict[TrialId, Progress], dict[TrialId, str]]:
        text = self._journal.load()
        if text is None:
            return self._policy.initial(), {}, {}
        try:
            memory = _MEMORY.validate_json(text)
        except ValidationError:
            # Progress is read anew from the metrics; a policy that starts over is slow, never wrong.
            return self._policy.initial(), {}, {}
        state = self._decisions(memory)
        return state, dict(memory.progress), dict(memory.reasons)

    def _decisions(self, memory: Memory) -> S:
        if memory.policy != self._policy.name:
            return self._policy.initial()
        try:
            return self._state_codec.validate_json(memory.decisions)
        except ValidationError:
            return self._policy.initial()
