"""The simulated world: the cluster that the engine acts upon, in virtual time."""

from collections.abc import Sequence

from controllers.core.model import Action, Migrate, Node, NodeName, Phase, Place, Resize, Trial, TrialId
from controllers.core.ports import Outcome
from controllers.worlds.simulated.course import Course
from controllers.worlds.simulated.faults import WorldFault
from controllers.worlds.simulated.scenario import Scenario
from controllers.worlds.simulated.strikes import crash
from controllers.worlds.simulated.trial_run import Stage, TrialRun


class SimulatedWorld:
    """The trials and nodes of a scenario; ``advance`` moves them on.

    Args:
        scenario: what is simulated.
        gated: whether first attempts wait for a ``Place``, as those of a policy that needs it do.
        faults: what goes wrong.

    Raises:
        WorkloadError: a trial fits on no node, even an empty one.
    """

    can: frozenset[type[Action]] = frozenset({Resize, Migrate, Place})

    def __init__(self, scenario: Scenario, *, gated: bool = False, faults: Sequence[WorldFault] = ()) -> None:
        self._course = Course(scenario, gated=gated, faults=faults)

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return self._course.now

    @property
    def next_at(self) -> float:
        """When something is due next, in seconds; infinite where nothing is."""
        return self._course.queue.next_at

    @property
    def events(self) -> int:
        """How many events there were."""
        return self._course.events

    @property
    def finished(self) -> bool:
        """Whether every trial has ended."""
        return self._course.unended == 0

    @property
    def course(self) -> Course:
        """What becomes of its trials, for whoever checks that nothing impossible does."""
        return self._course

    @property
    def runs(self) -> Sequence[TrialRun]:
        """Every trial, those that have not been submitted yet included."""
        return list(self._course.runs.values())

    def advance(self, until: float) -> None:
        """Let everything happen that is due until then; afterwards it is that time."""
        self._course.advance(until)

    def take_changed(self) -> bool:
        """Return whether any trial has come to look different since the last call."""
        changed, self._course.changed = self._course.changed, False
        return changed

    def trials(self) -> Sequence[Trial]:
        """Return every trial submitted so far."""
        return [run.shown() for run in self._course.submitted.values()]

    def nodes(self) -> Sequence[Node]:
        """Return every node, with the cores busy on it now."""
        return [node.shown() for node in self._course.nodes.values()]

    def trial(self, name: TrialId) -> Trial | None:
        """Return one trial as it is now."""
        run = self._course.submitted.get(name)
        return None if run is None else run.shown()

    def node(self, name: NodeName) -> Node | None:
        """Return one node as it is now."""
        node = self._course.nodes.get(name)
        return None if node is None else node.shown()

    def apply(self, action: Action) -> Outcome:
        """Take on ``action`` if the trial and its node allow it."""
        run = self._course.submitted.get(action.trial)
        why_not = "there is no such trial" if run is None else self._begin(run, action)
        self._course.settle()
        return Outcome(accepted=not why_not, detail=why_not)

    def fail(self, trial: TrialId) -> None:
        """End a trial's present attempt, if there is one, as a crash or kill does."""
        crash(self._course, trial)
        self._course.settle()

    def _begin(self, run: TrialRun, action: Action) -> str:
        """Begin ``action``, or return why not."""
        if isinstance(action, Place):
            return self._place(run, action.node)
        if run.node is None or run.phase is not Phase.RUNNING:
            return "the trial is not running"
        if run.wanted_cpu is not None:
            return "the last action on the trial is still under way"
        if isinstance(action, Resize):
            return self._resize(run, run.node, action.cpu)
        return self._migrate(run, action.node)

    def _place(self, run: TrialRun, node: NodeName | None) -> str:
        if run.stage is not Stage.GATED:
            return "the trial does not wait for a place"
        if node is None:
            self._course.enqueue(run)
            return ""
        why_not = self._unfit(node, run)
        if not why_not:
            self._course.place(run, node)
        return why_not

    def _resize(self, run: TrialRun, node: NodeName, cpu: float) -> str:
        if not (cpu >= 0 and self._course.nodes[node].has_cores_for(run, cpu)):
            return f"{cpu:g} cores do not fit on {node}"
        self._course.resize(run, node, cpu)
        return ""

    def _migrate(self, run: TrialRun, target: NodeName) -> str:
        if target == run.node:
            return f"the trial is on {target} already"
        why_not = self._unfit(target, run)
        if not why_not:
            self._course.ask_to_leave(run, target)
        return why_not

    def _unfit(self, node: NodeName, run: TrialRun) -> str:
        known = self._course.nodes.get(node)
        return f"there is no node {node}" if known is None else known.unfit(run)
