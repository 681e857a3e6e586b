"""What an owner asks of trials while their sweep runs: that they pause, stop, or go on.

A run on this machine reads it from a file in its folder, a controller from an annotation of the workflow, which one
writes under one's own permissions.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from controllers.core import labels
from controllers.core.annotations import check_fits, check_room_for_stops
from controllers.core.asks import asks_in, asks_written
from controllers.core.errors import SpeconError
from controllers.core.model import Ask

if TYPE_CHECKING:
    from controllers.core.actions import Action
    from controllers.core.policy import Policy
    from controllers.worlds.argo.reading.workflows import WorkflowRecord
    from hera_specon.cluster.access import Access

_MOST_NAMED: Final = 20


class NoSuchTrialError(SpeconError):
    """A trial was named that the sweep does not have, or several have that name."""


class OverError(SpeconError):
    """The sweep is over: nothing is left to pause or stop."""


@dataclass(frozen=True, slots=True)
class RunDesk:
    """Of a run on this machine, in ``folder``, under the policy that it runs under now."""

    folder: Path

    @property
    def name(self) -> str:
        """The run's name."""
        return self.folder.name

    def trials(self) -> Sequence[str]:
        """Return the trials that have not ended.

        Raises:
            OverError: the run is over.
        """
        from hera_specon.records.run_folder import load_run, run_states  # noqa: PLC0415 - `specon --help` must not wait

        if load_run(self.folder).about.get("finished"):
            message = f"Run {self.name} is over."
            raise OverError(message)
        return [str(trial.id) for trial in run_states(self.folder)[-1].snapshot.unended]

    def ended(self) -> Collection[str]:
        """Return the trials that have ended."""
        from hera_specon.records.run_folder import run_states  # noqa: PLC0415 - as above

        return {str(trial.id) for trial in run_states(self.folder)[-1].snapshot.trials if trial.phase.ended}

    def asks(self) -> Mapping[str, Ask]:
        """Return what is asked by now."""
        from controllers.worlds.local.engine_files import AskedFile  # noqa: PLC0415 - as above

        return AskedFile(self._part).asked()

    def ask(self, asks: Mapping[str, Ask]) -> None:
        """Ask for that from now on, and for nothing else."""
        from controllers.worlds.local.engine_files import AskedFile  # noqa: PLC0415 - as above

        AskedFile(self._part).ask(asks)

    def at_stake(self, trials: Collection[str]) -> Mapping[str, str]:
        """Return in words what those of the trials that run would lose if they had to leave now."""
        from controllers.worlds.local.standing import standing_of  # noqa: PLC0415 - as above
        from hera_specon.records.run_folder import run_states  # noqa: PLC0415 - as above

        told = {}
        for trial in run_states(self.folder)[-1].snapshot.unended:
            folder = next((self._part / "state").glob(f"*.{escape(trial.id)}"), None)
            if trial.id in trials and trial.nodes and folder is not None:
                step = trial.progress.step if trial.progress is not None else None
                told[str(trial.id)] = standing_of(folder, left=False).at_stake(step)
        return {trial: words for trial, words in told.items() if words}

    @property
    def can(self) -> "tuple[frozenset[type[Action]], str]":
        """What processes can be told to do, and what their world is called."""
        from controllers.worlds.local.world import LocalWorld  # noqa: PLC0415 - as above

        return LocalWorld.can, "local"

    @property
    def several(self) -> bool:
        """Whether a sweep of the run has several objectives."""
        from hera_specon.records.run_folder import run_states  # noqa: PLC0415 - as above

        return any(trial.aims.further for trial in run_states(self.folder)[-1].snapshot.trials)

    def set_policy(self, spec: str) -> None:
        """Ask for that policy."""
        from controllers.worlds.local.engine_files import PolicyFile  # noqa: PLC0415 - as above

        PolicyFile(self._part).write(spec)

    @property
    def _part(self) -> Path:
        from hera_specon.records.run_folder import parts_of  # noqa: PLC0415 - as above

        return parts_of(self.folder)[-1]


