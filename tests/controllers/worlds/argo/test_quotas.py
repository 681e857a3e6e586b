"""ResourceQuota and LimitRange: shares and next attempts that they allow, and where nobody may read them."""

import pytest

from controllers.core.actions import Migrate, Resize, Suspend
from controllers.core.model import NodeName, TrialId
from tests.controllers.worlds.argo.conftest import Bench
from tests.controllers.worlds.argo.objects import over, pod, steps, trial, workflow
from tests.controllers.worlds.argo.objects_of_limits import limit_range, quota
from tests.controllers.worlds.argo.test_resize import request

A, B = TrialId(trial("a")), TrialId(trial("b"))
SHRUNK = {"hera-specon.io/base-cpu": "0.5"}


def known(bench: Bench) -> bool:
    """Whether the view has read the quotas and ranges that there are."""
    there = [len(bench.fake.store.objects[kind]) for kind in ("resourcequotas", "limitranges")]
    return list(map(len, bench.view.limits("sweeps"))) == there


def begin(bench: Bench, *limits: tuple[str, dict[str, object]]) -> None:
    for collection, item in limits:
        bench.put(collection, item)
    bench.begin()
    bench.until(lambda: known(bench))
    bench.settle()


def test_a_share_rises_only_by_what_the_quota_has_left(bench: Bench) -> None:
    bench.put("pods", pod(on="n1"))
    begin(bench, ("resourcequotas", quota({"requests.cpu": "800m"}, requests_cpu="1")))
    assert bench.world.apply(Resize(A, 0.9)).done
    bench.settle()
    assert request(bench) == "300m"


def test_a_full_quota_lets_shares_fall_and_asks_the_api_server_for_no_rise(bench: Bench) -> None:
    bench.put("pods", pod(on="n1"))
    begin(bench, ("resourcequotas", quota({"cpu": "1"}, cpu="1")))
    assert "quota q of the namespace has 0 cores left" in bench.world.apply(Resize(A, 0.2)).detail
    assert bench.world.apply(Resize(A, 0.05)).done
    bench.settle()
    assert request(bench) == "50m"


def test_two_shares_do_not_rise_into_the_same_room(bench: Bench) -> None:
    bench.put("pods", pod("a", on="n1"))
    bench.put("pods", pod("b", on="n2"))
    begin(bench, ("resourcequotas", quota({"requests.cpu": "800m"}, requests_cpu="1")))
    assert bench.world.apply(Resize(A, 0.3)).done
    assert "has 0 cores left" in bench.world.apply(Resize(B, 0.3)).detail


def test_a_share_that_falls_frees_the_quota_only_once_the_kubelet_has_acted(bench: Bench) -> None:
    bench.put("pods", pod(on="n1", cpu="100m", has="500m", notes=SHRUNK))
    begin(bench, ("resourcequotas", quota({"requests.cpu": "900m"}, requests_cpu="1")))
    assert bench.world.apply(Resize(A, 0.9)).done
    bench.settle()
    assert request(bench) == "600m"


@pytest.mark.parametrize("action", [Migrate(A, (NodeName("n2"),)), Suspend(A)])
def test_a_trial_that_was_given_less_leaves_only_if_its_next_attempt_can_be_made(
    bench: Bench, action: Migrate | Suspend
) -> None:
    bench.put("workflows", workflow(steps("a", "Running", ("n1", None))))
    bench.put("pods", pod(on="n1", cpu="100m", notes=SHRUNK))
    begin(bench, ("resourcequotas", quota({"requests.cpu": "700m"}, requests_cpu="1")))
    assert "quota q has 0.3 requests.cpu left, and this takes 0.4 more" in bench.world.apply(action).detail
    bench.put("resourcequotas", quota({"requests.cpu": "600m"}, requests_cpu="1"))
    bench.until(lambda: bench.world.apply(action).done)


def test_what_a_trial_between_two_attempts_will_request_is_nobody_elses(bench: Bench) -> None:
    record = steps("a", "Running", ("n1", None)) | steps("b", "Running", ("n2", "75"))
    bench.put("workflows", workflow(record))
    bench.put("pods", pod("a", on="n1"))
    bench.put("pods", over(75, "b", on="n2", cpu="150m"))
    begin(bench, ("resourcequotas", quota({"requests.cpu": "800m"}, requests_cpu="1")))
    assert bench.world.apply(Resize(A, 0.9)).done
    bench.settle()
    assert request(bench) == "150m"


def test_a_limit_range_bounds_shares_on_both_sides(bench: Bench) -> None:
    bench.put("pods", pod(on="n1"))
    begin(bench, ("limitranges", limit_range({"type": "Container", "min": {"cpu": "60m"}, "max": {"cpu": "400m"}})))
    assert bench.world.apply(Resize(A, 0.9)).done
    bench.settle()
    assert request(bench) == "400m"
    bench.put("pods", pod(on="n1", cpu="400m"))
    bench.until(lambda: bench.trial().cpu == 0.4)
    assert "LimitRange r allows no more than 0.4 cores" in bench.world.apply(Resize(A, 0.9)).detail
    assert bench.world.apply(Resize(A, 0.01)).done
    bench.settle()
    assert request(bench) == "60m"


def test_where_nobody_may_read_quotas_the_api_server_is_asked(bench: Bench) -> None:
    bench.put("pods", pod(on="n1"))
    bench.put("resourcequotas", quota({"requests.cpu": "1"}, requests_cpu="1"))
    kinds = ("resourcequotas", "limitranges")
    bench.fake.fault = lambda call: (403, "forbidden") if any(kind in call.path for kind in kinds) else None
    bench.begin()
    assert bench.world.apply(Resize(A, 0.9)).done
    bench.settle()
    assert request(bench) == "900m"
