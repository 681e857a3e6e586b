"""All campaigns of a controller share one cluster: the arbiter decides, and each workflow is told now and then."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controllers.cluster.shared_cluster import TELL_EVERY_S, Seat, SharedCluster
from controllers.core.actions import Action
from controllers.core.model import Phase, Trial
from controllers.core.queue_places import QueuePlace
from controllers.driving.shared_world import SharedWorld
from controllers.policies import Ahead
from controllers.policies.arbiter import Arbiter, NamespaceTerms
from controllers.worlds.argo.meaning.view import Campaign
from tests.controllers.cluster.clusters_in_memory import MemoryWorld, campaign, trial

NOW_S = 5_000.0


@dataclass
class Stage:
    """Sweeps with a world in memory each, of four cores on two nodes; notes what is told of them."""

    terms: Mapping[str, NamespaceTerms] = field(default_factory=dict)
    now: float = 100.0
    told: list[tuple[str, QueuePlace]] = field(default_factory=list)
    writes: bool = True

    def __post_init__(self) -> None:
        arbiter = Arbiter(terms=self.terms, settles=0, keeps=0)
        self.cluster = SharedCluster(arbiter, lambda: self.now, lambda: NOW_S + self.now, self.tell)

    def tell(self, of: Campaign, place: QueuePlace) -> bool:
        self.told.append((of.namespace, place))
        return self.writes

    def add(self, namespace: str, *trials: Trial, world: MemoryWorld | None = None, **changes: object) -> SharedWorld:
        shared = SharedWorld(world or MemoryWorld.of(*trials))
        of = campaign(namespace, namespace=namespace, **changes)
        self.cluster.join(namespace, Seat(lambda: of, shared, Ahead, dict))
        return shared


def waiting(name: str, cpu: float = 1.0) -> Trial:
    return trial(name, node=None, phase=Phase.PENDING, gated=True, attempt=0, base_cpu=cpu)


def many(name: str, count: int) -> list[Trial]:
    return [waiting(f"uid.{name}.t{number:03}") for number in range(count)]


def test_each_campaign_gets_its_part_and_its_workflow_tells_it() -> None:
    stage = Stage({"red": NamespaceTerms(weight=3.0)})
    red, blue = stage.add("red", *many("r", 9)), stage.add("blue", *many("b", 9), weight=2.0, priority=4)
    stage.cluster.decide()
    assert red.part is not None
    assert blue.part is not None
    assert (len(red.part.starts), len(blue.part.starts)) == (6, 2)
    told = dict(stage.told)
    assert (told["blue"].waiting, told["blue"].starting, told["blue"].weight, told["blue"].priority) == (9, 2, 2.0, 4)
    assert told["blue"].entitled_cpu == 2.0
    assert told["blue"].waits_since == 5_100.0
    assert told["blue"].told_at == 5_100.0
    assert "others come first" in told["blue"].reason


def test_a_workflow_is_told_again_only_after_news_and_a_while() -> None:
    stage = Stage()
    world = MemoryWorld.of(*many("r", 9))
    stage.add("red", world=world)
    stage.cluster.decide()
    world.now = {name: one for name, one in world.now.items() if not name.endswith("8")}
    for _ in range(10):
        stage.now += 1.0
        stage.cluster.decide()
    assert [place.waiting for _, place in stage.told] == [9]
    stage.now += TELL_EVERY_S
    stage.cluster.decide()
    stage.now += TELL_EVERY_S
    stage.cluster.decide()
    assert [place.waiting for _, place in stage.told] == [9, 8]


def test_what_could_not_be_written_is_told_in_the_next_round() -> None:
    stage = Stage(writes=False)
    stage.add("red", *many("r", 1))
    stage.cluster.decide()
    stage.now += 1.0
    stage.cluster.decide()
    assert len(stage.told) == 2


def test_a_world_that_does_not_answer_keeps_the_others_from_nothing() -> None:
    class Broken(MemoryWorld):
        def trials(self) -> list[Trial]:
            raise RuntimeError

    stage = Stage()
    broken = stage.add("red", world=Broken.of(*many("r", 9)))
    blue = stage.add("blue", *many("b", 9))
    stage.cluster.decide()
    assert broken.part is None
    assert blue.part is not None
    assert len(blue.part.starts) == 8


def test_rounds_are_a_second_apart_and_who_left_has_no_part_in_them() -> None:
    stage = Stage()
    red, blue = stage.add("red", *many("r", 9)), stage.add("blue", *many("b", 9))
    stage.cluster.decide()
    stage.cluster.leave("blue")
    stage.now += 0.5
    stage.cluster.decide()
    assert red.part is not None
    assert len(red.part.starts) == 4
    stage.now += 0.5
    stage.cluster.decide()
    assert len(red.part.starts) == 8
    assert blue.part is not None


def test_no_weight_that_a_tenant_writes_takes_anything_from_another_namespace() -> None:
    stage = Stage()
    red = stage.add("red", *many("r", 9), weight=100.0, priority=100)
    blue = stage.add("blue", *many("b", 9))
    stage.cluster.decide()
    assert red.part is not None
    assert blue.part is not None
    assert len(red.part.starts) == len(blue.part.starts) == 4


def test_a_defect_of_the_arbiter_lets_every_sweep_go_on_as_if_it_were_alone() -> None:
    class Odd(Ahead):
        @property
        def needs(self) -> frozenset[type[Action]]:  # type: ignore[override] # a defect
            raise RuntimeError

    stage = Stage()
    red = stage.add("red", *many("r", 9))
    stage.cluster.decide()
    assert red.part is not None
    stage.cluster.join("odd", Seat(lambda: campaign(namespace="odd"), SharedWorld(MemoryWorld.of()), Odd, dict))
    stage.now += 1.0
    stage.cluster.decide()
    assert red.part is None
