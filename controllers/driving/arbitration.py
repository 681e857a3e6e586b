"""Has the arbiter decide between sweeps that are steered side by side, and tells each its part."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from controllers.core.actions import Action, Place, Resize
from controllers.core.model import Ask, Node, NodeKind, NodeName
from controllers.driving.shared_world import SharedWorld
from controllers.policies.arbiter import Amount, Arbiter, ArbiterState, Part, SweepDemand
from controllers.policies.arbiter.demands import NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A sweep that shares the cluster.

    Attributes:
        name: What tells it from all others.
        namespace: Whose it is.
        world: What its engine sees and acts on.
        needs: Tells the actions that its policy may take now.
        asked: Tells what its owner asks of its trials, by short id.
        origin: When it began, in seconds of the arbiter's clock.
        weight: Counts among the sweeps of its namespace, and so does
        priority: a higher one comes first.
    """

    name: str
    namespace: str
    world: SharedWorld
    needs: Callable[[], frozenset[type[Action]]]
    asked: Callable[[], Mapping[str, Ask]] = dict
    origin: float = 0.0
    weight: float = 1.0
    priority: int = 0

    def demand(self) -> SweepDemand:
        """Return what it wants now."""
        needs = self.needs()
        return SweepDemand(
            self.name,
            self.namespace,
            self.world.claimants(self.asked(), self.origin),
            self.weight,
            self.priority,
            places=Place in needs,
            grows=Resize in needs,
        )


class Arbitration:
    """Keeps what the arbiter remembers from round to round."""

    def __init__(self, arbiter: Arbiter) -> None:
        self._arbiter = arbiter
        self._state = ArbiterState()

    def decide(self, now: float, members: Iterable[Member]) -> Mapping[str, Part]:
        """Return what each member's part is from now on, and have its world show no more than that.

        Args:
            now: Seconds of a clock that never goes back.
            members: The sweeps that have not ended.
        """
        demands: list[SweepDemand] = []
        there: list[Member] = []
        for member in members:
            demand = member.demand()
            if demand.trials:
                demands.append(demand)
                there.append(member)
            else:
                member.world.part = None
        nodes, kinds = _whole_nodes([member.world for member in there])
        ruling = self._arbiter.decide(now, demands, nodes, self._state, kinds)
        self._state = ruling.state
        for member in there:
            member.world.part = ruling.parts[member.name]
        return ruling.parts


def _whole_nodes(worlds: Sequence[SharedWorld]) -> tuple[list[Node], list[NodeKind]]:
    """Return what the trials of all sweeps together can have of each node, and what nodes can come.

    Each world shows its nodes less what all others hold, other sweeps and strangers alike.
    """
    held = [world.held() for world in worlds]
    everybody: dict[NodeName, Amount] = {}
    for amounts in held:
        for name, amount in amounts.items():
            everybody[name] = everybody.get(name, NOTHING) + amount
    nodes: dict[NodeName, Node] = {}
    kinds: dict[str, NodeKind] = {}
    for world, own in zip(worlds, held, strict=True):
        kinds |= {kind.name: kind for kind in world.whole_kinds()}
        for node in world.whole_nodes():
            others = everybody.get(node.name, NOTHING) - own.get(node.name, NOTHING)
            whole = replace(
                node,
                cpu=node.cpu + others.cpu,
                memory=node.memory + others.memory,
                devices=node.devices + others.devices,
            )
            known = nodes.get(node.name)
            # A taint keeps some sweeps off a node: the one that sees most of it knows what can be had.
            if known is None or (whole.ready, whole.cpu) > (known.ready, known.cpu):
                nodes[node.name] = whole
    return list(nodes.values()), list(kinds.values())
