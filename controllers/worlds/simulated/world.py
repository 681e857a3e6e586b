"""The simulated world: the trials and nodes of a scenario in virtual time.

Nothing happens but what is due: arrivals, the beginning and end of a trial's stages, a share that takes hold. Between
two such events every trial goes on at a constant rate, so its progress is worked out when somebody asks.
"""

from collections.abc import Sequence

from controllers.model import Action, Migrate, Node, NodeName, Phase, Place, Resize, Trial, TrialId
from controllers.ports import Outcome
from controllers.worlds.simulated.default_scheduler import DefaultScheduler
from controllers.worlds.simulated.events import Due, EventQueue, Kind
from controllers.worlds.simulated.node_run import NodeRun
from controllers.worlds.simulated.report_log import ReportLog
from controllers.worlds.simulated.scenario import Scenario
from controllers.worlds.simulated.trial_run import Stage, TrialRun
from controllers.worlds.simulated.workload import WorkloadError


class SimulatedWorld:
    """The trials of a scenario; ``advance`` moves them on.

    Args:
        scenario: what is simulated.
        gated: whether first attempts wait for a ``Place``, as those of a policy that needs it do.

    Raises:
        WorkloadError: a trial fits on no node, even an empty one.
    """

    can: frozenset[type[Action]] = frozenset({Resize, Migrate, Place})

    def __init__(self, scenario: Scenario, *, gated: bool = False) -> None:
        workload = scenario.workload
        self._costs = scenario.costs
        self._gated = gated
        self._nodes = {spec.name: NodeRun(spec) for spec in workload.nodes}
        self._runs = {spec.id: TrialRun(spec, Stage.AWAY, ReportLog(spec), spec.cpu) for spec in workload.trials}
        self._check()
        self._submitted: dict[TrialId, TrialRun] = {}
        self._scheduler = DefaultScheduler(self._nodes, scenario.seed, scenario.pinned)
        self._queue = EventQueue()
        self._unshared: dict[NodeName, None] = {}
        self._changed = False
        self._left = len(self._runs)
        self.now = 0.0
        self.events = 0
        for spec in workload.trials:
            self._queue.put(spec.submitted_at, Due(Kind.ARRIVES, spec.id))

    @property
    def next_at(self) -> float:
        """When something is due next, in seconds; infinite where nothing is."""
        return self._queue.next_at

    @property
    def finished(self) -> bool:
        """Whether every trial has ended."""
        return self._left == 0

    @property
    def runs(self) -> Sequence[TrialRun]:
        """Every trial, those that have not been submitted yet included."""
        return list(self._runs.values())

    def advance(self, until: float) -> None:
        """Let everything happen that is due until then; afterwards it is that time."""
        while self._queue.next_at <= until:
            self._to(self._queue.next_at)
            while self._queue.next_at == self.now:
                self._happen(self._queue.pop())
            self._settle()
        self._to(until)

    def take_changed(self) -> bool:
        """Return whether any trial has come to look different since the last call."""
        changed, self._changed = self._changed, False
        return changed

    def trials(self) -> Sequence[Trial]:
        """Return every trial submitted so far."""
        return [run.shown() for run in self._submitted.values()]

    def nodes(self) -> Sequence[Node]:
        """Return every node, with the cores busy on it now."""
        return [node.shown() for node in self._nodes.values()]

    def trial(self, name: TrialId) -> Trial | None:
        """Return one trial as it is now."""
        run = self._submitted.get(name)
        return None if run is None else run.shown()

    def node(self, name: NodeName) -> Node | None:
        """Return one node as it is now."""
        node = self._nodes.get(name)
        return None if node is None else node.shown()

    def apply(self, action: Action) -> Outcome:
        """Take on ``action`` if the trial and its node allow it."""
        run = self._submitted.get(action.trial)
        if run is None:
            return _no("there is no such trial")
        if isinstance(action, Place):
            why_not = self._place_gated(run, action)
        elif run.phase is not Phase.RUNNING:
            why_not = "the trial is not running"
        elif run.wanted_cpu is not None:
            why_not = "the last action on the trial is still under way"
        elif isinstance(action, Resize):
            why_not = self._resize(run, action.cpu)
        else:
            why_not = self._migrate(run, action.node)
        self._settle()
        return _no(why_not) if why_not else Outcome(accepted=True)

    def fail(self, trial: TrialId) -> None:
        """End the trial's present attempt as a crash or kill does; one that was told to leave goes on elsewhere."""
        run = self._runs[trial]
        run.halt(self.now)
        run.saved = run.work = run.checkpointed()
        if run.target is not None:
            self._go_away(run, self._costs.next_attempt_s)
        elif run.failures < run.spec.retries:
            run.failures += 1
            self._go_away(run, self._costs.retry_s)
        else:
            self._end(run, succeeded=False)
        self._settle()

    def _check(self) -> None:
        for run in self._runs.values():
            if not any(node.could_hold(run) for node in self._nodes.values()):
                message = (
                    f"trial {run.spec.id} requests {run.spec.cpu:g} cores and {run.spec.memory:g} bytes of memory: "
                    "no node has as much"
                )
                raise WorkloadError(message)

    def _to(self, time: float) -> None:
        self.now = time

    def _happen(self, due: Due) -> None:
        self.events += 1
        if due.kind is Kind.PROGRESS:
            self._progress(self._nodes[NodeName(due.subject)], due.version)
            return
        run = self._runs[TrialId(due.subject)]
        if due.kind is Kind.ARRIVES:
            self._submit(run)
        elif due.kind in {Kind.RESIZED, Kind.KILLED}:
            self._late(run, due)
        elif due.version == run.version:
            self._next_stage(run, due.kind)

    def _submit(self, run: TrialRun) -> None:
        self._submitted[run.spec.id] = run
        self._changed = True
        if self._gated:
            run.enter(Stage.GATED)
        else:
            self._enqueue(run)

    def _late(self, run: TrialRun, due: Due) -> None:
        """Do what was asked of an attempt a while ago, if it is still the same and did not come to it by itself."""
        if due.version != run.attempt or run.node is None or run.stage is Stage.ENDED:
            return
        if due.kind is Kind.KILLED and run.target is not None:
            self.fail(run.spec.id)
        elif due.kind is Kind.RESIZED and run.wanted_cpu is not None:
            self._take_hold(run)

    def _next_stage(self, run: TrialRun, kind: Kind) -> None:
        if kind is Kind.STARTED:
            self._begin(run)
        elif kind is Kind.RESTORED:
            self._warm_up(run)
        elif kind is Kind.LEFT:
            run.saved = run.work
            self._go_away(run, self._costs.next_attempt_s)
        elif kind is Kind.RETURNS:
            self._return(run)

    def _progress(self, node: NodeRun, version: int) -> None:
        if version != node.version:
            return
        for run in [run for run in node.runs.values() if run.stage_ends_at <= self.now]:
            run.halt(self.now)
            if run.stage is Stage.WARMING:
                run.enter(Stage.TRAINING)
            else:
                run.work = run.spec.work_s
                run.halt(self.now)
                self._end(run, succeeded=True)
        self._unshared[node.name] = None

    def _end(self, run: TrialRun, *, succeeded: bool) -> None:
        self._forget_target(run)
        node = run.node
        self._release(run)
        run.node, run.succeeded, run.ended_at = node, succeeded, self.now
        run.enter(Stage.ENDED)
        self._left -= 1

    def _go_away(self, run: TrialRun, seconds: float) -> None:
        run.moved_from = run.node if run.target is not None else None
        self._release(run)
        run.enter(Stage.AWAY)
        self._after(seconds, Kind.RETURNS, run)

    def _return(self, run: TrialRun) -> None:
        target = run.target
        if target is None:
            self._enqueue(run)
            return
        del self._nodes[target].expected[run.spec.id]
        if self._nodes[target].unfit(run):
            run.target = None
            self._enqueue(run)
        else:
            self._place(run, target)

    def _enqueue(self, run: TrialRun) -> None:
        run.enter(Stage.QUEUED)
        self._changed = True
        self._scheduler.add(run)

    def _place(self, run: TrialRun, node: NodeName) -> None:
        run.node = node
        run.first_node = run.first_node or node
        run.attempt += 1
        run.cpu = run.spec.cpu
        self._nodes[node].runs[run.spec.id] = run
        self._touch(node, freed=False)
        run.enter(Stage.STARTING)
        self._after(self._costs.start_s, Kind.STARTED, run)

    def _begin(self, run: TrialRun) -> None:
        if run.moved_from is not None:
            run.moves += run.node != run.moved_from
        run.target = run.moved_from = None
        run.enter(Stage.RESTORING)
        self._changed = True
        self._after(self._costs.restore_s if run.saved else 0.0, Kind.RESTORED, run)

    def _warm_up(self, run: TrialRun) -> None:
        run.warm_left = self._costs.start_cpu_s
        run.enter(Stage.WARMING if run.warm_left else Stage.TRAINING)
        if run.node is not None:
            self._unshared[run.node] = None

    def _resize(self, run: TrialRun, cpu: float) -> str:
        if run.node is None or not (cpu >= 0 and self._nodes[run.node].has_cores_for(run, cpu)):
            return f"{cpu:g} cores do not fit on {run.node}"
        run.wanted_cpu = cpu
        if self._costs.resize_s:
            self._touch(run.node, freed=False)
            self._queue.put(self.now + self._costs.resize_s, Due(Kind.RESIZED, run.spec.id, run.attempt))
        else:
            self._take_hold(run)
        return ""

    def _take_hold(self, run: TrialRun) -> None:
        if run.node is None or run.wanted_cpu is None:
            return
        freed = run.wanted_cpu < run.cpu
        run.cpu, run.wanted_cpu = run.wanted_cpu, None
        run.resizes += 1
        run.change()
        self._touch(run.node, freed=freed)

    def _migrate(self, run: TrialRun, target: NodeName) -> str:
        if target == run.node:
            return f"the trial is on {target} already"
        if target not in self._nodes:
            return f"there is no node {target}"
        if why_not := self._nodes[target].unfit(run):
            return why_not
        run.target = target
        self._nodes[target].expected[run.spec.id] = run
        self._touch(target, freed=False)
        self._ask_to_leave(run)
        return ""

    def _ask_to_leave(self, run: TrialRun) -> None:
        self._changed = True
        if run.spec.deaf:
            run.change()
            self._queue.put(self.now + self._costs.grace_s, Due(Kind.KILLED, run.spec.id, run.attempt))
            return
        run.halt(self.now)
        run.enter(Stage.LEAVING)
        if run.node is not None:
            self._unshared[run.node] = None
        self._after(self._costs.leave_s, Kind.LEFT, run)

    def _place_gated(self, run: TrialRun, action: Place) -> str:
        if run.stage is not Stage.GATED:
            return "the trial does not wait for a place"
        if action.node is None:
            self._enqueue(run)
            return ""
        if action.node not in self._nodes:
            return f"there is no node {action.node}"
        if why_not := self._nodes[action.node].unfit(run):
            return why_not
        self._changed = True
        self._place(run, action.node)
        return ""

    def _forget_target(self, run: TrialRun) -> None:
        if run.target is not None:
            self._nodes[run.target].expected.pop(run.spec.id, None)
            self._touch(run.target, freed=True)
            run.target = None

    def _release(self, run: TrialRun) -> None:
        if run.node is None:
            return
        del self._nodes[run.node].runs[run.spec.id]
        self._touch(run.node, freed=True)
        run.node = run.wanted_cpu = None
        self._changed = True

    def _touch(self, node: NodeName, *, freed: bool) -> None:
        """Note that what is requested of ``node``, or by whom, has changed."""
        self._unshared[node] = None
        self._scheduler.changed(node, freed=freed)

    def _after(self, seconds: float, kind: Kind, run: TrialRun) -> None:
        if seconds:
            self._queue.put(self.now + seconds, Due(kind, run.spec.id, run.version))
        else:
            self._next_stage(run, kind)

    def _settle(self) -> None:
        """Place what can be placed, and share the cores of nodes where something has changed."""
        for run, chosen in self._scheduler.placements():
            self._place(run, chosen)
        while self._unshared:
            name = next(iter(self._unshared))
            del self._unshared[name]
            node = self._nodes[name]
            first = node.share(self.now)
            if first < float("inf"):
                self._queue.put(first, Due(Kind.PROGRESS, name, node.version))


def _no(why: str) -> Outcome:
    return Outcome(accepted=False, detail=why)
