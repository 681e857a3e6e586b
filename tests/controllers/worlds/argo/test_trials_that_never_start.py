"""A trial that waits for room is stopped without ever starting; its step ends well by a pod that trains nothing."""

from controllers.core import labels
from controllers.core.actions import Place, Stop, Suspend
from controllers.core.model import Phase, TrialId
from controllers.core.ports import OutcomeKind
from controllers.core.stop_rules import rules_of
from tests.controllers.worlds.argo.conftest import Bench
from tests.controllers.worlds.argo.objects import over, pod, steps, template, trial, workflow

A = TrialId(trial("a"))
STOP_MARK = "hera-specon.io/stop-sweep-a"


def marks(bench: Bench) -> dict[str, str]:
    return dict(bench.fake.store.objects["workflows"]["sweeps/sweep-x"]["metadata"]["annotations"])


def test_a_pod_that_waits_for_room_makes_way_for_one_that_only_ends(bench: Bench) -> None:
    bench.put("workflows", workflow(steps("a", "Running", ("", None))))
    bench.put("pods", pod(uid="first"))
    bench.begin()
    assert bench.trial().phase is Phase.PENDING
    assert bench.world.apply(Suspend(A)).kind is OutcomeKind.REFUSED
    assert bench.world.apply(Stop(A, "sweep ended: 3 h have passed")).done
    bench.until(lambda: bench.pod() is None)
    assert marks(bench)[STOP_MARK] == "sweep ended: 3 h have passed"
    assert bench.pods.commands == []
    bench.put("pods", over(0, attempt=1, on="n1", uid="second"))
    bench.put("workflows", _ended(bench))
    bench.until(lambda: bench.trial().phase is Phase.STOPPED)
    (result,) = (one for one in bench.world.results({}) if one.id == "sweep.a")
    assert (result.succeeded, result.stopped) == (True, "sweep ended: 3 h have passed")


def test_where_nobody_may_evict_it_never_trains_but_leaves_as_soon_as_it_runs(bench: Bench) -> None:
    bench.fake.denied = {"eviction"}
    bench.put("workflows", workflow(steps("a", "Running", ("", None))))
    bench.put("pods", pod(uid="first"))
    bench.begin()
    assert bench.world.apply(Stop(A, "enough")).done
    bench.settle()
    assert bench.trial().phase is Phase.STOPPING
    bench.put("pods", pod(on="n1", uid="first"))
    bench.until(lambda: bench.pods.commands)


def test_a_pod_that_has_a_node_and_is_about_to_start_is_stopped_once_it_runs(bench: Bench) -> None:
    bench.put("pods", pod(on="n1", uid="first", state="waiting"))
    bench.begin()
    assert bench.trial().phase is Phase.PENDING
    assert bench.world.apply(Stop(A, "enough")).kind is OutcomeKind.REFUSED
    bench.put("pods", pod(on="n1", uid="first"))
    bench.until(lambda: bench.trial().steady)
    assert bench.world.apply(Stop(A, "enough")).done


def test_a_stopped_trial_gets_no_place(bench: Bench) -> None:
    bench.put("pods", pod(uid="first", gated=True))
    bench.begin()
    assert bench.world.apply(Stop(A, "enough")).done
    assert bench.world.apply(Place(A)).kind is not OutcomeKind.DONE


def test_the_rules_of_each_sweep_come_with_its_campaign(bench: Bench) -> None:
    rules = rules_of(value=0.01)
    written = template("a")
    written["metadata"]["annotations"][labels.ANNOTATION_END_WHEN] = rules.model_dump_json()
    bench.put("workflows", workflow(templates=[written]))
    bench.begin()
    (campaign,) = bench.view.campaigns("default")
    assert campaign.stops == {"sweep": rules}


def _ended(bench: Bench) -> dict[str, object]:
    made = workflow(steps("a", "Succeeded", ("", None), ("n1", "0")))
    made["metadata"]["annotations"] = marks(bench)
    return made
