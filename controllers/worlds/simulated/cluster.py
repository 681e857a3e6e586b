"""The simulated cluster: the trials and nodes of a scenario, moved on event by event in virtual time.

Between two events every attempt goes on at a constant rate, so its progress is worked out only when somebody asks.
"""

import math
from collections.abc import Callable, Sequence

from controllers.core.model import NodeName, TrialId
from controllers.worlds.simulated.default_scheduler import DefaultScheduler, ImagePulls
from controllers.worlds.simulated.events import ClusterEvent, ClusterEventKind, EventQueue
from controllers.worlds.simulated.faults import FaultLookup, WorldFault
from controllers.worlds.simulated.node_run import NodeRun
from controllers.worlds.simulated.report_log import ReportLog, Upcoming
from controllers.worlds.simulated.scenario import Scenario
from controllers.worlds.simulated.trial_run import WAITING, Rest, Stage, TrialRun
from controllers.worlds.simulated.workload import WorkloadError


class SimulatedCluster:
    """The trials and nodes of a scenario, ``now`` seconds after its beginning.

    Args:
        scenario: what is simulated.
        gated: whether first attempts wait to be placed.
        faults: what goes wrong.

    Raises:
        WorkloadError: a trial fits on no node, even an empty one.
    """

    def __init__(self, scenario: Scenario, *, gated: bool, faults: Sequence[WorldFault] = ()) -> None:
        workload = scenario.workload
        self.nodes = {spec.name: NodeRun(spec) for spec in workload.nodes}
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
        self._images = ImagePulls(workload.image, len(self.nodes), lambda: self.now)
        self._scheduler = DefaultScheduler(self.nodes, self._images, scenario.seed, scenario.pinned)
        self._unshared: dict[NodeName, None] = {}
        self._steps = {
            ClusterEventKind.LEFT: self._left,
            ClusterEventKind.STARTED: self._started,
            ClusterEventKind.RESTORED: self._restored,
            ClusterEventKind.RETURNS: self._returned,
        }
        for run in self.runs.values():
            if not any(node.could_hold(run) for node in self.nodes.values()):
                asked = f"{run.spec.cpu:g} cores, {run.spec.memory:g} bytes of memory and {run.spec.devices}"
                message = f"trial {run.spec.id} requests {asked}: no node has as much"
                raise WorkloadError(message)
            self.queue.put(run.spec.submitted_at, ClusterEvent(ClusterEventKind.ARRIVES, run.spec.id))
        for node in workload.nodes:
            for at, _ in node.supply:
                self.queue.put(at, ClusterEvent(ClusterEventKind.SUPPLIED, node.name))
        self._faults = FaultLookup(faults)
        self._calls: list[Callable[[], None]] = []

    def call_at(self, at: float, call: Callable[[], None]) -> None:
        """Call ``call`` at ``at`` seconds: a fault begins or ends."""
        self.queue.put(at, ClusterEvent(ClusterEventKind.FAULT, None, len(self._calls)))
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
        for run, chosen in self._scheduler.placements():
            self.place(run, chosen)
        for name in self._unshared:
            node = self.nodes[name]
            for run in list(node.deferred.values()):
                if node.can_give(run) and not node.losses:
                    self._apply_resize(run, name)
            first = node.share(self.now)
            if first < math.inf:
                self.queue.put(first, ClusterEvent(ClusterEventKind.PROGRESS, name, node.version))
        self._unshared.clear()

    def enqueue(self, run: TrialRun) -> None:
        """Let the scheduler find a node for the next attempt."""
        run.enter(Stage.QUEUED)
        self.changed = True
        self._scheduler.add(run)

    def place(self, run: TrialRun, node: NodeName) -> None:
        """Begin the next attempt on ``node``."""
        run.node = node
        run.first_node = run.first_node or node
        run.attempt += 1
        run.cpu = run.spec.cpu  # A new pod requests what its template says; a resize does not outlive its pod.
        self.nodes[node].runs[run.spec.id] = run
        self.touch(node, freed=False)
        run.enter(Stage.STARTING)
        self.changed = True
        self._after(self.costs.start_s + self._images.wait_s(node), ClusterEventKind.STARTED, run)

    def resize(self, run: TrialRun, node: NodeName, cpu: float) -> None:
        """Change the share of an attempt on ``node`` to ``cpu`` cores, as soon as that takes hold."""
        run.wanted_cpu = cpu
        seconds = self.costs.resize_s + self._faults.resize_delay_s(self.now)
        if seconds:
            self.touch(node, freed=False)
            self._later(seconds, ClusterEventKind.RESIZED, run)
        else:
            self._resize_now(run, node)

    def move(self, run: TrialRun, target: NodeName) -> None:
        """Tell a running attempt to save and end, so that the next one can begin on ``target``."""
        run.target = target
        # Reserved on the target from now on: another move or placement must not take the room meanwhile.
        self.nodes[target].expected[run.spec.id] = run
        self.touch(target, freed=False)
        self._ask_to_leave(run)

    def suspend(self, run: TrialRun) -> None:
        """Tell a running attempt to save and end, and let the next one wait for a place."""
        run.rest = Rest.SUSPEND
        self._ask_to_leave(run)

    def stop(self, run: TrialRun, why: str) -> None:
        """End a trial for good as a success: a running attempt saves first; one that waits for a place ends at once."""
        run.stopped = why
        if run.stage in WAITING:
            self._end(run, succeeded=True)
        else:
            run.rest = Rest.STOP
            self._ask_to_leave(run)

    def _ask_to_leave(self, run: TrialRun) -> None:
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
        if run.leaves:
            self._go_away(run, self.costs.next_attempt_s)
        elif run.failures < run.spec.retries:
            run.target = None
            run.failures += 1
            self._go_away(run, self.costs.retry_s)
        else:
            self._end(run, succeeded=False)

    def _happen(self, due: ClusterEvent) -> None:
        self.events += 1
        if due.kind is ClusterEventKind.PROGRESS:
            self._progressed(self.nodes[NodeName(str(due.subject))], due.version)
            return
        if due.subject is None:
            self._calls[due.version]()
            return
        if due.kind is ClusterEventKind.SUPPLIED:
            self._unshared[NodeName(due.subject)] = None
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
        if due.version != run.attempt or run.node is None or run.stage is Stage.ENDED or self.nodes[run.node].losses:
            return
        if due.kind is ClusterEventKind.KILLED:
            self.fail(run)
        elif run.wanted_cpu is not None:
            self._resize_now(run, run.node)

    def _progressed(self, node: NodeRun, version: int) -> None:
        if version != node.version:
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
        if self._faults.start_fails(run.spec.id, run.attempt):
            self.fail(run)
            return
        if run.moved_from is not None:
            run.moves += run.node != run.moved_from
        run.target = run.moved_from = None
        run.enter(Stage.RESTORING)
        self.changed = True
        seconds = 0.0
        if run.saved:
            longer_s, broken = self._faults.restore(run.spec.id, run.attempt)
            seconds = self.costs.restore_s + longer_s
            if broken:
                run.restore_the_one_before()
        self._after(seconds, ClusterEventKind.RESTORED, run)

    def _restored(self, run: TrialRun) -> None:
        run.warm_left = self.costs.start_cpu_s
        run.enter(Stage.WARMING if run.warm_left else Stage.TRAINING)
        if run.node is not None:
            self._unshared[run.node] = None

    def _left(self, run: TrialRun) -> None:
        run.save(run.work)
        self._go_away(run, self.costs.next_attempt_s)

    def _returned(self, run: TrialRun) -> None:
        if run.rest is Rest.SUSPEND:
            run.rest = None
            run.suspensions += 1
            run.enter(Stage.SUSPENDED)
            self.changed = True
            return
        target = run.target
        if target is None:
            self.enqueue(run)
            return
        self._cancel_reservation(run, target)
        if self.nodes[target].unfit(run):
            # The target filled up or was lost meanwhile: the trial goes wherever the scheduler finds room.
            run.target = None
            self.enqueue(run)
        else:
            self.place(run, target)

    def _go_away(self, run: TrialRun, seconds: float) -> None:
        if run.rest is Rest.STOP:
            self._end(run, succeeded=True)
            return
        run.moved_from = run.node if run.target is not None else None
        self._release(run)
        run.enter(Stage.AWAY)
        self._after(seconds, ClusterEventKind.RETURNS, run)

    def _end(self, run: TrialRun, *, succeeded: bool) -> None:
        if run.leaves and run.target is not None:
            self._cancel_reservation(run, run.target)
        run.target = run.rest = None
        node = run.node
        self._release(run)
        # Results name the node on which a trial ended, though it holds no place there any more.
        run.node, run.succeeded, run.ended_at = node, succeeded, self.now
        run.enter(Stage.ENDED)
        self.unended -= 1

    def _cancel_reservation(self, run: TrialRun, target: NodeName) -> None:
        del self.nodes[target].expected[run.spec.id]
        self.touch(target, freed=True)

    def _resize_now(self, run: TrialRun, node: NodeName) -> None:
        """Let a change of a share take hold; as in a kubelet, a growth waits until others have given up theirs."""
        if self.nodes[node].can_give(run):
            self._apply_resize(run, node)
        else:
            self.nodes[node].deferred[run.spec.id] = run

    def _apply_resize(self, run: TrialRun, node: NodeName) -> None:
        freed = run.wished_cpu < run.cpu
        run.cpu, run.wanted_cpu = run.wished_cpu, None
        run.resizes += 1
        self.nodes[node].deferred.pop(run.spec.id, None)
        run.change()
        self.changed = True
        self.touch(node, freed=freed)

    def halt(self, run: TrialRun) -> None:
        """Let an attempt compute no more."""
        run.halt(self.now)
        if run.node is not None:
            self._unshared[run.node] = None

    def _release(self, run: TrialRun) -> None:
        if run.node is not None:
            del self.nodes[run.node].runs[run.spec.id]
            self.nodes[run.node].deferred.pop(run.spec.id, None)
            self.touch(run.node, freed=True)
        run.node = run.wanted_cpu = None
        self.changed = True

    def touch(self, node: NodeName, *, freed: bool) -> None:
        """Note that what is requested of ``node``, or by whom, has changed."""
        self._unshared[node] = None
        self._scheduler.changed(node, freed=freed)

    def _later(self, seconds: float, kind: ClusterEventKind, run: TrialRun) -> None:
        """Queue an event for the present attempt, in whichever stage it is by then."""
        self.queue.put(self.now + seconds, ClusterEvent(kind, run.spec.id, run.attempt))

    def _after(self, seconds: float, kind: ClusterEventKind, run: TrialRun) -> None:
        """End the present stage in ``seconds``; on a node that has stopped, nothing ever does."""
        if run.node is not None and self.nodes[run.node].losses:
            return
        if seconds:
            self.queue.put(self.now + seconds, ClusterEvent(kind, run.spec.id, run.version))
        else:
            self._steps[kind](run)
