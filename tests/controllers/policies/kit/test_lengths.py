"""How long trials of unknown length are, and what ``ahead`` makes of it."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from controllers.core.actions import Place
from controllers.core.model import Phase, Progress, Snapshot, Trial
from controllers.core.parameters import bound_parameters
from controllers.core.policy import dump_state, load_state
from controllers.policies import Ahead
from controllers.policies.kit.lengths import EstimateSource, Known, Lengths
from controllers.policies.kit.work_left import SweepMeasurements, estimate_work, measure_sweep
from tests.controllers.policies.policy_fakes import node, snapshot, trial

WIDTHS = (32, 64, 96, 128, 160, 256)


def known(steps: float | None, cost: float | None, **parameters: float | str) -> Known:
    return Known(bound_parameters(parameters), steps, cost, 0.1)


SWEEP = [known(100, width / 10, width=width) for width in WIDTHS]
"""A step costs a tenth of the width."""


def test_a_trial_that_told_its_steps_and_cost_is_known_by_its_own_reports() -> None:
    guess = Lengths(SWEEP).left(known(50, 2.0), 20)
    assert (guess.left, guess.spread, guess.source) == (60.0, 0.1, EstimateSource.OWN)
    assert Lengths(SWEEP).left(known(50, 2.0), 60).left == 0.0


def test_a_trial_that_waits_is_guessed_by_its_parameters() -> None:
    guess = Lengths(SWEEP).left(known(None, None, width=512), 0)
    assert guess.left == pytest.approx(5120, rel=0.1)
    assert (guess.source, guess.spread < 0.2) == (EstimateSource.PARAMETERS, True)


def test_where_parameters_explain_nothing_a_trial_is_like_the_others_on_average() -> None:
    sweep = [known(100, cost, width=width) for cost, width in zip((3, 1, 5, 2, 4), WIDTHS, strict=False)]
    guess = Lengths(sweep).left(known(None, None, width=512), 0)
    assert guess.left == pytest.approx(300)
    assert guess.source is EstimateSource.OTHERS
    assert guess.spread == pytest.approx(0.6, abs=0.2)


def test_a_trial_that_told_its_steps_alone_needs_only_the_others_cost() -> None:
    guess = Lengths([known(100, cost) for cost in (2, 2, 2)]).left(known(30, None), 10)
    assert guess.left == pytest.approx(40, rel=0.02)
    assert guess.source is EstimateSource.OTHERS


def test_a_trial_that_never_tells_its_steps_makes_as_many_more_as_those_that_made_more_than_it_has() -> None:
    sweep = [known(steps, 1.0) for steps in (10, 20, 50, 70)]
    guess = Lengths(sweep).left(known(None, 3.0), 40)
    assert guess.left == pytest.approx(3.0 * 20)
    assert guess.source is EstimateSource.OTHERS


def test_steps_that_nobody_tells_follow_from_the_parameters_of_trials_that_have_ended() -> None:
    sweep = [known(epochs * 10, 1.0, epochs=epochs) for epochs in (1, 2, 3, 5)]
    guess = Lengths(sweep).left(known(None, 3.0, epochs=8), 40)
    assert guess.left == pytest.approx(3.0 * 40, rel=0.2)
    assert guess.source is EstimateSource.PARAMETERS


def test_a_trial_that_has_run_longer_than_its_guess_has_a_little_left() -> None:
    sweep = [known(epochs * 10, 1.0, epochs=epochs) for epochs in (1, 2, 3, 5)]
    guess = Lengths(sweep).left(known(None, 1.0, epochs=3), 60)
    assert 0 < guess.left < 10


def test_before_anything_is_known_all_are_equal_and_nothing_is_sure() -> None:
    lengths = Lengths([known(None, None, width=width) for width in WIDTHS])
    guesses = {lengths.left(known(None, None, width=width), 0) for width in WIDTHS}
    assert len(guesses) == 1
    assert guesses.pop().spread == 3.0


def running(name: str, step: int, total: int | None, cost: float, **parameters: float | str) -> Trial:
    """Return a trial on node n that has made ``step`` steps of ``cost`` core seconds, one in two seconds."""
    progress = Progress(1.0, 0.5, 0.5, step, 2.0 * step, step * cost, total)
    return trial(name, "n", progress=progress, parameters=bound_parameters(parameters))


def waiting(name: str, **parameters: float | str) -> Trial:
    return trial(name, phase=Phase.PENDING, attempt=0, gated=True, parameters=bound_parameters(parameters))


def looks(trials: Sequence[Trial], *others: Trial, cores: float = 64.0) -> list[Snapshot]:
    """Return the snapshots of two reports of ``trials``, the second after twice as many steps; ``others`` stand by."""
    first = [*trials, *others]
    later = [
        replace(
            one, progress=replace(told, step=2 * told.step, at=2 * told.at, cpu_seconds=2 * (told.cpu_seconds or 0))
        )
        for one in trials
        if (told := one.progress) is not None
    ]
    at = max(one.progress.at for one in trials if one.progress is not None)
    return [snapshot(at, first, [node("n", cores)]), snapshot(2 * at, [*later, *others], [node("n", cores)])]


def after(snapshots: Sequence[Snapshot]) -> SweepMeasurements:
    known_by_now = SweepMeasurements()
    for one in snapshots:
        known_by_now = measure_sweep(one, known_by_now)
    return known_by_now


def test_a_trial_that_ended_teaches_what_its_parameters_cost() -> None:
    first = looks([running(f"t{width}", 10, 20, width / 10, width=width) for width in WIDTHS])
    memo = after(first)
    ended = [replace(one, phase=Phase.SUCCEEDED, nodes=()) for one in first[-1].trials]
    last = snapshot(60, [*ended, waiting("w", width=512)], [node("n")])
    memo = measure_sweep(last, memo)
    assert memo.trials.keys() == {"w"}
    (estimate,) = estimate_work(last, memo, 1.0).values()
    assert estimate.work == pytest.approx(20 * 51.2, rel=0.1)
    assert estimate.source is EstimateSource.PARAMETERS


def test_a_trial_that_failed_teaches_its_cost_but_not_how_many_steps_trials_make() -> None:
    first = looks([running("t", 10, None, 2.0)])
    failed = [replace(one, phase=Phase.FAILED, nodes=()) for one in first[-1].trials]
    (ended,) = measure_sweep(snapshot(60, failed, [node("n")]), after(first)).ended
    assert (ended.whole, ended.cost) == (False, 2.0)


def test_estimates_of_a_trial_grow_surer_with_its_reports() -> None:
    seen = [running("t", step, 100, 2.0) for step in range(5, 100, 5)]
    snapshots = [snapshot(2.0 * (one.progress.step if one.progress else 0), [one], [node("n")]) for one in seen]
    spreads = [estimate_work(s, after(snapshots[: n + 1]), 1.0)[seen[0].id] for n, s in enumerate(snapshots)]
    sure = [estimate.spread for estimate in spreads if estimate.known]
    assert len(sure) > 10
    assert sure == sorted(sure, reverse=True)
    assert (sure[0] > 0.2, sure[-1] < 0.12) == (True, True)


def test_a_trial_that_moved_is_known_by_what_it_told_before() -> None:
    first = looks([running("t", 10, 100, 2.0)])
    moved = replace(first[-1].trials[0], attempt=2)
    last = snapshot(60, [moved], [node("n")])
    (estimate,) = estimate_work(last, measure_sweep(last, after(first)), 1.0).values()
    assert (estimate.work, estimate.known) == (160.0, True)


def test_a_trial_that_never_tells_its_steps_is_dependable_once_others_have_ended() -> None:
    first = looks([running(f"t{n}", 10, None, 2.0) for n in range(4)])
    before, memo = first[-1], after(first)
    assert not any(one.dependable for one in estimate_work(before, memo, 1.0).values())
    over = [replace(one, phase=Phase.SUCCEEDED, nodes=()) for one in before.trials[:3]]
    left = replace(before.trials[3], progress=Progress(1.0, 0.5, 0.5, 15, 30.0, 30.0))
    last = snapshot(60, [*over, left], [node("n")])
    (estimate,) = estimate_work(last, measure_sweep(last, memo), 1.0).values()
    assert (estimate.dependable, estimate.known) == (True, False)
    assert estimate.work == pytest.approx(5 * 2.0)


def test_hostile_reports_leave_estimates_finite() -> None:
    odd = [running("a", 10, 10**400, 1e300, width=1e300), running("b", 10, -5, 1e-300, width=5e-324)]
    snapshots = looks(odd, waiting("w", width=3))
    for estimate in estimate_work(snapshots[-1], after(snapshots), 0.5).values():
        assert 0 <= estimate.work <= 1e24
        assert 0 < estimate.spread < 10


def decided(policy: Ahead, snapshots: Sequence[Snapshot]) -> tuple[list[str], dict[str, str]]:
    """Return which trials the last decision places, in order, and the outlook of each."""
    state = policy.initial()
    for one in snapshots:
        decision = policy.decide(one, state)
        state = load_state(policy, dump_state(policy, decision.state))
    placed = [proposal.action.trial for proposal in decision.proposals if isinstance(proposal.action, Place)]
    return list(placed), {name: told.outlook for name, told in decision.assessments.items()}


# Of 7 cores the six that run request one each.
ROOM = 7.0


def test_of_trials_that_wait_the_shortest_by_its_parameters_starts_first() -> None:
    six = [running(f"t{width}", 10, 100, width / 10, width=width) for width in WIDTHS]
    snapshots = looks(six, waiting("a", width=100), waiting("b", width=20), waiting("c", width=200), cores=ROOM)
    placed, outlooks = decided(Ahead(end_weight=0), snapshots)
    assert placed == ["b"]
    assert set(outlooks.values()) == {"its length is not known yet: estimated by its parameters"}


def test_a_trial_that_would_end_the_sweep_if_it_waited_starts_first() -> None:
    six = [running(f"t{width}", 10, 100, width / 10, width=width) for width in WIDTHS]
    snapshots = looks(six, waiting("a", width=100), waiting("b", width=20), waiting("c", width=1e5), cores=ROOM)
    assert decided(Ahead(critical=0.1), snapshots)[0] == ["c"]


def test_without_parameters_the_order_is_that_of_submission() -> None:
    six = [running(f"t{width}", 10, 100, width / 10) for width in WIDTHS]
    late, early = replace(waiting("a"), submitted_at=1.0), waiting("b")
    placed, outlooks = decided(Ahead(), looks(six, late, early, cores=ROOM))
    assert placed == ["b"]
    assert set(outlooks.values()) == {"its length is not known yet: estimated by the sweep's other trials"}
