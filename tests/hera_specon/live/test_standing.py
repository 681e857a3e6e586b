import json
from pathlib import Path

from controllers.core.model import Ask, TrialId
from controllers.record.timeline import EventKind, TimelineEvent, TimelineFile
from hera_specon.display.boards import best_lines
from hera_specon.live.standing import MOST_ACTIONS, SweepStanding, newest_actions, node_lines, trial_lines
from hera_specon.records.run_folder import run_states
from hera_specon.sweep_state import SweepState, to_json
from tests.hera_specon.report.large_run import write_large_run


def standing(folder: Path, *events: TimelineEvent, **about: str) -> SweepState:
    part = folder / "00-ahead"
    part.mkdir()
    (folder / "run.json").write_text(json.dumps({"name": "demo", "policies": ["ahead"], **about}))
    (part / "ledger.json").write_text("{}")
    TimelineFile(part / "timeline.jsonl").append(events)
    return run_states(folder)[-1]


def began(trial: str, node: str, at: float = 0.0) -> TimelineEvent:
    return TimelineEvent(at, EventKind.PHASE, trial, phase="running", node=node, cpu=1.5, attempt=1)


def told(trial: str, value: float, also: dict[str, float] | None) -> TimelineEvent:
    return TimelineEvent(1.0, EventKind.REPORT, trial, value=value, step=1, also=also)


def test_a_node_that_stands_idle_is_seen(tmp_path: Path) -> None:
    events = [
        began("d.t0", "node-1"),
        began("d.t1", "node-2"),
        TimelineEvent(4.0, EventKind.USAGE, "d.t0", value=0.5, node="node-1"),
        TimelineEvent(8.0, EventKind.USAGE, "d.t0", value=1.25, node="node-1"),
        TimelineEvent(9.0, EventKind.PHASE, "d.t1", phase="succeeded", node="node-2"),
    ]

    busy, idle = node_lines(standing(tmp_path, *events), events)

    assert (busy.name, busy.trials, busy.held, busy.used) == ("node-1", ("d.t0",), 1.5, 1.25)
    assert (idle.name, idle.trials, idle.held, idle.used) == ("node-2", (), 0, None)


def test_the_front_is_shown_while_the_sweep_runs_on_the_page_and_by_the_command(tmp_path: Path) -> None:
    values = {"d.t0": (1.0, {"latency": 9.0}), "d.t1": (2.0, {"latency": 3.0}), "d.t2": (3.0, {"latency": 4.0})}
    events = [
        event for trial, (value, also) in values.items() for event in (began(trial, "n1"), told(trial, value, also))
    ]
    events += [began("d.t3", "n1"), told("d.t3", 0.1, None)]

    state = standing(tmp_path, *events, further_objectives="minimize latency")

    assert to_json(state)["front"] == {"d": ["d.t0", "d.t1"]}
    assert best_lines(state.snapshot) == ["on the front so far: 2 trials, d.t0, d.t1"]
    page = SweepStanding(state=state, nodes=(), idle=0, trials=()).html()
    assert "on the front so far: 2 trials, d.t0, d.t1" in page


def test_a_gang_holds_cores_on_each_of_its_nodes(tmp_path: Path) -> None:
    gang = TimelineEvent(
        0.0, EventKind.PHASE, "d.t0", phase="running", node="n1", nodes=("n1", "n2", "n2"), cpu=1.0, attempt=1
    )
    use = TimelineEvent(2.0, EventKind.USAGE, "d.t0", value=1.5, node="n1", nodes=("n1", "n2", "n2"))

    one, other = node_lines(standing(tmp_path, gang, use), [gang, use])

    assert [(line.held, line.used) for line in (one, other)] == [(1.0, 0.5), (2.0, 1.0)]


def test_what_can_be_asked_of_a_trial_follows_from_what_it_does_and_was_asked(tmp_path: Path) -> None:
    over = TimelineEvent(3.0, EventKind.PHASE, "d.t3", phase="succeeded", node="n1")
    state = standing(tmp_path, *(began(f"d.t{n}", "n1") for n in range(4)), over)
    asks = {"d.t1": Ask.PAUSE, "d.t2": Ask.STOP}

    can = {line.row.id: line.can for line in trial_lines(state, asks, may_ask=True)}

    assert can == {
        TrialId("d.t0"): ("pause", "stop"),
        TrialId("d.t1"): ("resume", "stop"),
        TrialId("d.t2"): (),
        TrialId("d.t3"): (),
    }
    assert not any(line.can for line in trial_lines(state, asks, may_ask=False))


def test_the_newest_actions_come_first_and_nonsense_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "actions.jsonl"
    assert newest_actions(file) == ()
    lines = [
        json.dumps({"at": at, "kind": "Stop", "trial": f"u.d.t{at}", "reason": "why", "outcome": "done", "detail": ""})
        for at in range(2000)
    ]
    file.write_text("\n".join([*lines, "{", "[]", "7", '{"at": "x"}']) + "\n")

    actions = newest_actions(file)

    assert len(actions) == MOST_ACTIONS
    assert (actions[0].at, actions[0].trial, actions[0].outcome) == (1999.0, "d.t1999", "done")


def test_those_at_work_are_listed_first_among_hundreds(tmp_path: Path) -> None:
    state = run_states(write_large_run(tmp_path))[-1]

    lines = trial_lines(state, {}, may_ask=True)

    assert len(lines) == 500
    assert {line.row.phase.value for line in lines[:8]} == {"running"}
