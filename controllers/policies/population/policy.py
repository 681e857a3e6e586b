"""Population based training: the worst go on from the checkpoints of the best, with other hyperparameters.

The rule is that of Jaderberg et al. 2017, with truncation selection (section 4.1.1): a trial that is among the worst
20 % of its population takes over weights and hyperparameters of a random one of the best 20 %, and each hyperparameter
is then multiplied by 0.8 or 1.2, or drawn again. What is ours: a trial that is to change is suspended, becomes a clone
while it holds nothing, and goes on, so that whatever its script tracks comes with the weights. Trials are compared at
the same step, and where there is no room for all of them, they train by turns, an interval each.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final

from pydantic import Field

from controllers.core.actions import Action, Assessment, Clone, Decision, Exploration, Place, Proposal, Suspend
from controllers.core.lineage import trial_number
from controllers.core.model import Phase, Snapshot, Trial, TrialId
from controllers.policies.kit.capacity import Capacity
from controllers.policies.kit.places import with_room
from controllers.policies.kit.settings import PolicySettings
from controllers.policies.kit.sweeps import by_sweep
from controllers.policies.population.members import Intervals, PopulationRanks, PopulationState

_SOON_S: Final = 0.2
"""Seconds after which a trial that became a clone may be placed."""
BETWEEN_NAMES: Final = "/"


class Population(PolicySettings):
    """Trains a population: at each interval, the worst go on from the checkpoints of the best.

    Needs a sweep with a search: that gives the first hyperparameters, and their ranges bound every change. Trials must
    save checkpoints, all of the same form. Those of a sweep without a search, and gangs, are only placed.

    - Each trial is compared once at an interval, once three in four of its sweep have come as far, with all of those.
    - One that is among the worst ``quantile`` is suspended, and gets the newest checkpoint of one of the best and its
      hyperparameters, changed. Then it goes on. One that diverged counts as the worst.
    - Where there is no room for all, a trial that has come to an interval makes room for those that have not.

    Of several objectives, the first counts.
    """

    name: ClassVar[str] = "population"
    summary: ClassVar[str] = "population based training: the worst go on from the best ones' checkpoints, changed"
    source: ClassVar[str] = "Jaderberg et al. 2017, with truncation selection"
    state_type: ClassVar[type[PopulationState]] = PopulationState
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Place, Suspend, Clone})
    placement: ClassVar[str] = "those that have come least far first; the default scheduler chooses the node"
    suspensions: ClassVar[str] = "the worst at an interval; those that have come further than others that wait"
    clones: ClassVar[str] = "the worst at an interval, of a random one of the best"
    most_moves: ClassVar[int | None] = None

    perturbation_interval: float = Field(
        default=0.1, gt=0, description="steps between two comparisons; below 1, that part of a whole training"
    )
    quantile: float = Field(
        default=0.2, gt=0, le=0.5, description="part of the population that is replaced at an interval, at least one"
    )
    resample: float = Field(
        default=0.25, ge=0, le=1, description="probability that a hyperparameter is drawn again, not multiplied"
    )
    lower: float = Field(default=0.8, gt=0, lt=1, description="one of two numbers to multiply hyperparameters by")
    upper: float = Field(default=1.2, gt=1, description="the other one")
    change: str = Field(
        default="", description="names of what changes, as lr/momentum; without any, all that are real numbers"
    )
    seed: int = Field(default=0, ge=0, description="of what is drawn")
    interval: float = Field(default=2.0, gt=0, description="seconds between two looks at what the trials report")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the hyperparameters that change; none for all that are real numbers."""
        return tuple(filter(None, (name.strip() for name in self.change.split(BETWEEN_NAMES))))

    def decide(self, snapshot: Snapshot, state: PopulationState) -> Decision[PopulationState]:
        """Compare the trials at their intervals; suspend, clone and place by that."""
        populations = [self._of(trials, state) for trials in by_sweep(snapshot.trials).values()]
        changes = list[Proposal]()
        for population in populations:
            population.compare(self.quantile, self.seed)
            population.drop_lost()
            changes += filter(None, [self._change(population, name) for name in sorted(population.members)])
        clones = [one for one in changes if isinstance(one.action, Clone)]
        suspensions = [one for one in changes if isinstance(one.action, Suspend)]
        standing = {name: member for population in populations for name, member in population.members.items()}
        ends = {name: len(member.losses) for name, member in standing.items()}
        waiting = [trial for trial in snapshot.unended if trial.waits and standing[trial.id].parent is None]
        placed, unplaced = with_room(snapshot, sorted(waiting, key=lambda trial: _turn(trial, ends)))
        suspensions += self._turns(snapshot, unplaced, ends, {one.action.trial for one in suspensions})
        places = [Proposal(Place(trial.id), _why_placed(trial)) for trial in placed]
        soon = min(self.interval, _SOON_S) if clones else self.interval
        return Decision(
            PopulationState(standing),
            (*clones, *places, *suspensions),
            snapshot.now + soon if snapshot.unended else None,
            {trial.id: Assessment(outlook=_outlook(trial, ends)) for trial in snapshot.unended if trial.lineage},
            # To policies behind this one, trials that shall not start now do not wait.
            narrowed=snapshot.withholding({trial.id for trial in snapshot.unended} - {trial.id for trial in placed}),
        )

    def _of(self, trials: Sequence[Trial], state: PopulationState) -> PopulationRanks:
        told = [trial.progress.steps_total for trial in trials if trial.progress and trial.progress.steps_total]
        total = statistics.median(told) if told else None
        return PopulationRanks(trials, state.members, Intervals(self.perturbation_interval), total)

    def _change(self, population: PopulationRanks, name: TrialId) -> Proposal | None:
        """Return the next step on the way of a trial to its parent's checkpoint; None where there is none to take."""
        member, trial = population.members[name], population.trials[name]
        if member.parent is None:
            return None
        parent = trial_number(member.parent)
        if trial.steady:
            return Proposal(
                Suspend(name),
                f"suspending: among the worst at interval {member.compared}, to follow {parent}",
            )
        if not (trial.waits and trial.phase is Phase.SUSPENDED):
            return None
        population.tried(name)
        seed = f"{self.seed}:{trial_number(name)}:{member.clones}:{member.compared}"
        explore = Exploration((self.lower, self.upper), self.resample, self.names, seed)
        why = f"going on from {parent}'s checkpoint: that is among the best at interval {member.compared}"
        return Proposal(Clone(name, member.parent, explore), why)

    @staticmethod
    def _turns(
        snapshot: Snapshot, unplaced: Sequence[Trial], ends: Mapping[TrialId, int], leaving: set[TrialId]
    ) -> Iterable[Proposal]:
        """Yield suspensions of those that have come further than trials that find no room, where that makes room.

        Otherwise they would get their places back, and be suspended again before they have trained.
        """
        running = [trial for trial in snapshot.unended if trial.steady and not trial.gang and trial.id not in leaving]
        # A trial that leaves already makes room. Without this, each look would suspend one more until it has left.
        going = len(leaving) + sum(trial.phase in {Phase.SUSPENDING, Phase.STOPPING} for trial in snapshot.unended)
        ahead = sorted(running, key=lambda trial: _turn(trial, ends), reverse=True)
        capacity = Capacity.of(snapshot)
        for waiting in unplaced[going:]:
            further = (trial for trial in ahead if ends[trial.id] > ends[waiting.id])
            trial = next((one for one in further if _makes_room(one, waiting, capacity)), None)
            if trial is not None:
                ahead.remove(trial)
                why = f"suspending: {trial_number(waiting.id)} has not come so far, and waits"
                yield Proposal(Suspend(trial.id), why)


def _makes_room(trial: Trial, waiting: Trial, capacity: Capacity) -> bool:
    """Return whether ``waiting`` fits on the node of ``trial``, which has one worker, once that is gone."""
    capacity.release(trial, trial.nodes)
    fits = capacity.fits(waiting, trial.nodes[0])
    capacity.release(trial, trial.nodes, -1)
    return fits


def _turn(trial: Trial, ends: Mapping[TrialId, int]) -> tuple[int, float, TrialId]:
    """Return what trials take turns by: those that have come least far, then those that were submitted first."""
    return ends[trial.id], trial.submitted_at, trial.id


def _why_placed(trial: Trial) -> str:
    return "placing: a new trial of the population" if trial.phase is Phase.PENDING else "resuming: it is its turn"


def _outlook(trial: Trial, ends: Mapping[TrialId, int]) -> str:
    parents = ", ".join(trial_number(parent) for parent in trial.lineage[-3:])
    return f"went on from {parents}; at interval {ends[trial.id]}"
