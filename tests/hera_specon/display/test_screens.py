from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from controllers.core.actions import Assessment
from controllers.core.forecast import EndRange, Forecast
from controllers.core.model import Category, Direction, Node, NodeName, Phase, Progress, Snapshot, Trial, TrialId
from controllers.core.results import RunResult, TrialResult
from hera_specon.display.boards import best_lines
from hera_specon.display.screens import LiveScreen, PlainScreen
from hera_specon.formatting import DASH, cores, figure, params, seconds, short_id, span
from hera_specon.sweep_state import node_rows, tally, trial_rows

N1, N2 = NodeName("node-1"), NodeName("node-2")
NODES = (Node(N1, 2.0, cpu_used=1.5), Node(N2, 2.0))


def trial(name: str, phase: Phase, *, step: int = 0, destination: tuple[NodeName, ...] = (), moves: int = 0) -> Trial:
    return Trial(
        TrialId(name), phase, 0.5, 0.5, 0.0, Direction.MINIMIZE, 0.0,
        nodes=(N1,) if phase in {Phase.RUNNING, Phase.MOVING} else (),
        destination=destination, moves=moves,
        progress=Progress(1.0, 0.25, 0.25, step, 0.0, steps_total=100) if step else None,
    )  # fmt: skip


def at(now: float, *trials: Trial) -> Snapshot:
    return Snapshot(now, trials, NODES)


SNAPSHOT = at(
    65.0,
    trial("a", Phase.SUCCEEDED, step=100),
    trial("b", Phase.PENDING),
    trial("c", Phase.RUNNING, step=40, moves=2),
    trial("d", Phase.MOVING, step=50, destination=(N2,)),
)
JUDGED = {TrialId("c"): Assessment(Category.CONVERGED)}
REASONS = {TrialId("d"): "node-2 is idle"}
RESULT = RunResult("specon", (TrialResult("a", 0.0, 90.0, "node-1", 1, 2, 0.1, succeeded=False),))


def test_trials_at_work_come_before_those_that_wait_or_ended() -> None:
    assert [row.id for row in trial_rows(SNAPSHOT, JUDGED, REASONS)] == ["c", "d", "b", "a"]


def test_a_row_tells_share_progress_moves_and_reason() -> None:
    running, moving, waiting, ended = trial_rows(SNAPSHOT, JUDGED, REASONS)

    assert (running.share, running.done, running.moves, running.category) == (0.25, 0.4, 2, Category.CONVERGED)
    assert (moving.node, moving.reason) == ("node-1 → node-2", "node-2 is idle")
    assert (waiting.share, waiting.done, waiting.node) == (0.0, None, "")
    assert ended.done == 1.0


def test_a_node_tells_what_is_given_and_what_is_used() -> None:
    first, second = node_rows(SNAPSHOT)

    assert (first.given, first.used, first.trials) == (1.0, 1.5, 2)
    assert (second.given, second.trials) == (0.0, 0)


def test_trials_not_yet_submitted_count_too() -> None:
    count = tally(SNAPSHOT, total=9)

    assert (count.total, count.ended, count.running, count.moving) == (9, 1, 1, 1)


def test_plain_lines_tell_moves_at_once_and_progress_now_and_then() -> None:
    lines: list[str] = []
    screen = PlainScreen(lines.append)

    with screen:
        screen.begin("specon", 4, 2, 2)
        screen.observe(at(0.0, trial("d", Phase.RUNNING)), {}, {})
        screen.observe(at(1.0, trial("d", Phase.RUNNING)), {}, {})
        screen.observe(at(2.0, trial("d", Phase.MOVING, destination=(N2,))), {}, REASONS)
        screen.observe(at(12.0, trial("d", Phase.SUCCEEDED)), {}, {})
        screen.end(RESULT)

    assert lines == [
        "policy specon (2 of 2): 4 trials",
        "[0.0 s] 0/4 trials ended, 1 running; time left not known yet",
        "[2.0 s] d moves from node-1 to node-2: node-2 is idle",
        "[12 s] d succeeded",
        "[12 s] 1/4 trials ended, 0 running; time left not known yet",
        "specon: makespan 1 m 30 s, mean completion 1 m 30 s, 1 of 1 trials FAILED",
    ]


