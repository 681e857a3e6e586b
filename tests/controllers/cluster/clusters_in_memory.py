"""A cluster that is a few lists: campaigns, trials that do as they are told, a state that outlives a controller."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from controllers.cluster.campaign_run import FlushableStore
from controllers.cluster.campaign_world import ReportedUsage
from controllers.core.actions import Action, Migrate, Place, Resize, Suspend
from controllers.core.model import Direction, Node, NodeKind, NodeName, Phase, Sample, Trial, TrialId
from controllers.core.ports import DONE, ComingTrial, Outcome, World, refused
from controllers.core.results import TrialResult
from controllers.worlds.argo.meaning.view import Campaign
from controllers.worlds.argo.writing.runs import RunOf

ONE, TWO = NodeName("one"), NodeName("two")


def campaign(uid: str = "uid", **changes: object) -> Campaign:
    """What a view tells of a workflow."""
    usual = Campaign(
        namespace="team",
        workflow="sweep-x7",
        uid=uid,
        sweep_uid=uid,
        policy="default",
        created_epoch_s=1_000.0,
        finished=False,
        sweeps={"uid.vae": "experiment"},
        annotations={},
        takes_unset=True,
    )
    return replace(usual, **changes)  # type: ignore[arg-type] # any field of a campaign


def trial(name: str = "uid.vae.t000", *, node: NodeName | None = ONE, **changes: object) -> Trial:
    running = Trial(TrialId(name), Phase.RUNNING, 0.1, 0.1, 0.0, Direction.MINIMIZE, 0.0, (node,) if node else (), 1)
    return replace(running, **changes)  # type: ignore[arg-type] # any field of a trial


def gated(name: str = "uid.vae.t000") -> Trial:
    return trial(name, node=None, phase=Phase.PENDING, gated=True, attempt=0)


@dataclass
class MemoryWorld:
    """Trials that take on every action at once."""

    now: dict[TrialId, Trial]
    finished: bool = False
    failed: bool = False
    accepts: bool = True
    breaks: Exception | None = None
    advanced: int = 0
    clock: float = 0.0
    done: list[Action] = field(default_factory=list)
    can: frozenset[type[Action]] = frozenset({Resize, Migrate, Place})

    @classmethod
    def of(cls, *trials: Trial) -> "MemoryWorld":
        return cls({one.id: one for one in trials})

    def advance(self, now: float) -> bool:
        assert now >= 0
        self.advanced += 1
        self.clock = now
        if self.breaks is not None:
            raise self.breaks
        return False

    def trials(self) -> Sequence[Trial]:
        return list(self.now.values())

    def trial(self, name: TrialId) -> Trial | None:
        return self.now.get(name)

    def to_come(self) -> Sequence[ComingTrial]:
        return []

    def nodes(self) -> Sequence[Node]:
        return [Node(ONE, 4.0), Node(TWO, 4.0)]

    def kinds(self) -> Sequence[NodeKind]:
        return []

    def node(self, name: NodeName) -> Node | None:
        return next((node for node in self.nodes() if node.name == name), None)

    def apply(self, action: Action) -> Outcome:
        if not self.accepts:
            return refused("not today")
        self.done.append(action)
        known = self.now[action.trial]
        if isinstance(action, Resize):
            self.now[action.trial] = replace(known, cpu=action.cpu)
        elif isinstance(action, Migrate):
            self.now[action.trial] = replace(known, nodes=(action.node,), attempt=known.attempt + 1)
        elif isinstance(action, Place):
            self.now[action.trial] = replace(known, gated=False, phase=Phase.RUNNING, nodes=(action.node or ONE,))
        else:
            after = Phase.SUSPENDED if isinstance(action, Suspend) else Phase.STOPPED
            self.now[action.trial] = replace(known, phase=after, nodes=(), gated=after is Phase.SUSPENDED)
        return DONE

    def further_metrics(self) -> Mapping[TrialId, tuple[str, ...]]:
        return {}

    def objectives(self) -> Mapping[TrialId, str]:
        return dict.fromkeys(self.now, "loss")

    def short(self, name: str) -> str:
        return name.removeprefix("uid.")

    def results(self, samples: Mapping[TrialId, Sample]) -> Sequence[TrialResult]:
        return [
            TrialResult(
                self.short(name),
                submitted_s=0.0,
                completed_s=60.0,
                node=one.node or "",
                moves=0,
                attempts=one.attempt,
                final_metric=_value(samples.get(name)),
                params={"lr": 0.1},
            )
            for name, one in self.now.items()
        ]


def _value(sample: Sample | None) -> float | None:
    return None if sample is None else sample.value


@dataclass
class MemoryStore:
    """Keeps the newest state."""

    text: str | None = None
    flushed: int = 0

    def load(self) -> str | None:
        return self.text

    def save(self, state: Callable[[], str], *, urgent: bool) -> None:
        del urgent
        self.text = state()

    def flush(self) -> None:
        self.flushed += 1


@dataclass
class MemoryCluster:
    """Worlds and states by workflow uid; a view of them that is as fresh as its test says."""

    found: list[Campaign] = field(default_factory=list)
    worlds: dict[str, MemoryWorld] = field(default_factory=dict)
    stores: dict[str, MemoryStore] = field(default_factory=dict)
    age: float = 0.0
    whole: bool = True
    missing: list[str] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    run_of: dict[str, RunOf] = field(default_factory=dict)

    def open(
        self, campaign: Campaign, now: Callable[[], float], run_of: RunOf, reports: ReportedUsage
    ) -> tuple[World, FlushableStore]:
        assert now() >= 0
        assert not reports.hooked(TrialId(""))
        self.run_of[campaign.uid] = run_of
        self.opened.append(campaign.uid)
        return self.worlds[campaign.uid], self.stores.setdefault(campaign.uid, MemoryStore())

    def synced(self) -> bool:
        return self.whole

    def age_s(self) -> float:
        return self.age

    def wait_for_news(self, within_s: float) -> bool:
        assert within_s > 0
        return False

    def refusals(self) -> Sequence[str]:
        return self.missing

    def campaigns(self, default_policy: str) -> Sequence[Campaign]:
        assert default_policy
        return self.found
