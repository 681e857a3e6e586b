"""What becomes of a trial's goals is told under every policy, whatever that goes by."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from controllers.cluster.campaign_world import ForgetfulStore
from controllers.core.actions import Assessment
from controllers.core.engine import Engine
from controllers.core.model import Direction, Goals, Node, NodeName, Phase, Sample, Snapshot, Trial, TrialId
from controllers.policies import Guarded
from controllers.policies.registry import POLICIES, parse_policy
from controllers.record.recorder import Recorder
from controllers.record.timeline import EventKind, TimelineEvent
from controllers.tracking.tag_boards import trial_tags
from hera_specon.sweep_state import trial_rows
from mlflow_hooks import contract
from tests.controllers.quiet_world import QuietWorld

A = TrialId("a")
RUNNING = Trial(A, Phase.RUNNING, 1.0, 1.0, 0.0, Direction.MINIMIZE, 10.0, (NodeName("n"),), 1)
every_policy = pytest.mark.parametrize("policy", ["specon+flowcon", *sorted(POLICIES)])


@dataclass
class OneTrial(QuietWorld):
    """A world of one trial on a node that is its own, which accepts whatever is wanted."""

    one: Trial
    samples: Mapping[TrialId, Sample] = field(default_factory=dict)

    def trials(self) -> Sequence[Trial]:
        return [self.one]

    def nodes(self) -> Sequence[Node]:
        return [Node(NodeName("n"), 2.0)]

    def poll(self) -> Mapping[TrialId, Sample]:
        return self.samples


@dataclass
class Shown:
    """What people get to see of the newest tick: in MLflow, and on the screen."""

    tags: dict[str, str] = field(default_factory=dict)
    screen: str = ""

    def observe(
        self, snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
    ) -> None:
        self.tags = trial_tags(snapshot.trials[0], assessments.get(A), reasons.get(A))
        self.screen = trial_rows(snapshot, assessments, reasons)[0].note


def watched(policy: str, world: OneTrial, *times: float) -> tuple[Shown, list[str | None]]:
    """Return what is shown at the last of ``times``, and what was foreseen by and by as the timeline has it."""
    events: list[TimelineEvent] = []
    shown = Shown()
    observers: Any = (shown, Recorder(events.extend, dict))
    engine = Engine(Guarded(policy=parse_policy(policy)), world, world, ForgetfulStore(), observers=observers)
    for now in times:
        engine.tick(now)
    return shown, [event.reason for event in events if event.kind is EventKind.OUTLOOK]


def of_goals(words: str | None) -> str:
    """Return what ``words`` tell of goals: a policy may foresee more, such as that nobody knows how long a trial is."""
    return "; ".join(part for part in (words or "").split("; ") if not part.startswith("its length is not known yet"))


def sample(value: float, at: float, first: float) -> dict[TrialId, Sample]:
    return {A: Sample(value, 5, at, cpu_seconds=at, first=first, steps_total=100)}


@every_policy
@pytest.mark.parametrize(("direction", "target"), [(Direction.MINIMIZE, 5.0), (Direction.MAXIMIZE, 0.5)])
def test_a_target_on_the_wrong_side_of_the_direction_is_questioned_at_the_first_report(
    policy: str, direction: Direction, target: float
) -> None:
    world = OneTrial(replace(RUNNING, direction=direction, goals=Goals(target=target)), sample(1.0, 20.0, first=1.0))
    shown, timeline = watched(policy, world, 20.0)
    question = f"its first report, 1, was past its target {target:g} already: does that fit {direction}?"
    assert of_goals(shown.tags[contract.TAG_OUTLOOK]) == of_goals(shown.screen) == question
    assert [of_goals(words) for words in timeline] == [question]


@every_policy
def test_a_target_that_is_reached_in_time_is_told_and_not_questioned(policy: str) -> None:
    world = OneTrial(replace(RUNNING, goals=Goals(target=0.5)), sample(0.4, 20.0, first=9.0))
    shown, _ = watched(policy, world, 20.0)
    assert of_goals(shown.tags[contract.TAG_OUTLOOK]) == "has reached its target 0.5"


@every_policy
@pytest.mark.parametrize("reports", [True, False], ids=["it reports", "it never reports"])
def test_a_deadline_that_has_passed_is_told_once_and_not_before(policy: str, reports: bool) -> None:  # noqa: FBT001
    samples = sample(0.4, 20.0, first=9.0) if reports else {}
    world = OneTrial(replace(RUNNING, goals=Goals(deadline_at=70.0)), samples)
    _, early = watched(policy, world, 20.0, 30.0)
    assert not [words for words in early if "missed" in (words or "")]
    shown, timeline = watched(policy, world, 70.0, 100.0, 5000.0)
    assert shown.tags[contract.TAG_OUTLOOK].count("missed its deadline") == 1
    assert "missed its deadline, 60 s after its submission" in shown.screen
    assert sum("missed its deadline" in (words or "") for words in timeline) == 1


@every_policy
def test_of_a_trial_with_no_goal_or_one_within_reach_nothing_is_told(policy: str) -> None:
    for goals in (Goals(), Goals(deadline_at=1e6, target=0.1, seconds_per_step=1e6)):
        shown, timeline = watched(policy, OneTrial(replace(RUNNING, goals=goals)), 20.0)
        assert not of_goals(shown.tags.get(contract.TAG_OUTLOOK))
        assert not any(of_goals(words) for words in timeline)


def test_what_a_policy_foresees_is_told_before_what_became_of_a_goal() -> None:
    waiting = replace(RUNNING, phase=Phase.PENDING, nodes=(), gated=True, cpu=9.0, base_cpu=9.0)
    world = OneTrial(replace(waiting, goals=Goals(deadline_at=12.0)))
    shown, _ = watched("deadline", world, 20.0)
    assert shown.screen == "waits for room; missed its deadline, 2 s after its submission"


def test_nothing_is_told_of_the_goals_of_a_trial_that_has_ended() -> None:
    ended = replace(RUNNING, phase=Phase.SUCCEEDED, nodes=(), goals=Goals(deadline_at=12.0))
    _, timeline = watched("default", OneTrial(ended), 20.0)
    assert timeline == []