def test_plain_lines_name_a_trial_alike_whatever_happens_to_it() -> None:
    lines: list[str] = []
    screen = PlainScreen(lines.append)
    name = "demo-1-00.vae.t007"
    screen.begin("specon", 1, 1, 1)
    screen.observe(at(1.0, trial(name, Phase.MOVING, destination=(N2,))), {}, {})
    screen.observe(at(2.0, trial(name, Phase.SUSPENDING)), {}, {TrialId(name): "its owner asked for it"})
    screen.observe(at(3.0, trial(name, Phase.SUCCEEDED)), {}, {})

    assert [line for line in lines if "t007" in line] == [
        "[1.0 s] vae.t007 moves from node-1 to node-2",
        "[2.0 s] vae.t007 is being suspended: its owner asked for it",
        "[3.0 s] vae.t007 succeeded",
    ]


FORESEEN = Forecast(60.0, EndRange(300.0, 365.0, 480.0), {}, {TrialId("c"): EndRange(95.0, 105.0, 120.0)})


def test_plain_lines_tell_when_the_sweep_will_end_until_all_has_ended() -> None:
    lines: list[str] = []
    screen = PlainScreen(lines.append)
    screen.begin("specon", 1, 1, 1)
    screen.foresee(FORESEEN)
    screen.observe(at(65.0, trial("c", Phase.RUNNING)), {}, {})
    screen.observe(at(80.0, trial("c", Phase.SUCCEEDED)), {}, {})

    assert lines[1] == f"[1 m 05 s] 0/1 trials ended, 1 running; ends in about 5 min (3{DASH}7)"
    assert lines[-1] == "[1 m 20 s] 1/1 trials ended, 0 running"


def test_plain_lines_tell_how_many_cores_others_use_while_trials_lack_them() -> None:
    lines: list[str] = []
    screen = PlainScreen(lines.append)
    screen.begin("specon", 1, 1, 1)
    running = at(65.0, trial("c", Phase.RUNNING))
    screen.observe(replace(running, nodes=(replace(NODES[0], supply=0.7), NODES[1])), {}, {})

    assert lines[1] == "[1 m 05 s] 0/1 trials ended, 1 running; time left not known yet; others use 1.3 of 4 cores"


def test_the_live_view_shows_when_trials_and_sweep_will_end() -> None:
    out = StringIO()
    screen = LiveScreen(Console(file=out, force_terminal=True, width=160, height=40))

    with screen:
        screen.begin("specon", 4, 1, 1)
        screen.foresee(FORESEEN)
        screen.observe(SNAPSHOT, JUDGED, REASONS)

    assert f"ends in about 5 min (3{DASH}7)" in out.getvalue()
    assert f"40 s (30{DASH}55)" in out.getvalue()


def test_a_forecast_is_of_its_policy_only() -> None:
    lines: list[str] = []
    screen = PlainScreen(lines.append)
    screen.foresee(FORESEEN)
    screen.begin("specon", 1, 2, 2)
    screen.observe(at(0.0, trial("c", Phase.RUNNING)), {}, {})

    assert lines[-1].endswith("time left not known yet")


@pytest.mark.parametrize(
    ("left", "told"),
    [
        ((0.0, 3.2, 9.5), f"3 s (0{DASH}10)"),
        ((50.0, 70.0, 130.0), f"70 s (50{DASH}130)"),
        ((240.0, 300.0, 415.0), f"5 min (4{DASH}7)"),
        ((7_900.0, 9_000.0, 11_200.0), f"2.5 h (2.1{DASH}3.2)"),
    ],
)
def test_a_span_reads_well_and_is_never_narrower_than_it_is(left: tuple[float, float, float], told: str) -> None:
    assert span(*left) == told


def test_the_live_view_shows_trials_nodes_messages_and_the_end() -> None:
    out = StringIO()
    screen = LiveScreen(Console(file=out, force_terminal=True, width=140, height=40))

    with screen:
        screen.begin("specon", 4, 1, 2)
        screen.say("MLflow: http://127.0.0.1:5000 [watch it]")
        screen.observe(SNAPSHOT, JUDGED, REASONS)
        screen.end(RESULT)

    shown = out.getvalue()
    for words in ("specon (1 of 2)", "converged", "node-1 → node-2", "node-2 is idle", "[watch it]", "1 m 05 s"):
        assert words in shown
    assert "1 of 1 trials FAILED" in shown


