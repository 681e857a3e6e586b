"""Optuna's pruners as a policy: they stop just the trials that they prune in a study of Optuna's own."""

from dataclasses import replace
from random import Random
from typing import Any, Literal

import optuna
import pytest

from controllers.core.actions import Stop
from controllers.core.aims import Aims, FurtherObjective
from controllers.core.model import Direction, Phase, Progress, Trial
from controllers.core.policy import dump_state, load_state
from controllers.policies import OptunaPruner
from controllers.policies.kit.settings import PolicyParameterError
from tests.controllers.policies.policy_fakes import node, snapshot, trial

optuna.logging.set_verbosity(optuna.logging.ERROR)
pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
Way = Literal["minimize", "maximize"]
STEPS = 27
SETTINGS: list[dict[str, Any]] = [
    {"pruner": "asha", "min_resource": 1, "reduction_factor": 3},
    {"pruner": "asha"},
    {"pruner": "hyperband", "min_resource": 1, "max_resource": STEPS},
    {"pruner": "median", "n_startup_trials": 3, "n_warmup_steps": 2},
    {"pruner": "percentile", "percentile": 30.0, "n_startup_trials": 2},
    {"pruner": "threshold", "upper": 1.2, "n_warmup_steps": 3},
    {"pruner": "patient", "patience": 2},
    {"pruner": "wilcoxon", "p_threshold": 0.2},
]


def curves(seed: int, trials: int) -> list[list[float]]:
    chance = Random(seed)  # noqa: S311 - curves for a test
    starts = [(chance.uniform(0.1, 2.0), chance.uniform(0.0, 1.0)) for _ in range(trials)]
    return [[low + gain * 0.9**step + chance.gauss(0, 0.05) for step in range(STEPS)] for gain, low in starts]


def by_optuna(settings: dict[str, Any], values: list[list[float]], at_a_time: int, direction: Way) -> list[int]:
    """Return how many steps each trial made in a study of Optuna's; trials make their steps in turn."""
    study = optuna.create_study(study_name="sweep", pruner=OptunaPruner(**settings).make_pruner(), direction=direction)
    made, running = [0] * len(values), dict[int, optuna.Trial]()
    left = list(range(len(values)))
    while left or running:
        while left and len(running) < at_a_time:
            running[left.pop(0)] = study.ask()
        for number, one in list(running.items()):
            value = values[number][made[number]]
            one.report(value, made[number])
            made[number] += 1
            if made[number] == STEPS:
                study.tell(one, value)
                del running[number]
            elif one.should_prune():
                study.tell(one, state=optuna.trial.TrialState.PRUNED)
                del running[number]
    return made


def by_policy(settings: dict[str, Any], values: list[list[float]], at_a_time: int, direction: Way) -> list[int]:
    """Return the same under the policy, which looks after each report and forgets all but its state between."""
    policy = OptunaPruner(**settings)
    state = policy.initial()
    made = [0] * len(values)
    trials: dict[int, Trial] = {}
    left, running, now = list(range(len(values))), list[int](), 0.0
    while left or running:
        while left and len(running) < at_a_time:
            running.append(left.pop(0))
            trials[running[-1]] = trial(f"t{running[-1]:03}", "w1", direction=Direction(direction))
        for number in list(running):
            now += 1.0
            series = values[number][: made[number] + 1]
            progress = Progress(series[0], min(series), series[-1], made[number], now)
            made[number] += 1
            over = made[number] == STEPS
            phase = Phase.SUCCEEDED if over else Phase.RUNNING
            trials[number] = replace(trials[number], progress=progress, phase=phase)
            decision = policy.decide(snapshot(now, trials.values(), [node("w1")]), state)
            state = load_state(policy, dump_state(policy, decision.state))
            stopped = {str(one.action.trial) for one in decision.proposals if isinstance(one.action, Stop)}
            if f"t{number:03}" in stopped:
                trials[number] = replace(trials[number], phase=Phase.STOPPED)
            if over or f"t{number:03}" in stopped:
                running.remove(number)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("at_a_time", [1, 4])
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda one: "-".join(map(str, one.values())))
def test_trials_end_where_optuna_would_end_them(settings: dict[str, Any], at_a_time: int) -> None:
    for seed in range(3):
        values = curves(seed, 12)
        directions: tuple[Way, Way] = ("minimize", "maximize")
        for direction in directions:
            theirs = by_optuna(settings, values, at_a_time, direction)
            assert by_policy(settings, values, at_a_time, direction) == theirs, (seed, direction)


