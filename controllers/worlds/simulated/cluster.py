"""The simulated cluster: the trials and nodes of a scenario, moved on event by event in virtual time.

Between two events every attempt goes on at a constant rate, so its progress is worked out only when somebody asks.
"""

from collections.abc import Callable, Sequence

from controllers.core.after_attempt import Then
from controllers.core.model import NodeName, TrialId
from controllers.worlds.simulated.core_sharing import CoreSharing
from controllers.worlds.simulated.default_scheduler import DefaultScheduler, ImagePulls
from controllers.worlds.simulated.events import ClusterEvent, ClusterEventKind, EventQueue
from controllers.worlds.simulated.faults import FaultLookup, WorldFault
from controllers.worlds.simulated.node_run import NodeRun, workers_held
from controllers.worlds.simulated.report_log import ReportLog, Upcoming
from controllers.worlds.simulated.scenario import Scenario
from controllers.worlds.simulated.trial_run import WAITING, Rest, Stage, TrialRun


class SimulatedCluster:
    """The trials and nodes of a scenario, ``now`` seconds after its beginning.

    Args:
        scenario: what is simulated.
        gated: whether first attempts wait to be placed.
        faults: what goes wrong.

    Raises:
        WorkloadError: a trial fits on no node, even an empty one, or a gang not on all of them.
    """

    def __init__(self, scenario: Scenario, *, gated: bool, faults: Sequence[WorldFault] = ()) -> None:
        workload = scenario.workload
        self.nodes = {spec.name: NodeRun(spec) for spec in workload.nodes}
        self.meters = [node.meter for node in self.nodes.values()]
        """What each node costs, those that are gone included."""
        self.unseen: dict[TrialId, TrialRun] = {}
        """The trials that look different since the world has shown them last."""
        self.upcoming: Upcoming = []
        self.runs = {
            spec.id: TrialRun(spec, Stage.AWAY, ReportLog(spec, self.upcoming), spec.cpu, self.unseen)
            for spec in workload.trials
        }
        self.submitted: dict[TrialId, TrialRun] = {}
        self.costs = scenario.costs
        self.queue = EventQueue()
        self.now = 0.0
        self.events = 0
        self.unended = len(self.runs)
        self.changed = False
        """Whether any trial or node looks different; the world sets it back once it has told so."""
        self._gated = gated
        self._images = ImagePulls(workload.image, self.nodes, lambda: self.now)
        self.scheduler = DefaultScheduler(self.nodes, self._images, scenario.seed, scenario.pinned)
        self._steps = {
            ClusterEventKind.LEFT: self._left,
            ClusterEventKind.STARTED: self._started,
            ClusterEventKind.RESTORED: self._restored,
            ClusterEventKind.RETURNS: self._returned,
            ClusterEventKind.UNMET: self._unmet,
        }
        self.sharing = CoreSharing(self.nodes, workload.network, self.queue)
        for run in self.runs.values():
            run.workers = min(run.spec.max_workers, workers_held(run, workload.nodes, workload.groups))
            self.queue.put(run.spec.submitted_at, ClusterEvent(ClusterEventKind.ARRIVES, run.spec.id))
        for node in workload.nodes:
            for at, _ in node.supply:
                self.queue.put(at, ClusterEvent(ClusterEventKind.SUPPLIED, node.name))
        self.faults = FaultLookup(faults)
        self.after_changes: Callable[[Sequence[NodeName]], None] = lambda _: None
        """Told at each instant of the nodes that have changed, once all of it has happened."""
        self._calls: list[Callable[[], None]] = []

    def call_at(self, at: float, call: Callable[[], None], kind: ClusterEventKind = ClusterEventKind.FAULT) -> None:
        """Call ``call`` at ``at`` seconds: a fault begins or ends, or (``SCALED``) nodes come or go."""
        self.queue.put(at, ClusterEvent(kind, None, len(self._calls)))
        self._calls.append(call)

    def advance(self, until: float) -> None:
        """Let everything happen that is due until then; afterwards it is that time."""
        while self.queue.next_at <= until:
            self.now = self.queue.next_at
            # All that happens at this instant comes first, so that a scheduler sees the room that all of it leaves.
            while self.queue.next_at == self.now:
                self._happen(self.queue.pop())
            self.place_and_share()
        self.now = until

    def place_and_share(self) -> None:
        """Place what the scheduler can place now, and share the cores of nodes where something has changed."""
        for run, chosen in self.scheduler.placements():
            if run.workers == 1:
                self.place(run, (chosen,))
            else:
                self._place_worker(run, chosen)
        for node in self.sharing.unshared():
            for run in list(node.deferred.values()):
                if self._can_give(run):
                    self._apply_resize(run)
        changed = self.sharing.share(self.now)
        self.after_changes(changed)

    def enqueue(self, run: TrialRun) -> None:
        """Let the scheduler find a node for the next attempt."""
        run.enter(Stage.QUEUED)
        self.changed = True
        self.scheduler.add(run)

    def place(self, run: TrialRun, nodes: tuple[NodeName, ...]) -> None:
        """Begin the next attempt with a worker on each of ``nodes``."""
        run.workers = len(nodes)
        self._begin_attempt(run)
        for node in nodes:
            self._put(run, node)
        self._start(run)

    def _place_worker(self, run: TrialRun, node: NodeName) -> None:
        """Put one worker of a gang's next attempt on ``node``; it starts once all are placed, or gives up."""
        if run.stage is Stage.QUEUED:
            self._begin_attempt(run)
            run.enter(Stage.GATHERING)
            self._after(self.costs.start_s + self.costs.meet_within_s, ClusterEventKind.UNMET, run)
        self._put(run, node)
        if len(run.nodes) == run.workers:
            self._start(run)

    def _begin_attempt(self, run: TrialRun) -> None:
        run.attempt += 1
        run.cpu = run.spec.cpu  # A new pod requests what its template says; a resize does not outlive its pod.
        self.changed = True

    def _put(self, run: TrialRun, node: NodeName) -> None:
        run.nodes += (node,)
        run.first_node = run.first_node or node
        self.nodes[node].runs[run.spec.id] = run
        self.touch(node, freed=False)

    def _start(self, run: TrialRun) -> None:
        run.enter(Stage.STARTING)
        waits = self.costs.start_s + max(self._images.wait_s(node) for node in run.nodes)
        if self.faults.worker_missing(run.spec.id, run.attempt) and run.workers > 1:
            self._after(waits + self.costs.meet_within_s, ClusterEventKind.UNMET, run)
        else:
            waits += self.costs.meet_s if run.workers > 1 else 0.0
            self._after(waits, ClusterEventKind.STARTED, run)

    def _unmet(self, run: TrialRun) -> None:
        """End an attempt whose workers did not all come: those that came leave, and nobody counts that as a failure."""
        run.unmet += 1
        run.targets = ()
        self.go_away(run, self.costs.next_attempt_s)

    def resize(self, run: TrialRun, cpu: float) -> None:
        """Change the share of an attempt, or of each of its workers, to ``cpu`` cores, as soon as that takes hold."""
        run.wanted_cpu = cpu
        seconds = self.costs.resize_s + self.faults.resize_delay_s(self.now)
        if seconds:
            self._touch_all(run, freed=False)
            self._later(seconds, ClusterEventKind.RESIZED, run)
        else:
            self._resize_now(run)

    def move(self, run: TrialRun, targets: tuple[NodeName, ...]) -> None:
        """Tell a running attempt to save and end, so that the next one can begin with a worker on each target."""
        run.targets = targets
        # Reserved on the target from now on: another move or placement must not take the room meanwhile.
        for target in targets:
            self.nodes[target].expected[run.spec.id] = run
            self.touch(target, freed=False)
        self.ask_to_leave(run)

    def suspend(self, run: TrialRun) -> None:
        """Tell a running attempt to save and end, and let the next one wait for a place."""
        run.rest = Rest.SUSPEND
        self.ask_to_leave(run)

    def stop(self, run: TrialRun, why: str) -> None:
        """End a trial for good as a success: a running attempt saves first; one that waits never starts."""
        run.stopped = why
        if run.stage in WAITING or run.stage is Stage.QUEUED:
            self.scheduler.withdraw(run)
            self._end(run, succeeded=True)
        else:
            run.rest = Rest.STOP
            self.ask_to_leave(run)

    def ask_to_leave(self, run: TrialRun) -> None:
        """Tell a running attempt to save and end, as it was noted for what."""
        self.changed = True
        if run.spec.deaf:
            run.change()
            self._later(self.costs.grace_s, ClusterEventKind.KILLED, run)
        else:
            self.halt(run)
            run.enter(Stage.LEAVING)
            self._after(self.costs.leave_s, ClusterEventKind.LEFT, run)

    def fail(self, run: TrialRun) -> None:
        """End the present attempt as a crash or kill does; of one that was told to leave, nobody counts that."""
        self.halt(run)
        run.lose()
        follows = run.after_failing()
        if follows.then is Then.FAILED:
            self._end(run, succeeded=False)
        elif follows.left:
            self.go_away(run, self.costs.next_attempt_s)
        else:
            run.targets = ()
            run.failures = follows.history.failures
            self.go_away(run, self.costs.retry_s)

    def _happen(self, due: ClusterEvent) -> None:
        self.events += 1
        if due.subject is None:
            self._calls[due.version]()
            return
        if due.kind in {ClusterEventKind.PROGRESS, ClusterEventKind.SUPPLIED}:
            # Of a node that has gone meanwhile, nothing is left to happen.
            if (node := self.nodes.get(NodeName(due.subject))) is not None:
                self._node_step(node, due)
            return
        run = self.runs[TrialId(due.subject)]
        if due.kind is ClusterEventKind.ARRIVES:
            self.submitted[run.spec.id] = run
            self.changed = True
            if self._gated or run.spec.search:
                run.enter(Stage.GATED)
            else:
                self.enqueue(run)
        elif due.kind in {ClusterEventKind.RESIZED, ClusterEventKind.KILLED}:
            self._resize_or_kill(run, due)
        elif due.version == run.version:
            self._steps[due.kind](run)

    def _resize_or_kill(self, run: TrialRun, due: ClusterEvent) -> None:
        """Resize or kill an attempt, as was asked a while ago; nothing happens where another attempt runs by now."""
        if due.version != run.attempt or not run.nodes or run.stage is Stage.ENDED or self._lost(run):
            return
        if due.kind is ClusterEventKind.KILLED:
            self.fail(run)
        elif run.wanted_cpu is not None:
            self._resize_now(run)

    def _node_step(self, node: NodeRun, due: ClusterEvent) -> None:
        """Let others leave a node more or less, or the first attempts there come to the end of a stage."""
        if due.kind is ClusterEventKind.SUPPLIED:
            self.sharing.note(node.name)
            return
        if due.version != node.version:
            return
        for run in [run for run in node.runs.values() if run.stage_ends_at <= self.now]:
            self.halt(run)
            if run.stage is Stage.WARMING:
                run.enter(Stage.TRAINING)
            else:
                run.finish(self.now)
                run.stopped = ""  # It was told to stop too late.
                self._end(run, succeeded=True)

    def _started(self, run: TrialRun) -> None:
        if self.faults.start_fails(run.spec.id, run.attempt):
            self.fail(run)
            return
        if run.moved_from:
            run.moves += run.nodes != run.moved_from
        run.scales += run.size_before not in {0, len(run.nodes)}
        run.size_before = len(run.nodes)
        run.targets = run.moved_from = ()
        run.enter(Stage.RESTORING)
        self.changed = True
        seconds = 0.0
        if run.saved:
            longer_s, broken = self.faults.restore(run.spec.id, run.attempt)
            seconds = self.costs.restore_s + longer_s
            if broken:
                run.restore_the_one_before()
        self._after(seconds, ClusterEventKind.RESTORED, run)

    def _restored(self, run: TrialRun) -> None:
        run.warm_left = self.costs.start_cpu_s
        run.enter(Stage.WARMING if run.warm_left else Stage.TRAINING)
        self.sharing.note(*run.nodes)

    def _left(self, run: TrialRun) -> None:
        run.save(run.work)
        self.go_away(run, self.costs.next_attempt_s)

    def _returned(self, run: TrialRun) -> None:
        if run.rest is Rest.SUSPEND:
            run.rest = None
            run.suspensions += 1
            run.enter(Stage.SUSPENDED)
            self.changed = True
            return
        targets = run.targets
        if targets:
            self.cancel_reservation(run)
        if targets and not any(self.nodes[node].why_unfit(run, targets.count(node)) for node in targets):
            self.place(run, targets)
            return
        # Its targets filled up or were lost meanwhile, or it has none.
        run.targets = ()
        if run.spec.gang and self._gated:
            # A scheduler that places pod by pod would tear the gang apart: the policy that places gangs does it again.
            run.enter(Stage.GATED)
            self.changed = True
        else:
            self.enqueue(run)

    def go_away(self, run: TrialRun, seconds: float) -> None:
        """Take an attempt off its nodes; the next one can be placed in ``seconds``."""
        if run.rest is Rest.STOP:
            self._end(run, succeeded=True)
            return
        if run.rest is Rest.ANYWHERE:
            run.rest = None
            run.evictions += 1
        run.moved_from = run.nodes if run.targets else ()
        self._release(run)
        run.enter(Stage.AWAY)
        self._after(seconds, ClusterEventKind.RETURNS, run)

    def _end(self, run: TrialRun, *, succeeded: bool) -> None:
        if run.leaves and run.targets:
            self.cancel_reservation(run)
        run.targets, run.rest = (), None
        nodes = run.nodes
        self._release(run)
        # Results name the node on which a trial ended, though it holds no place there any more.
        run.nodes, run.succeeded, run.ended_at = nodes, succeeded, self.now
        run.enter(Stage.ENDED)
        self.unended -= 1

    def cancel_reservation(self, run: TrialRun) -> None:
        """Give up the room that a move has been promised where it leads."""
        for target in dict.fromkeys(run.targets):
            del self.nodes[target].expected[run.spec.id]
            self.touch(target, freed=True)

    def _resize_now(self, run: TrialRun) -> None:
        """Let a change of a share take hold; as in a kubelet, a growth waits until others have given up theirs."""
        if self._can_give(run):
            self._apply_resize(run)
        else:
            for node in run.nodes:
                self.nodes[node].deferred[run.spec.id] = run

    def _can_give(self, run: TrialRun) -> bool:
        nodes = [self.nodes[node] for node in run.nodes]
        return all(node.can_give(run) and not node.losses for node in nodes)

    def _apply_resize(self, run: TrialRun) -> None:
        freed = run.wished_cpu < run.cpu
        run.cpu, run.wanted_cpu = run.wished_cpu, None
        run.resizes += 1
        for node in run.nodes:
            self.nodes[node].deferred.pop(run.spec.id, None)
        run.change()
        self.changed = True
        self._touch_all(run, freed=freed)

    def halt(self, run: TrialRun) -> None:
        """Let an attempt compute no more."""
        run.halt(self.now)
        self.sharing.note(*run.nodes)

    def _release(self, run: TrialRun) -> None:
        if run.stage is Stage.GATHERING:
            self.scheduler.withdraw(run)
        for node in dict.fromkeys(run.nodes):
            del self.nodes[node].runs[run.spec.id]
            self.nodes[node].deferred.pop(run.spec.id, None)
            self.touch(node, freed=True)
        run.nodes, run.wanted_cpu, run.silent = (), None, False
        self.changed = True

    def _lost(self, run: TrialRun) -> bool:
        return any(self.nodes[node].losses for node in run.nodes)

    def _touch_all(self, run: TrialRun, *, freed: bool) -> None:
        for node in dict.fromkeys(run.nodes):
            self.touch(node, freed=freed)

    def touch(self, node: NodeName, *, freed: bool) -> None:
        """Note that what is requested of ``node``, or by whom, has changed."""
        self.sharing.note(node)
        self.scheduler.changed(node, freed=freed)

    def _later(self, seconds: float, kind: ClusterEventKind, run: TrialRun) -> None:
        """Queue an event for the present attempt, in whichever stage it is by then."""
        self.queue.put(self.now + seconds, ClusterEvent(kind, run.spec.id, run.attempt))

    def _after(self, seconds: float, kind: ClusterEventKind, run: TrialRun) -> None:
        """End the present stage in ``seconds``; on a node that has stopped, nothing ever does."""
        if self._lost(run):
            return
        if seconds:
            self.queue.put(self.now + seconds, ClusterEvent(kind, run.spec.id, run.version))
        else:
            self._steps[kind](run)
