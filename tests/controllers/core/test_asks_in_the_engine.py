"""The engine shows policies what owners ask of their trials, by the trials' whole ids."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from controllers.core.actions import Decision
from controllers.core.engine import Engine
from controllers.core.model import Ask, Phase, Snapshot, TrialId
from tests.controllers.core.test_engine import Count, FakeSource, FakeWorld, Kept, Scripted, trial


@dataclass
class Asking:
    asks: Mapping[str, Ask]

    def asked(self) -> Mapping[str, Ask]:
        return self.asks


@dataclass(frozen=True)
class Watching(Scripted):
    """Remembers what it was shown."""

    seen: list[Snapshot] = field(default_factory=list)

    def decide(self, snapshot: Snapshot, state: Count) -> Decision[Count]:
        self.seen.append(snapshot)
        return super().decide(snapshot, state)


@dataclass
class Short(FakeWorld):
    def short(self, trial: str) -> str:
        return trial.removeprefix("uid.")


def shown(asks: Mapping[str, Ask], **changes: Any) -> Mapping[TrialId, Ask]:  # noqa: ANN401 - fields of Trial
    policy = Watching(())
    world = Short([[trial(id=TrialId("uid.s.a"), **changes)]])
    Engine(policy, world, FakeSource(), Kept(), requests=Asking(asks)).tick(1.0)
    return policy.seen[0].asked


def test_what_is_asked_by_short_id_reaches_the_policy_by_whole_id() -> None:
    assert shown({"s.a": Ask.PAUSE, "s.gone": Ask.STOP}) == {TrialId("uid.s.a"): Ask.PAUSE}


def test_nothing_is_asked_of_trials_that_have_ended() -> None:
    assert shown({"s.a": Ask.STOP}, phase=Phase.SUCCEEDED) == {}