def test_a_trial_that_diverges_is_stopped() -> None:
    policy = OptunaPruner()
    sick = trial("a", "w1", diverged=True, progress=Progress(1.0, 1.0, 1.0, 3, 1.0))
    decision = policy.decide(snapshot(2.0, [sick], [node("w1")]), policy.initial())
    assert [one.action for one in decision.proposals] == [Stop(sick.id, "its objective is NaN or infinite")]


def test_trials_are_compared_with_those_of_their_own_sweep_only() -> None:
    policy = OptunaPruner(pruner="median", n_startup_trials=1)
    low = trial("low.a", sweep="low", phase=Phase.SUCCEEDED, progress=Progress(0.1, 0.1, 0.1, 0, 1.0))
    high = trial("high.a", sweep="high", phase=Phase.SUCCEEDED, progress=Progress(500.0, 500.0, 500.0, 0, 1.0))
    worse = [
        trial("low.b", "w1", sweep="low", progress=Progress(0.9, 0.9, 0.9, 0, 2.0)),
        trial("high.b", "w1", sweep="high", progress=Progress(400.0, 400.0, 400.0, 0, 2.0)),
    ]
    state, stopped = policy.initial(), list[str]()
    for now, trials in ((1.0, [low, high]), (2.0, [low, high, *worse])):
        decision = policy.decide(snapshot(now, trials, [node("w1")]), state)
        stopped = [str(one.action.trial) for one in decision.proposals]
        state = load_state(policy, dump_state(policy, decision.state))
    assert stopped == ["low.b"]


def reports(*told: tuple[int, float], steps_total: int) -> list[Progress]:
    return [
        Progress(
            told[0][1], min(value for _, value in told[:n]), told[n - 1][1], told[n - 1][0], float(n), None, steps_total
        )
        for n in range(1, len(told) + 1)
    ]


def test_trials_that_were_seen_at_other_steps_are_compared_all_the_same() -> None:
    policy = OptunaPruner(pruner="median", n_startup_trials=1)
    state = policy.initial()
    good = reports((3, 0.5), (9, 0.1), steps_total=10)
    bad = reports((5, 0.9), steps_total=10)
    looks = [
        [trial("good", "w1", progress=good[0])],
        [trial("good", phase=Phase.SUCCEEDED, progress=good[1]), trial("bad", "w1", progress=bad[0])],
    ]
    for now, trials in enumerate(looks):
        decision = policy.decide(snapshot(float(now), trials, [node("w1")]), state)
        state = decision.state
    assert [str(one.action.trial) for one in decision.proposals] == ["bad"]


def test_of_a_long_training_the_state_keeps_a_hundred_values() -> None:
    policy = OptunaPruner()
    state = policy.initial()
    for one in reports(*((step, 1.0 / step) for step in range(1, 200_000, 997)), steps_total=200_000):
        state = policy.decide(snapshot(one.at, [trial("a", "w1", progress=one)], [node("w1")]), state).state
    values = next(iter(state.trials.values())).values
    assert [step for step, _ in values] == list(range(0, 200_000, 2000))[: len(values)]
    assert len(values) == 100


