"""An engine and policies that are broken on purpose: the search for faults must find each of them out."""

from dataclasses import dataclass, replace
from typing import Any

from controllers.core.actions import Action, Decision, Migrate, Place, Proposal
from controllers.core.engine import Engine
from controllers.core.model import Phase, Snapshot, TrialId
from controllers.policies import UntilEnough
from controllers.policies.wrappers.until_enough import KnownEnds


class ActsBeforeSaving(Engine[Any]):
    """Lets the journal keep what it is about to do whenever that suits it."""

    def _save(self, *, urgent: bool) -> None:
        del urgent
        super()._save(urgent=False)


class NeverLooksAgain(Engine[Any]):
    """Takes it that nothing has changed since it looked."""

    def _changed_since(self, action: Action, seen: Any) -> None:  # noqa: ANN401 - unused
        del action, seen


@dataclass(frozen=True)
class _Broken:
    """A policy that moves trials about; what it wants is checked by no guard."""

    name: str = "broken"
    needs: frozenset[type[Action]] = frozenset({Migrate})

    @property
    def state_type(self) -> type[Any]:
        return float

    def initial(self) -> Any:  # noqa: ANN401 - each has its own
        return 0.0

    def decide(self, snapshot: Snapshot, state: Any) -> Decision[Any]:  # noqa: ANN401 - as above
        raise NotImplementedError


class MovesWhatMoves(_Broken):
    """Asks for the move of a trial that moves already."""

    def decide(self, snapshot: Snapshot, state: float) -> Decision[float]:
        nodes = [node.name for node in snapshot.nodes if node.ready]
        live = [trial for trial in snapshot.trials if trial.phase in {Phase.RUNNING, Phase.MOVING}]
        moves = [Migrate.to(node, trial) for trial in live[:1] for node in nodes if node != trial.node][:1]
        return Decision(state, tuple(Proposal(move, "on purpose") for move in moves), wake_at=snapshot.now + 1)


class ForgetsInfinity(_Broken):
    """Remembers what JSON has no word for."""

    def decide(self, snapshot: Snapshot, state: float) -> Decision[float]:
        return Decision(state if len(snapshot.trials) < 2 else float("nan"))


class ForgetsTheEnd(UntilEnough):
    """Takes a sweep that it has ended for one that goes on, at every second look."""

    def _looked(self, snapshot: Snapshot, before: KnownEnds) -> KnownEnds:
        known = super()._looked(snapshot, replace(before, over={}))
        return replace(known, over={}) if before.over else known


@dataclass(frozen=True)
class PlacesOnce:
    """Takes it that a place that it asked for was given, whatever the world said."""

    name: str = "places once"
    needs: frozenset[type[Action]] = frozenset({Place})

    @property
    def state_type(self) -> type[tuple[TrialId, ...]]:
        return tuple[TrialId, ...]

    def initial(self) -> tuple[TrialId, ...]:
        return ()

    def decide(self, snapshot: Snapshot, state: tuple[TrialId, ...]) -> Decision[tuple[TrialId, ...]]:
        new = [trial.id for trial in snapshot.trials if trial.gated and trial.id not in state]
        return Decision((*state, *new), tuple(Proposal(Place(trial), "it waits") for trial in new))
