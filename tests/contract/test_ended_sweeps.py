"""What every world promises of a sweep that a rule of its author ends. One suite; each world passes it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from controllers.core.actions import Place
from controllers.core.engine import Engine
from controllers.core.model import Phase, Sample, TrialId
from controllers.core.policy import Policy
from controllers.core.stop_rules import StopRules, rules_of
from controllers.driving.assembly import assemble
from controllers.policies import Ahead, Default
from controllers.worlds.simulated.world import MemoryStore
from tests.contract.bench import Behaviour, Bench
from tests.contract.test_searched_trials import SEARCH

LONG = Behaviour(steps=2000, cpu="300m")
"""Each node has room for one of them."""


@dataclass
class Reports:
    """What trials report, as the test says."""

    samples: dict[TrialId, Sample] = field(default_factory=dict)

    def poll(self) -> Mapping[TrialId, Sample]:
        return self.samples


class Steered:
    """A bench with an engine whose clock the test moves on."""

    def __init__(self, bench: Bench, policy: Policy[Any], rules: StopRules) -> None:
        self._bench, self._policy, self._rules = bench, policy, {"sweep": rules}
        self._store, self._reports, self.now = MemoryStore(), Reports(), 0.0
        self._engine = self._assembled()

    def _assembled(self) -> Engine[Any]:
        return assemble(self._policy, self._bench.world, self._reports, self._store, stops=self._rules)

    def report(self, name: str, value: float) -> None:
        self._reports.samples[self._bench.trial(name).id] = Sample(value, 1, self.now)

    def restart(self) -> None:
        self._bench.restart_controller()
        self._engine = self._assembled()

    def tick(self) -> None:
        self._engine.tick(self.now)

    def until(self, condition: Callable[[], bool]) -> None:
        def ticked() -> bool:
            self.tick()
            return condition()

        self._bench.until(ticked)


def over(bench: Bench) -> dict[str, tuple[bool, str]]:
    """Return whether each trial succeeded, and why it was stopped."""
    return {one.id.rpartition(".")[2]: (one.succeeded, one.stopped) for one in bench.world.results({})}


@pytest.mark.parametrize("policy", [Default(), Ahead()], ids=lambda policy: policy.name)
def test_a_sweep_that_has_reached_its_value_ends_well_and_starts_no_other_trial(
    bench: Bench, policy: Policy[Any]
) -> None:
    bench.submit(gated=Place in policy.needs, a=LONG, b=LONG, c=LONG)
    steered = Steered(bench, policy, rules_of(value=0.01))
    steered.until(lambda: [bench.phase(name) for name in "abc"].count(Phase.RUNNING) == 2)
    first = next(name for name in "abc" if bench.phase(name) is Phase.RUNNING)
    bench.until_running(first)
    waiting = next(name for name in "abc" if bench.phase(name) is Phase.PENDING)
    steered.tick()
    assert not bench.ended(waiting)
    steered.report(first, 0.001)
    steered.until(lambda: bench.ended("a", "b", "c") and bench.world.finished)
    why = "sweep ended: 0.001 reached 0.01"
    assert over(bench) == dict.fromkeys("abc", (True, why))
    assert (bench.steps(waiting), bench.world.failed) == ([], False)
    assert 0 < len(bench.steps(first)) < LONG.steps


def test_a_new_controller_goes_on_ending_the_sweep(bench: Bench) -> None:
    bench.submit(a=Behaviour(steps=2000, cpu="300m", deaf=True), b=LONG, c=LONG)
    steered = Steered(bench, Default(), rules_of(after_s=60.0))
    bench.until_running("a")
    bench.until_running("b")
    steered.tick()
    steered.now = 60.0
    steered.tick()
    steered.restart()
    steered.until(lambda: bench.ended("a", "b", "c") and bench.world.finished)
    assert set(over(bench).values()) == {(True, "sweep ended: 1 min have passed")}
    assert not bench.world.failed


def test_a_sweep_is_ended_once_optunas_terminator_would_end_its_search(bench: Bench) -> None:
    short, long_ = (Behaviour(steps=steps, search=SEARCH) for steps in (1, 2000))
    bench.submit(a=short, b=short, c=short, d=long_)
    steered = Steered(bench, Ahead(), rules_of(terminator={"trials": 1}))
    steered.until(lambda: bench.ended("a", "b", "c") and bench.trial("d").steady)
    for name, value in (("a", 0.1), ("b", 0.7)):
        steered.report(name, value)
    steered.tick()
    steered.tick()
    assert not bench.ended("d")
    steered.report("c", 0.5)
    steered.until(lambda: bench.ended("d") and bench.world.finished)
    why = "sweep ended: 2 trials in a row have found nothing better"
    assert over(bench) == {**dict.fromkeys("abc", (True, "")), "d": (True, why)}