@dataclass(frozen=True, slots=True)
class WorkflowDesk:
    """Of a workflow in a cluster. Its controller carries out what is asked; without one, nothing happens."""

    access: "Access"
    record: "WorkflowRecord"

    @property
    def name(self) -> str:
        """The workflow's name."""
        return f"workflow {self.record.name}"

    def trials(self) -> Sequence[str]:
        """Return the trials that have not ended, those that Argo has not begun included.

        Raises:
            OverError: the workflow is over.
        """
        record = self.record
        if record.finished:
            message = f"Workflow {record.name} is over."
            raise OverError(message)
        begun = self._begun()
        waiting = [trial.id for trial in record.to_come if trial.id not in begun]
        return [self._short(trial) for trial in (*(trial for trial, ended in begun.items() if not ended), *waiting)]

    def ended(self) -> Collection[str]:
        """Return the trials that are known to have come to their ends."""
        return {self._short(trial) for trial, ended in self._begun().items() if ended}

    def _begun(self) -> Mapping[str, bool]:
        """Return whether each trial that has begun is over; pods tell it where Argo's record is not to be read."""
        record = self.record
        if not record.unread:
            return {step.definition.id: step.succeeded or step.failed for step in record.steps.values()}
        from hera_specon.cluster.access import read_pods  # noqa: PLC0415 - as above
        from hera_specon.cluster.sweep_state import trial_states  # noqa: PLC0415 - as above

        pods = [pod for pod in read_pods(self.access, record.name) if pod.workflow_uid == record.uid]
        return {name: state.phase.ended for name, state in trial_states(record, pods).items()}

    def asks(self) -> Mapping[str, Ask]:
        """Return what is asked by now."""
        return asks_in(self.record.annotations.get(labels.ANNOTATION_ASKED, ""))

    def ask(self, asks: Mapping[str, Ask]) -> None:
        """Ask for that from now on, and for nothing else.

        Raises:
            AnnotationError: the list of trials, or the marks of those that are to stop, take more room than there is.
        """
        beside = self.record.annotations
        notes = {labels.ANNOTATION_ASKED: asks_written(asks)} if asks else {}
        check_fits(notes, beside, f"what is asked of {len(asks)} trials")
        stops = [trial.partition(".")[::2] for trial, ask in asks.items() if ask is Ask.STOP]
        check_room_for_stops(stops, {**beside, **notes})
        self._annotate(labels.ANNOTATION_ASKED, notes.get(labels.ANNOTATION_ASKED))

    def at_stake(self, trials: Collection[str]) -> Mapping[str, str]:  # noqa: ARG002 - as for a run on this machine
        """Return nothing: the checkpoints are in the cluster."""
        return {}

    @property
    def can(self) -> "tuple[frozenset[type[Action]], str]":
        """What pods can be told to do, and what their world is called."""
        from controllers.worlds.argo.world import ArgoWorld  # noqa: PLC0415 - as above

        return ArgoWorld.can_at_best, "Argo"

    @property
    def several(self) -> bool:
        """Whether a sweep of the workflow has several objectives."""
        return any(sweep.several for sweep in self.record.sweeps)

    def set_policy(self, spec: str) -> None:
        """Ask for that policy.

        Raises:
            AnnotationError: its spec string is longer than an annotation may be.
        """
        check_fits({labels.ANNOTATION_SET_POLICY: spec}, self.record.annotations, "the policy")
        self._annotate(labels.ANNOTATION_SET_POLICY, spec)

    def _short(self, trial: str) -> str:
        # As the controller calls it: what a sweep is continued under may hold dots, too.
        return trial.removeprefix(f"{self.record.sweep_uid}.")

    def _annotate(self, name: str, written: str | None) -> None:
        from controllers.worlds.argo.calls.api import WORKFLOWS  # noqa: PLC0415 - as above

        annotations = {name: written}
        body = {"metadata": {"uid": self.record.uid, "annotations": annotations}}
        self.access.api.patch(WORKFLOWS.path(self.record.namespace, self.record.name), body)


