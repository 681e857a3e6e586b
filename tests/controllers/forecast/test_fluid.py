import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.devices import Devices
from controllers.forecast.fluid import ends
from controllers.forecast.model import Course, FluidModel, Job, ModelNode
from controllers.policies.kit.device_paces import DeviceSpeeds

TWO_CORES = ModelNode(2.0, 2.0, math.inf)


def there(node: int = 0, *, moves: int = 0) -> Job:
    return Job(1.0, 0.0, node, 0.0, moves)


def waiting(cpu: float = 1.0, at: float | None = 0.0) -> Job:
    return Job(cpu, 0.0, None, at)


def course(
    works: list[float], most: float = 8.0, weights: list[float] | None = None, contention: float = 0.0
) -> Course:
    return Course(works, [most] * len(works), weights or [1.0] * len(works), [0.0, 1.0], contention=contention)


def test_a_trial_that_ends_leaves_its_cores_to_the_others_of_its_node() -> None:
    model = FluidModel([there(), there()], [TWO_CORES])

    # Both have one core for 10 s; then the longer one has two for its other 20 core seconds.
    assert ends(model, course([10.0, 30.0])) == pytest.approx([10.0, 20.0])


def test_cores_go_by_weight_but_to_no_trial_more_than_it_can_use() -> None:
    model = FluidModel([there(), there()], [TWO_CORES])

    assert ends(model, course([15.0, 5.0], weights=[3.0, 1.0])) == pytest.approx([10.0, 10.0])
    assert ends(model, Course([10.0, 10.0], [0.5, 8.0], [1.0, 1.0], [0.0])) == pytest.approx([20.0, 10 / 1.5])


def test_where_the_shortest_go_first_it_has_all_but_what_everybody_keeps() -> None:
    model = FluidModel([there(), there()], [TWO_CORES], shortest_first=True, calm_at=math.inf)
    short, long = ends(model, course([10.0, 30.0]))

    assert short == pytest.approx(10 / 1.95)
    assert long == pytest.approx(20.0)


def test_a_trial_that_would_end_the_sweep_keeps_what_it_needs_beside_shorter_ones() -> None:
    jobs, works = [there() for _ in range(5)], [10.0, 10.0, 10.0, 10.0, 40.0]
    in_line = ends(FluidModel(jobs, [TWO_CORES], shortest_first=True, calm_at=math.inf), course(works, most=1.0))
    kept = ends(FluidModel(jobs, [TWO_CORES], shortest_first=True), course(works, most=1.0))

    assert max(kept) < max(in_line) - 5
    assert max(kept) == pytest.approx(40.0, rel=0.05)


def test_a_trial_that_waits_starts_where_room_is_freed() -> None:
    model = FluidModel([there(), waiting(2.0)], [ModelNode(2.0, 1.0, math.inf)])

    assert ends(model, course([10.0, 10.0])) == pytest.approx([5.0, 10.0])


def test_a_small_trial_overtakes_one_that_does_not_fit() -> None:
    model = FluidModel([there(), waiting(2.0), waiting(1.0)], [ModelNode(2.0, 1.0, math.inf)])
    _, large, small = ends(model, course([20.0, 10.0, 10.0]))

    assert small == pytest.approx(10.0)
    assert large == pytest.approx(20.0)


def test_a_trial_that_comes_later_slows_the_others_down_from_then_on() -> None:
    model = FluidModel([there(), waiting(at=5.0)], [ModelNode(2.0, 1.0, math.inf)])

    assert ends(model, course([20.0, 20.0])) == pytest.approx([15.0, 20.0])


def test_a_trial_that_is_held_back_comes_when_another_ends() -> None:
    model = FluidModel([there(), waiting(at=None)], [ModelNode(2.0, 1.0, math.inf)])

    assert ends(model, course([20.0, 20.0])) == pytest.approx([10.0, 20.0])


def test_an_idle_node_draws_a_trial_from_a_crowded_one_if_trials_move() -> None:
    rooms = [TWO_CORES, TWO_CORES]
    still = ends(FluidModel([there(), there()], rooms, move_s=2.0), course([40.0, 40.0]))
    moved = ends(FluidModel([there(moves=1), there(moves=1)], rooms, move_s=2.0), course([40.0, 40.0]))

    assert still == pytest.approx([40.0, 40.0])
    assert sorted(moved) == pytest.approx([20.0, 22.0])


