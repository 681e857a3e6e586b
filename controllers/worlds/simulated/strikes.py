"""What a fault does to a simulated cluster when its time has come."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from controllers.core.model import TrialId
from controllers.worlds.simulated.course import Course
from controllers.worlds.simulated.faults import Crowding, NodeLoss, TrialCrash, WorldFault
from controllers.worlds.simulated.node_run import NodeRun
from controllers.worlds.simulated.trial_run import Stage

Strike = tuple[float, Callable[[], None]]


def strikes(course: Course, faults: Sequence[WorldFault]) -> Iterator[Strike]:
    """Yield when something happens because of ``faults``, and what."""
    for fault in faults:
        if isinstance(fault, NodeLoss):
            yield from _loss(course, fault)
        elif isinstance(fault, Crowding):
            yield from _crowding(course, fault)
        elif isinstance(fault, TrialCrash):
            yield fault.at, partial(crash, course, fault.trial)


def crash(course: Course, trial: TrialId) -> None:
    """End the trial's present attempt, if there is one on a node that works, as a crash or kill does."""
    run = course.submitted.get(trial)
    if run is not None and run.stage is not Stage.ENDED and run.node is not None and not course.nodes[run.node].losses:
        course.fail(run)


def _loss(course: Course, fault: NodeLoss) -> Iterator[Strike]:
    node = course.nodes[fault.node]
    yield fault.at, partial(_lose, course, node)
    yield fault.at + fault.known_after_s, partial(_know, course, node)
    yield fault.at + fault.back_after_s, partial(_bring_back, course, node)


def _lose(course: Course, node: NodeRun) -> None:
    node.losses += 1
    for run in node.runs.values():
        course.halt(run)
        run.void()


def _know(course: Course, node: NodeRun) -> None:
    if node.losses:
        node.ready, course.changed = False, True
        _end_all(course, node)


def _bring_back(course: Course, node: NodeRun) -> None:
    node.losses -= 1
    _end_all(course, node)
    if not node.losses:
        node.ready = course.changed = True
        course.touch(node.name, freed=True)


def _end_all(course: Course, node: NodeRun) -> None:
    for run in list(node.runs.values()):
        course.fail(run)
    course.touch(node.name, freed=False)


def _crowding(course: Course, fault: Crowding) -> Iterator[Strike]:
    node, taken = course.nodes[fault.node], [0.0]

    def come() -> None:
        taken[0] = min(fault.cpu, max(0.0, node.spec.cpu - node.cpu_taken))
        node.others_cpu += taken[0]
        course.changed = True
        course.touch(node.name, freed=False)

    def leave() -> None:
        node.others_cpu -= taken[0]
        course.changed = True
        course.touch(node.name, freed=True)

    yield fault.at, come
    yield fault.at + fault.seconds, leave
