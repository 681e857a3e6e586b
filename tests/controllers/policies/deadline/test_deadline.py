"""Worked examples of the deadline policy. Every trial here makes one step per core second."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.actions import Decision, Place
from controllers.core.model import Goals, Node, Phase, Progress, Snapshot, Trial
from controllers.policies import Deadline, Edf
from controllers.policies.deadline.forecast import Prospect, TrialOutlook, outlook, share_reason
from controllers.policies.deadline.sharing import together
from controllers.policies.kit.paces import Pace
from tests.controllers.policies.policy_fakes import moves, node, resizes, run, snapshot, trial

NODE = node("n", 4.0)
EXACT = Deadline(margin=0.0, interval=10, floor=0.1, min_change=0.0, move_cost=20)


def training(  # noqa: PLR0913 - a trial in a story
    name: str,
    now: float,
    *,
    deadline: float | None,
    steps: int = 100,
    cpu: float = 1.0,
    use: float | None = None,
    on: str = "n",
    **changes: Any,  # noqa: ANN401 - any field of Trial
) -> Trial:
    """A trial that has used ``use`` cores (its share where not told) since 0 and made as many steps."""
    used = (cpu if use is None else use) * now
    progress = Progress(1.0, 0.5, 0.5, int(used), now, used, steps_total=steps)
    given = {"cpu": cpu, "goals": Goals(deadline_at=deadline), "progress": progress, **changes}
    return trial(name, on, **given)


def story(*trials: dict[str, Any], nodes: Sequence[Node] = (NODE,), until: float = 20.0) -> list[Snapshot]:
    times = [10.0 * number for number in range(int(until / 10) + 1)]
    return [snapshot(now, [training(now=now, **about) for about in trials], nodes) for now in times]


def last(policy: Deadline, snapshots: list[Snapshot]) -> Decision[Any]:
    return run(policy, snapshots)[-1]


def outlooks(decision: Decision[Any]) -> dict[str, str]:
    return {name: found.outlook for name, found in decision.assessments.items()}


def test_a_trial_gets_the_fewest_cores_that_keep_its_deadline() -> None:
    # 80 steps are left for 40 s.
    decision = last(EXACT, story({"name": "a", "deadline": 60.0}))
    assert resizes(decision) == {"a": pytest.approx(2.0)}
    assert outlooks(decision) == {"a": ""}
    assert decision.proposals[0].reason == "deadline in 40 s: 2 cores do for its 80 steps"


def test_the_margin_aims_before_the_deadline() -> None:
    # A tenth of 60 s is kept: 80 steps in 34 s.
    decision = last(Deadline(margin=0.1, min_change=0.0), story({"name": "a", "deadline": 60.0}))
    assert resizes(decision)["a"] == pytest.approx(80 / 34)


def test_less_than_linear_speed_asks_for_more_cores() -> None:
    def at(now: float, steps: int, use: float) -> Snapshot:
        progress = Progress(1.0, 0.5, 0.5, steps, now, use, steps_total=130)
        return snapshot(now, [training("a", now, deadline=70.0, progress=progress, cpu=2.0)], [NODE])

    # With 1 core 1 step a second, with 2 cores 1.5: further cores bring 0.5 each. 100 steps are left for 50 s.
    decision = run(EXACT, [at(0, 0, 0), at(10, 10, 10), at(20, 25, 30)])[-1]
    assert resizes(decision)["a"] == pytest.approx(2 + (105 / 50 - 1.5) / 0.5)


def test_a_deadline_out_of_reach_is_told_early_and_gives_way() -> None:
    trials = ({"name": "a", "deadline": 120.0, "steps": 2000}, {"name": "b", "deadline": 60.0, "steps": 140})
    decision = last(EXACT, story(*trials, nodes=[NODE]))
    assert resizes(decision) == {"a": pytest.approx(0.1), "b": pytest.approx(3.0)}
    told = outlooks(decision)
    assert told == {"a": "will miss its deadline by 7 min at the most it can get (4 cores)", "b": ""}


def test_who_is_late_keeps_a_part_of_what_it_asked_for_but_never_stops() -> None:
    for base_cpu, left in ((0.4, 0.04), (0.01, 0.005)):
        decision = last(EXACT, story({"name": "a", "deadline": 120.0, "steps": 2000, "base_cpu": base_cpu}))
        assert resizes(decision) == {"a": pytest.approx(left)}


def test_of_deadlines_that_cannot_all_be_kept_the_most_demanding_is_given_up() -> None:
    trials = [{"name": name, "deadline": 60.0, "steps": steps} for name, steps in (("a", 100), ("b", 90), ("c", 110))]
    decision = last(EXACT, story(*trials))
    assert resizes(decision)["c"] == pytest.approx(0.1)
    assert {"a", "b"} == {name for name, cpu in resizes(decision).items() if cpu > 1.5}
    assert outlooks(decision)["c"].startswith("will miss its deadline by 14 min with the 0.1 cores")


def test_requests_leave_room_for_who_comes() -> None:
    decision = last(EXACT, story({"name": "a", "deadline": 220.0, "cpu": 4.0, "steps": 180}))
    assert resizes(decision) == {"a": pytest.approx(0.5)}


def test_a_trial_without_a_deadline_gets_what_others_leave() -> None:
    trials = ({"name": "a", "deadline": 60.0, "steps": 170}, {"name": "b", "deadline": None})
    decision = last(EXACT, story(*trials))
    assert resizes(decision) == {"a": pytest.approx(3.75), "b": pytest.approx(0.25)}
    assert outlooks(decision) == {"a": "", "b": ""}


def test_a_trial_that_never_tells_its_steps_is_named_with_what_to_do() -> None:
    def at(now: float) -> Snapshot:
        progress = Progress(1.0, 0.5, 0.5, int(now), now, now)
        return snapshot(now, [training("a", now, deadline=60.0, progress=progress)], [NODE])

    told = outlooks(run(EXACT, [at(0.0), at(10.0)])[-1])["a"]
    assert told.startswith("its end can't be foreseen: it never said how many steps it makes")
    assert "specon.steps_total" in told


def test_a_report_that_is_too_old_changes_nothing() -> None:
    seen = story({"name": "a", "deadline": 400.0, "steps": 400})
    old = [snapshot(20.0 + 10 * n, seen[-1].trials, [NODE]) for n in range(1, 20)]
    decisions = run(EXACT, [*seen, *old])
    assert resizes(decisions[-1]) == {}
    assert decisions[-1].assessments[seen[-1].trials[0].id].outlook == ""


def test_a_trial_moves_where_its_deadline_can_be_kept_in_spite_of_the_move() -> None:
    trials = [{"name": name, "deadline": 80.0, "steps": 160} for name in ("a", "b")]
    crowded = story(*trials, nodes=[NODE, node("m", 4.0)])
    decision = last(EXACT, crowded)
    # 140 steps are left for 60 s: 2.33 cores each. One stays; 140 in 40 s need 3.5 on the other node.
    assert moves(decision) == [("b", "m")]
    assert decision.proposals[-1].reason == "deadline: m has the 3.5 cores that keep it in 60 s"
    dear = last(EXACT.model_copy(update={"move_cost": 50.0}), crowded)
    assert moves(dear) == []


def test_a_trial_moves_once_and_again_only_where_that_failed() -> None:
    pair, nodes = [{"name": name, "deadline": 80.0, "steps": 160} for name in ("a", "b")], [NODE, node("m", 4.0)]
    later = [training(name, 30.0, deadline=80.0, steps=400) for name in ("a", "b")]
    failed = [later[0], replace(later[1], attempt=2)]
    arrived = [replace(one, nodes=(nodes[1].name,), attempt=2) for one in later]
    for what_came_of_it, again in ((failed, [("b", "m")]), (arrived, [("a", "n")])):
        decisions = run(EXACT, [*story(*pair, nodes=nodes), snapshot(30.0, what_came_of_it, nodes)])
        assert [moves(decision) for decision in decisions[-2:]] == [[("b", "m")], again]


def waiting(name: str, deadline: float | None, cpu: float = 1.0) -> Trial:
    return trial(
        name, cpu=cpu, phase=Phase.PENDING, gated=True, attempt=0, workers=1, goals=Goals(deadline_at=deadline)
    )


LATE: dict[str, Any] = {"deadline": 30.0, "steps": 500, "cpu": 0.5}


def test_who_is_late_in_any_case_goes_to_an_idle_node_the_one_with_the_most_to_do_first() -> None:
    trials = ({"name": "a", **LATE}, {"name": "b", **LATE, "steps": 700}, {"name": "c", **LATE})
    decision = last(EXACT, story(*trials, nodes=[NODE, node("m", 4.0)]))
    assert moves(decision) == [("b", "m")]
    assert "b" not in resizes(decision)
    assert {one.reason for one in decision.proposals if one.action.trial == "b"} == {"late in any case: m is idle"}
    paused = trial("w", phase=Phase.PENDING, gated=True, withheld=True)
    beside = [replace(one, trials=(*one.trials, paused)) for one in story(*trials, nodes=[NODE, node("m", 4.0)])]
    assert moves(last(EXACT, beside)) == [("b", "m")]


@pytest.mark.parametrize(
    "why_not",
    [
        pytest.param({"trials": [{"name": "a", **LATE}]}, id="it is alone"),
        pytest.param(
            {"trials": [{"name": "a", **LATE, "steps": 50}, {"name": "b", **LATE, "steps": 50}]}, id="too short"
        ),
        pytest.param({"nodes": [NODE]}, id="no other node"),
        pytest.param({"nodes": [NODE, replace(node("m", 4.0), ready=False)]}, id="it is not ready"),
        pytest.param({"waiting": trial("w", phase=Phase.PENDING, gated=True)}, id="another waits for it"),
        pytest.param({"waiting": trial("w", phase=Phase.PENDING)}, id="another may be about to start there"),
        pytest.param({"waiting": training("w", 20.0, deadline=None, on="m")}, id="it is not idle"),
        pytest.param(
            {"waiting": trial("w", "n", phase=Phase.MOVING, destination=("m",))}, id="another is on its way there"
        ),
    ],
)
def test_who_is_late_stays_where_it_is_unless_a_node_is_idle_and_it_has_time_to_win(why_not: dict[str, Any]) -> None:
    told: dict[str, Any] = {"trials": [{"name": "a", **LATE}, {"name": "b", **LATE}], "nodes": [NODE, node("m", 4.0)]}
    told |= why_not
    snapshots = story(*told["trials"], nodes=told["nodes"])
    if "waiting" in told:
        snapshots = [replace(one, trials=(*one.trials, told["waiting"])) for one in snapshots]
    assert moves(last(EXACT, snapshots)) == []


@pytest.mark.parametrize("policy", [EXACT, Edf()], ids=["deadline", "edf"])
def test_waiting_trials_start_in_the_order_of_their_deadlines_where_there_is_room(policy: Any) -> None:  # noqa: ANN401
    crowd = [waiting("a", None), waiting("b", 90.0), waiting("c", 50.0), waiting("d", 70.0, cpu=9.0)]
    decision = policy.decide(snapshot(0.0, crowd, [node("n", 2.0)]), policy.initial())
    placed = [p.action for p in decision.proposals]
    assert placed == [Place(crowd[2].id, (NODE.name,)), Place(crowd[1].id, (NODE.name,))]


def test_who_waits_is_told_so() -> None:
    crowd = [waiting("a", 300.0, cpu=9.0), waiting("b", None, cpu=9.0), waiting("c", -30.0, cpu=9.0)]
    decision = EXACT.decide(snapshot(0.0, crowd, [NODE]), EXACT.initial())
    assert outlooks(decision) == {
        "a": "waits for room",
        "b": "",
        "c": "waits for room",
    }


demands = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 60)), min_size=1, max_size=9)


@given(demands, st.integers(1, 4))
def test_no_more_deadlines_can_be_kept_together_than_are(jobs: list[tuple[int, int]], cores: int) -> None:
    """Against every subset, each trial being able to use all cores."""
    linear = Pace(points=((float(cores), 1.0 * cores),))
    forecasts = [
        TrialOutlook(
            training(f"t{n}", 0.0, deadline=left), Prospect.WITHIN_REACH, linear, cores, left, steps, steps / cores
        )
        for n, (steps, left) in enumerate(jobs)
    ]
    best = max(
        len(chosen)
        for picked in range(2 ** len(forecasts))
        if keepable(chosen := [one for n, one in enumerate(forecasts) if picked >> n & 1], cores)
    )
    kept = together(forecasts, cores)
    assert keepable(kept, cores)
    assert len(kept) == best


def keepable(chosen: list[TrialOutlook], cores: int) -> bool:
    done = 0
    for one in sorted(chosen, key=lambda one: one.left):
        done += one.steps
        if done > cores * one.left:
            return False
    return True


@pytest.mark.parametrize("left", [1e9, 1e300])
def test_durations_beyond_a_life_of_training_are_told_without_their_digits(left: float) -> None:
    known = Pace(points=((1.0, 1.0),))
    never = TrialOutlook(trial("t", "n"), Prospect.OUT_OF_REACH, known, 1.0, 60.0, 1, math.inf)
    assert outlook(never, 1.0, given_up=False) == "will miss its deadline by years at the most it can get (1 cores)"
    far = TrialOutlook(trial("t", "n"), Prospect.WITHIN_REACH, known, 1.0, left, 2, 2.0)
    assert share_reason(far, given_up=False) == "deadline in years: 1 cores do for its 2 steps"