def test_a_trial_that_leaves_its_node_or_has_reported_nothing_is_left_alone() -> None:
    policy = OptunaPruner(pruner="threshold", upper=0.5)
    bad = Progress(9.0, 9.0, 9.0, 3, 1.0)
    moving, new = trial("a", "w1", phase=Phase.MOVING, progress=bad), trial("b", "w1")
    assert not policy.decide(snapshot(2.0, [moving, new], [node("w1")]), policy.initial()).proposals


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({"pruner": "best"}, "one of asha, hyperband"),
        ({"pruner": "median", "min_resource": 3}, "min_resource"),
        ({"pruner": "threshold"}, "lower or upper"),
        ({"pruner": "percentile"}, "percentile"),
        ({"pruner": "asha", "reduction_factor": 1}, "reduction_factor must be"),
    ],
)
def test_settings_that_the_pruner_does_not_take_are_refused(settings: dict[str, Any], shown: str) -> None:
    with pytest.raises(PolicyParameterError, match=shown):
        OptunaPruner(**settings)


@pytest.mark.filterwarnings("ignore:WilcoxonPruner finds steps")
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda one: "-".join(map(str, one.values())))
@pytest.mark.parametrize("told", [None, 1, 300], ids=str)
def test_a_training_that_reports_more_steps_than_it_told_costs_what_is_kept_of_it(
    settings: dict[str, Any], told: int | None
) -> None:
    policy = OptunaPruner(**settings)
    state, ended = policy.initial(), trial("old", phase=Phase.SUCCEEDED, progress=Progress(0.1, 0.1, 0.1, 99, 1.0))
    steps = [0, 1, 3, 1_000, 60_000, 200_000_000, 200_000_001, 2**62]
    for now, step in enumerate(steps):
        one = trial("a", "w1", progress=Progress(1.0, 0.5, 0.5, step, float(now), None, told))
        state = policy.decide(snapshot(float(now), [one, ended], [node("w1")]), state).state
        kept = [*state.trials.values(), *(state.ended or ())]
        assert max(len(of.values) for of in kept) <= 2 * 100
        assert len({of.every for of in kept}) == 1
        newest = next(iter(state.trials.values())).values[-1][0]
        assert newest <= step < newest + next(iter(state.trials.values())).every
        state = load_state(policy, dump_state(policy, state))


def test_reports_of_every_step_for_ever_keep_the_spread_of_the_whole_training() -> None:
    policy = OptunaPruner(pruner="median")
    state = policy.initial()
    for step in range(3_000):
        one = trial("a", "w1", progress=Progress(9.0, 1 / (step + 1), 1 / (step + 1), step, float(step)))
        state = policy.decide(snapshot(float(step), [one], [node("w1")]), state).state
    (kept,) = state.trials.values()
    assert 100 <= len(kept.values) <= 200
    assert [step for step, _ in kept.values] == list(range(0, 3_000, kept.every))
    assert kept.values == tuple((step, 1 / (step + 1)) for step, _ in kept.values)


def test_steps_below_zero_and_sweeps_that_succeed_with_them_end_nothing() -> None:
    policy, state = OptunaPruner(pruner="median"), OptunaPruner(pruner="median").initial()
    for phase in (Phase.RUNNING, Phase.SUCCEEDED):
        odd = trial("a", "w1", phase=phase, progress=Progress(1.0, 1.0, 1.0, -5, 1.0))
        state = policy.decide(snapshot(1.0, [odd, trial("b", "w1")], [node("w1")]), state).state
    assert [one.over for one in state.ended or ()] == [True]


@pytest.mark.parametrize("settings", [{"min_early_stopping_rate": 10**9}, {"reduction_factor": 10**30}])
def test_settings_that_would_make_numbers_of_gigabytes_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(PolicyParameterError, match=next(iter(settings))):
        OptunaPruner(pruner="asha", **settings)


def test_of_a_sweep_of_several_objectives_no_trial_is_pruned() -> None:
    policy, bad = OptunaPruner(pruner="threshold", upper=1.0), Progress(2.0, 2.0, 2.0, 1, 1.0)
    one = replace(trial("t000", "w1"), progress=bad)
    assert policy.decide(snapshot(1.0, [one], [node("w1")]), policy.initial()).proposals
    several = replace(one, aims=Aims((FurtherObjective("latency", Direction.MINIMIZE),)))
    assert not policy.decide(snapshot(1.0, [several], [node("w1")]), policy.initial()).proposals
