"""What is learnt of devices from the seconds that steps take on them."""

import math
from dataclasses import replace

import pytest

from controllers.core.devices import NO_DEVICES, Devices
from controllers.core.model import Parameters
from controllers.policies.kit.device_paces import (
    KEPT_PACES,
    DevicePace,
    Seen,
    device_speeds,
    model_of,
    shares_held,
    sharing_on,
    with_pace,
)
from controllers.policies.kit.reports import Report
from tests.controllers.policies.policy_fakes import node

T4, A100 = "Tesla-T4", "A100"


def seen(*paces: tuple[str, float, float], parameters: Parameters = (), at: float = 0.0) -> Seen:
    return Seen(parameters, tuple(DevicePace(model, sharing, s, at + n) for n, (model, sharing, s) in enumerate(paces)))


def report(at: float, step: int, cpu: float = 0.0, waited: float | None = None) -> Report:
    return Report(at, step, cpu, waited)


def test_before_anything_is_known_all_devices_are_equally_fast_and_none_is_worth_sharing() -> None:
    known = device_speeds([])
    assert (known.seconds(T4, 1.0), known.unlike, known.worth_sharing, known.at) == (1.0, False, 1, None)


def test_trials_that_were_on_both_models_tell_how_much_slower_one_is_and_how_many_told() -> None:
    known = device_speeds([seen((T4, 1.0, 2.5 * s), (A100, 1.0, s)) for s in (1.0, 3.0, 10.0)])
    assert known.seconds(T4, 1.0) == pytest.approx(2.5, rel=0.05)
    assert known.seconds(A100, 1.0) == 1.0
    assert known.unlike
    assert min(known.told_by.values()) == 3
    assert known.at == 1.0


def test_one_trial_is_believed_less_than_many() -> None:
    one, many = (device_speeds([seen((T4, 1.0, 4.0), (A100, 1.0, 1.0))] * count) for count in (1, 20))
    assert 1 < one.seconds(T4, 1.0) < many.seconds(T4, 1.0) < 4.0


def test_hyperparameters_tell_how_much_slower_a_model_is_where_no_trial_was_on_both() -> None:
    trials = [
        seen((model, 1.0, times * width), parameters=(("width", float(width)),), at=width)
        for model, times, widths in ((T4, 3.0, range(1, 20, 2)), (A100, 1.0, range(2, 21, 2)))
        for width in widths
    ]
    assert device_speeds(trials).seconds(T4, 1.0) == pytest.approx(3.0, rel=0.2)


def test_what_old_trials_told_is_forgotten_when_new_ones_tell_otherwise() -> None:
    old = [seen((T4, 1.0, 4.0), (A100, 1.0, 1.0), at=float(n)) for n in range(64)]
    new = [seen((T4, 1.0, 1.0), (A100, 1.0, 1.0), at=1000.0 + n) for n in range(64)]
    assert device_speeds(old).unlike
    assert not device_speeds([*old, *new]).unlike


@pytest.mark.parametrize(("use", "worth"), [(1.0, 1), (0.8, 1), (0.5, 2), (0.35, 3)])
def test_trials_beside_unlike_numbers_of_others_tell_how_many_are_worth_a_device(use: float, worth: int) -> None:
    slow = {m: max(1.0, use * m) for m in (1, 2, 3, 4)}
    known = device_speeds([seen((T4, 1.0, 2.0), (T4, float(m), 2.0 * slow[m])) for m in (2, 3, 4)])
    assert known.use == pytest.approx(use, abs=0.06)
    assert known.worth_sharing == worth
    assert known.seconds(T4, 4.0) == pytest.approx(slow[4], rel=0.1)


def test_only_one_more_trial_than_was_seen_is_taken_to_be_worth_trying() -> None:
    assert device_speeds([seen((T4, 1.0, 2.0), (T4, 2.0, 2.0))]).worth_sharing == 3


def test_seconds_in_which_a_trial_waited_for_a_cpu_do_not_count_as_the_devices() -> None:
    free = with_pace((), report(0.0, 0, 0.0, 0.0), report(10.0, 10, 4.0, 0.0), T4, 1.0)
    held_back = with_pace((), report(0.0, 0, 0.0, 0.0), report(20.0, 10, 4.0, 10.0), T4, 1.0)
    assert free[-1].seconds == pytest.approx(1.0)
    assert held_back[-1].seconds == pytest.approx(1.0)


def test_a_pace_averages_with_the_one_before_under_like_conditions_and_others_stay() -> None:
    paces = with_pace((DevicePace(T4, 1.0, 1.0, 0.0),), report(0.0, 0), report(4.0, 1), T4, 1.0)
    assert [(pace.model, pace.at) for pace in paces] == [(T4, 4.0)]
    assert paces[0].seconds == pytest.approx(4**0.4)
    other = with_pace(paces, report(4.0, 1), report(5.0, 2), A100, 1.0)
    assert [pace.model for pace in other] == [T4, A100]


def test_a_trial_keeps_only_its_newest_paces_and_repeated_steps_tell_none() -> None:
    paces: tuple[DevicePace, ...] = ()
    for n in range(3 * KEPT_PACES):
        paces = with_pace(paces, report(float(n), n), report(n + 1.0, n + 1), f"model-{n}", 1.0)
    assert len(paces) == KEPT_PACES
    assert with_pace(paces, report(100.0, 50), report(101.0, 50), T4, 1.0) == paces


def test_whatever_a_trial_reports_all_that_follows_is_finite() -> None:
    wild = with_pace((), report(0.0, 0, 0.0, 0.0), report(1e12, 1, 1e12, 1e12), T4, 1.0)
    tiny = with_pace((), report(0.0, 0, 0.0, 0.0), report(1e-6, 10**12, 1e12, 1e12), A100, 1.0)
    known = device_speeds([Seen((), (*wild, *tiny)), Seen((), tiny)])
    assert all(math.isfinite(known.seconds(model, 2.0)) for model in (T4, A100))


def test_devices_that_are_advertised_several_times_count_once_and_unnamed_ones_by_their_node() -> None:
    shared = node(
        "n", devices=Devices.of({"nvidia.com/gpu.shared": 8}), replicas=Devices.of({"nvidia.com/gpu.shared": 4})
    )
    assert [sharing_on(shared, held) for held in (0, 2, 3, 8)] == [1.0, 1.0, 1.5, 4.0]
    cards = Devices.of({"rdma/hca": 63})
    beside = replace(shared, devices=shared.devices + cards)
    assert sharing_on(beside, 8) == 4.0, "network cards are no GPUs to share"
    holds = Devices.of({"nvidia.com/gpu.shared": 1, "rdma/hca": 2})
    assert (shares_held(holds, beside.replicas), shares_held(holds, NO_DEVICES)) == (1, 0)
    assert sharing_on(node("n", devices=Devices.of({"nvidia.com/gpu": 4})), 4) == 1.0
    assert (model_of(shared), model_of(node("n", device_model=T4))) == ("n", T4)