def test_a_trial_moves_only_as_often_as_it_may_and_not_when_it_is_nearly_done() -> None:
    rooms = [TWO_CORES, TWO_CORES]

    assert ends(FluidModel([there(moves=1), there(moves=1)], rooms, move_s=30.0), course([40.0, 40.0])) == [40.0, 40.0]


def test_trials_that_slow_each_other_down_are_faster_once_they_are_alone() -> None:
    model = FluidModel([there(), there()], [TWO_CORES])

    # 1 / 1.25 of a core each for 12.5 s, then two cores.
    assert ends(model, course([10.0, 30.0], contention=0.25)) == pytest.approx([12.5, 22.5])


def test_a_trial_that_fits_nowhere_never_ends() -> None:
    assert ends(FluidModel([waiting(3.0)], [TWO_CORES]), course([1.0])) == [math.inf]


@given(
    st.lists(st.tuples(st.floats(0.01, 1e4), st.floats(0.01, 8.0), st.booleans()), min_size=1, max_size=12),
    st.booleans(),
)
def test_no_cores_are_made_up_and_none_wasted(jobs: list[tuple[float, float, bool]], shortest_first: bool) -> None:  # noqa: FBT001
    works, mosts, placed = zip(*jobs, strict=True)
    model = FluidModel(
        [there() if here else waiting(0.1) for here in placed],
        [ModelNode(4.0, 4.0, math.inf)],
        shortest_first=shortest_first,
    )
    found = ends(model, Course(works, mosts, [1.0] * len(works), [0.0]))

    bound = max(sum(works) / 4.0, *(work / min(most, 4.0) for work, most in zip(works, mosts, strict=True)))
    assert max(found) >= bound * (1 - 1e-6)
    assert max(found) <= sum(work / min(most, 4.0) for work, most in zip(works, mosts, strict=True)) * (1 + 1e-6)


GPU = Devices.of({"nvidia.com/gpu": 1})
UNLIKE = DeviceSpeeds({"fast": 1.0, "slow": 2.5})


def with_gpus(model: str, free: int = 0, replicas: int = 1) -> ModelNode:
    shared = GPU * replicas if replicas > 1 else Devices()
    return ModelNode(8.0, 8.0, math.inf, GPU * free, model=model, replicas=shared, to_share=1.0 if replicas > 1 else 0)


def holding(node: int | None) -> Job:
    return Job(1.0, 0.0, node, 0.0, devices=GPU)


def test_a_trial_takes_as_much_longer_on_a_slow_device_as_that_is_slower_and_one_without_does_not() -> None:
    model = FluidModel([holding(0), holding(1), there(1)], [with_gpus("fast"), with_gpus("slow")], speeds=UNLIKE)

    assert ends(model, course([10.0, 10.0, 10.0], most=1.0)) == pytest.approx([10.0, 25.0, 10.0])


def test_trials_that_share_a_device_slow_each_other_by_what_they_want_of_its_time_until_one_ends() -> None:
    jobs, shared = [holding(0), holding(0)], [with_gpus("fast", replicas=2)]

    for use, ending in ((1.0, [20.0, 40.0]), (0.75, [15.0, 35.0]), (0.5, [10.0, 30.0])):
        model = FluidModel(jobs, shared, speeds=DeviceSpeeds(use=use))
        assert ends(model, course([10.0, 30.0], most=1.0)) == pytest.approx(ending)


def test_where_the_shortest_go_first_the_fastest_device_that_is_free_is_taken_and_elsewhere_the_roomiest_node() -> None:
    rooms = [with_gpus("slow", 1), replace(with_gpus("fast", 1), cpu=4.0)]

    for shortest_first, ending in ((True, 10.0), (False, 25.0)):
        model = FluidModel([holding(None)], rooms, shortest_first=shortest_first, speeds=UNLIKE)
        assert ends(model, course([10.0], most=1.0)) == pytest.approx([ending])


def test_the_longest_moves_to_a_faster_device_once_nobody_holds_that_if_it_gains_more_than_the_move_costs() -> None:
    jobs = [replace(holding(node), moves=1) for node in (0, 1, 1)]
    rooms = [with_gpus("fast"), with_gpus("slow")]
    model = FluidModel(jobs, rooms, speeds=UNLIKE, move_s=2.0)

    # At 10 s the longest has done 4 of 40; it goes on at 12 s. The other ends where it is: it would gain less later.
    assert ends(model, course([10.0, 16.0, 40.0], most=1.0)) == pytest.approx([10.0, 40.0, 48.0])
    stays = ends(model, replace(course([10.0, 16.0, 40.0], most=1.0), moves=False))
    assert stays == pytest.approx([10.0, 40.0, 100.0])