Desk = RunDesk | WorkflowDesk
"""Where one asks: of one sweep, in one world."""


def ask_for(desk: Desk, ask: Ask, trials: Sequence[str], *, everything: bool, tell: Callable[[str], object]) -> None:
    """Ask that trials pause or stop.

    Args:
        desk: Where to ask.
        ask: What for.
        trials: Short ids, or their last part, such as ``t007``.
        everything: All trials that have not ended.
        tell: Says to a person what a pause may lose, before it is asked for, and what was asked.

    Raises:
        SpeconError: The sweep is over, a trial is not there, or the cluster refused.
    """
    known = desk.trials()
    chosen = list(known) if everything else [_find_trial(name, known) for name in trials]
    # One that is to stop does not only pause.
    before = desk.asks()
    asks = {trial: Ask.STOP if before.get(trial) is Ask.STOP else ask for trial in chosen}
    for trial, words in (desk.at_stake(chosen) if ask is Ask.PAUSE else {}).items():
        tell(f"{trial} {words}")
    # What was asked before may not be done yet, also of trials that have not begun.
    ended = desk.ended()
    desk.ask({**{trial: asked for trial, asked in before.items() if trial not in ended}, **asks})
    for trial in chosen:
        tell(f"{trial}: asked to {ask}")


def ask_no_more(desk: Desk, trials: Sequence[str], *, everything: bool) -> list[str]:
    """Let trials go on that were to pause, and return them; a stop cannot be taken back.

    Args:
        desk: Where it was asked.
        trials: As for ``ask_for``.
        everything: All that were to pause.

    Raises:
        SpeconError: A trial that is named was not asked to pause, or the cluster refused.
    """
    asks = desk.asks()
    paused = [trial for trial, ask in asks.items() if ask is Ask.PAUSE]
    chosen = paused if everything else [_find_trial(name, paused) for name in trials]
    desk.ask({trial: ask for trial, ask in asks.items() if trial not in chosen})
    return chosen


def ask_for_policy(desk: Desk, policy: "Policy[Any]") -> str:
    """Ask that ``policy`` steers the rest of the sweep, and return its spec string.

    Raises:
        SpeconError: The sweep is over, its world cannot do what the policy needs, the policy goes by one objective and
            the sweep has several, or the cluster refused.
    """
    from controllers.driving.assembly import check_policy  # noqa: PLC0415 - as above
    from controllers.policies.registry import policy_spec  # noqa: PLC0415 - as above

    check_policy(policy, *desk.can, several=desk.several)
    desk.trials()  # refuses a sweep that is over
    spec = policy_spec(policy)
    desk.set_policy(spec)
    return spec


def _find_trial(name: str, known: Sequence[str]) -> str:
    matching = [trial for trial in known if trial == name or trial.rpartition(".")[2] == name]
    if len(matching) == 1:
        return matching[0]
    if matching:
        message = f"{name!r} may be any of {', '.join(matching)}: name its sweep too."
        raise NoSuchTrialError(message)
    shown = ", ".join(known[:_MOST_NAMED]) + (", ..." if len(known) > _MOST_NAMED else "") or "none"
    message = f"There is no trial {name!r} to ask: {shown}."
    raise NoSuchTrialError(message)


def desk_of(sweep: str, state_dir: Path, kubeconfig: str | None, context: str | None, namespace: str | None) -> Desk:
    """Return where to ask of ``sweep``: the run of that name on this machine, else the workflow in the cluster.

    Raises:
        SpeconError: there is neither.
    """
    from hera_specon.cluster.access import find_workflow, open_cluster, workflow_record  # noqa: PLC0415 - as above
    from hera_specon.records.run_folder import RunNotFoundError, find_run  # noqa: PLC0415

    try:
        return RunDesk(find_run(sweep, state_dir))
    except RunNotFoundError:
        access = open_cluster(kubeconfig, context, namespace)
        return WorkflowDesk(access, workflow_record(find_workflow(access, sweep)))