def test_more_trials_than_lines_are_counted() -> None:
    out = StringIO()
    screen = LiveScreen(Console(file=out, force_terminal=True, width=140, height=24))
    many = at(1.0, *(trial(f"t{i:02d}", Phase.RUNNING) for i in range(30)))

    with screen:
        screen.begin("specon", 30, 1, 1)
        screen.observe(many, {}, {})

    assert "and 18 more" in out.getvalue()


@pytest.mark.parametrize(
    ("value", "told"),
    [(0.0, "0.0 s"), (9.94, "9.9 s"), (59.4, "59 s"), (59.6, "1 m 00 s"), (185, "3 m 05 s"), (7_620, "2 h 07 m")],
)
def test_durations_read_well(value: float, told: str) -> None:
    assert seconds(value) == told


def test_what_is_not_known_is_a_dash() -> None:
    assert seconds(None) == seconds(float("nan")) == figure(None)


def test_numbers_are_short() -> None:
    assert (cores(2.0), cores(0.456), cores(10.0)) == ("2", "0.46", "10")
    assert params({"lr": 0.0123456, "units": 64, "net": "gru"}) == "lr=0.01235 units=64 net=gru"


def test_a_trial_is_called_without_its_run() -> None:
    assert (short_id("demo-1-00.vae.t007"), short_id("vae.t007"), short_id("a")) == ("vae.t007", "vae.t007", "a")


def test_the_best_value_so_far_is_told_with_its_trial_and_hyperparameters() -> None:
    best = replace(trial("sweep.best", Phase.RUNNING, step=9), parameters=(("lr", 0.01),), sweep="sweep")
    worse = replace(best, id=TrialId("sweep.worse"), progress=Progress(1.0, 0.5, 0.5, 9, 0.0))
    failed = replace(best, id=TrialId("sweep.failed"), phase=Phase.FAILED, progress=Progress(0.1, 0.1, 0.1, 9, 0.0))
    other = replace(worse, id=TrialId("other.a"), direction=Direction.MAXIMIZE, sweep="other", parameters=())
    told = best_lines(at(5.0, best, worse, failed, other))
    assert told == ["best so far: 0.5 by other.a", "best so far: 0.25 by sweep.best lr=0.01"]
    assert best_lines(at(5.0, trial("a", Phase.PENDING))) == []


def test_a_trial_that_diverged_is_told_as_such_and_not_as_a_success() -> None:
    before, ended = trial("a", Phase.RUNNING, step=3), replace(trial("a", Phase.SUCCEEDED, step=3), diverged=True)
    told: list[str] = []
    screen = PlainScreen(told.append)
    screen.observe(at(5.0, before), {}, {})
    screen.observe(at(6.0, ended), {}, {})
    screen.end(RunResult("ahead", (TrialResult("a", 0.0, 6.0, "node-1", 0, 1, float("nan")),)))
    assert "a diverged" in told[-2]
    assert "1 of 1 trials diverged" in told[-1]
    assert [row.outcome for row in trial_rows(at(6.0, ended), {}, {})] == ["diverged"]


def test_the_address_of_a_page_is_told_whole_in_a_narrow_terminal() -> None:
    out, folders = StringIO(), list[Path]()
    told = f"Page: http://127.0.0.1:40000/{'a' * 43}/sweeps/demo-1 (while the run lasts)"

    def begin(folder: Path) -> str:
        folders.append(folder)
        return told

    with LiveScreen(Console(file=out, force_terminal=True, width=60, height=40), page=begin) as live:
        live.locate(Path("demo-1"))
    assert told in out.getvalue()
    lines: list[str] = []
    PlainScreen(lines.append, page=begin).locate(Path("demo-1"))
    PlainScreen(lines.append).locate(Path("demo-1"))
    assert lines == [told]
    assert folders == [Path("demo-1")] * 2
