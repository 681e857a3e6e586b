"""A program of a shell runs as ever, and what it prints of its metrics gets into its trial's journal."""

import json
import os
import signal
import sqlite3
import sys
from pathlib import Path

import pytest

from mlflow_hooks import contract
from mlflow_hooks.points import Point
from mlflow_hooks.printed.attempt import begun_again
from mlflow_hooks.printed.form import PrintedForm
from tests.mlflow_hooks.hook_jobs import Server
from tests.mlflow_hooks.printed.reading import COUNTED, LOSS, Readings

EPOCHS = 'for i in 0 1 2; do echo "epoch $i: loss=0.$i"; done'
RESUMES = """
i=0; [ -f saved ] && i=$(cat saved)
trap 'echo $i > saved; exit 75' TERM
while [ $i -lt 30 ]; do echo "epoch $i: loss=0.$i"; i=$((i+1)); sleep 0.1; done
"""
"""Goes on from a file of its own once it was asked to leave."""
ENDLESS = 'i=0; while :; do echo "epoch $i: loss=0.$i"; i=$((i+1)); sleep 0.1; done'


def test_what_is_printed_goes_where_it_went_and_into_the_journal(readings: Readings) -> None:
    done = readings.run(f'echo "to the one"; echo "epoch 7: loss=7" >&2; {EPOCHS}; exit 3')
    assert (done.code, done.out) == (3, "to the one\nepoch 0: loss=0.0\nepoch 1: loss=0.1\nepoch 2: loss=0.2\n")
    assert "epoch 7: loss=7\n" in done.err
    assert json.loads((readings.root / "s.a" / "ended.json").read_text())["status"] == "FAILED"


def test_each_step_is_there_once_with_what_hooks_would_log_beside(readings: Readings) -> None:
    assert readings.run(EPOCHS).code == 0
    assert readings.points() == {0: 0.0, 1: 0.1, 2: 0.2}
    assert readings.points("specon.objective_first") == {0: 0.0}
    assert readings.points("specon.cpu_seconds")
    assert json.loads((readings.root / "s.a" / "ended.json").read_text())["status"] == "FINISHED"


@pytest.mark.parametrize(("script", "code"), [("exit 5", 5), ("kill -9 $$", 137), ("exec /no/such", 127)])
def test_the_exit_code_is_the_programs(readings: Readings, script: str, code: int) -> None:
    assert readings.run(script).code == code


def test_a_step_that_is_told_again_counts_as_it_was_told_first(readings: Readings) -> None:
    bar = "printf 'epoch 1: loss=3\\repoch 1: loss=2\\repoch 1: loss=1\\n'"
    assert readings.run(f"{bar}; echo 'epoch 0: loss=9'; echo 'epoch 2: loss=0'").code == 0
    assert readings.points() == {1: 3, 2: 0}


def test_a_second_phase_that_counts_from_the_beginning_again_is_logged(readings: Readings) -> None:
    steps = [*((step, step) for step in range(4)), (0, 9), (1, 8), (2, 7)]
    assert readings.run("; ".join(f"echo 'epoch {step}: loss={value}'" for step, value in steps)).code == 0
    points = filter(None, map(Point.decode, (readings.root / "s.a" / "points.jsonl").read_bytes().splitlines()))
    assert [(point.step, point.value) for point in points if point.key == "loss"] == steps
    assert readings.points("specon.steps_back") == {0: 3}


def test_a_line_that_sums_up_is_no_second_phase(readings: Readings) -> None:
    assert readings.run("for i in 0 1 2 3; do echo epoch $i: loss=$i; done; echo best epoch 1: loss=1").code == 0
    assert readings.points() == {0: 0, 1: 1, 2: 2, 3: 3}
    assert readings.points("specon.steps_back") == {}


def test_by_names_lines_tell_their_steps_and_the_last_value_of_a_step_counts(readings: Readings) -> None:
    lines = r"epoch 1 loss 3\repoch 1 loss 2\n * Acc@1 76.1 (70.0)\nepoch 2 loss \033[32m1\033[0m\nepoch 4 loss 0,81\n"
    done = readings.run(f"printf '{lines}'", PrintedForm())
    assert readings.points() == {1: 2, 2: 1}
    assert readings.points("Acc_1") == {0: 76.1}
    assert "it is kept as 'Acc_1'" in done.err
    assert done.err.count("loss='0,81' is no number and counts as none, in the line 'epoch 4 loss 0,81'") == 1


def test_python_holds_nothing_back(readings: Readings) -> None:
    process = readings.start(f"{sys.executable} -c 'import time; print(\"loss: 1\"); time.sleep(60)'", PrintedForm())
    readings.wait_for(lambda: readings.points() == {0: 1})
    assert process.poll() is None
    readings.ask(process)


def test_a_signal_to_the_whole_group_reaches_the_program_once(readings: Readings) -> None:
    counts = "trap 'echo heard' TERM; echo ready; i=0; while [ $i -lt 20 ]; do sleep 0.1; i=$((i+1)); done"
    process = readings.start(counts)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    assert readings.ask(process).out == "heard\n"


def test_a_resumed_program_goes_on_with_the_history(readings: Readings) -> None:
    first = readings.start(RESUMES)
    readings.wait_for(lambda: len(readings.points()) > 3)
    assert readings.ask(first).code == 75
    assert not (readings.root / "s.a" / "ended.json").exists(), "the next attempt goes on"
    assert readings.run(RESUMES, attempt="2").code == 0
    assert list(readings.points()) == list(range(30))
    assert begun_again(readings.root / "s.a") == 0


def test_a_program_that_begins_again_prints_the_same_steps_and_none_comes_twice(readings: Readings) -> None:
    killed = readings.start(ENDLESS)
    readings.wait_for(lambda: len(readings.points()) > 3)
    assert readings.ask(killed).code == 128 + signal.SIGTERM
    before = dict(readings.points())
    again = 'i=0; while [ $i -lt 20 ]; do echo "epoch $i: loss=9"; i=$((i+1)); done'
    assert readings.run(again, attempt="2").code == 0
    assert list(readings.points()) == list(range(20))
    assert begun_again(readings.root / "s.a") == 1
    assert {step: readings.points()[step] for step in before} == before


@pytest.mark.parametrize("code", [0, 1, 130])
@pytest.mark.parametrize("by_sweep", [False, True], ids=["in a pod", "on this machine"])
def test_a_program_that_was_asked_has_left_whatever_it_ends_with(
    readings: Readings,
    code: int,
    by_sweep: bool,  # noqa: FBT001 - as parametrized
) -> None:
    if by_sweep:
        readings.variables[contract.ENV_SENDER] = contract.SENDER_SWEEP
    process = readings.start(f"trap 'exit {code}' TERM; echo 'epoch 0: loss=9'; while :; do sleep 0.05; done")
    readings.wait_for(lambda: len(readings.points()) == 1)
    # On this machine its controller knows that it was asked, and what the others told.
    assert readings.ask(process).code == (code if by_sweep else 128 + signal.SIGTERM)
    assert not (readings.root / "s.a" / "ended.json").exists(), "the next attempt goes on"


def test_without_steps_values_are_counted_on_where_the_program_says_that_it_saved(readings: Readings) -> None:
    assert readings.run("echo loss=1; echo loss=2; exit 75", COUNTED).code == 75
    assert readings.run("echo loss=3; echo loss=4; exit 1", COUNTED, attempt="2").code == 1
    # It goes on from what it saved in its first attempt, as it did not leave by itself in the second.
    assert readings.run("echo loss=3; echo loss=4; echo loss=5", COUNTED, attempt="3").code == 0
    assert readings.points() == {0: 1, 1: 2, 2: 3, 3: 4, 4: 5}
    assert begun_again(readings.root / "s.a") == 0


def test_without_steps_values_are_counted_from_the_beginning_where_it_begins_again(readings: Readings) -> None:
    assert readings.run("echo loss=1; echo loss=2; exit 1", COUNTED).code == 1
    assert readings.run("echo loss=1; echo loss=2; echo loss=3", COUNTED, attempt="2").code == 0
    assert readings.points() == {0: 1, 1: 2, 2: 3}
    assert begun_again(readings.root / "s.a") == 1


@pytest.mark.parametrize("form", [LOSS, PrintedForm()], ids=["by a pattern", "by names"])
def test_a_program_that_goes_on_by_itself_has_not_begun_again(readings: Readings, form: PrintedForm) -> None:
    told = "for i in {}; do echo epoch $i: loss=9; done; exit {}"
    assert readings.run(told.format("0 1 2 3", 1), form).code == 1
    assert readings.run(told.format("2 3 4", 1), form, attempt="2").code == 1
    assert readings.run(told.format("5 6", 0), form, attempt="3").code == 0
    assert list(readings.points()) == list(range(7))
    assert begun_again(readings.root / "s.a") == 0


def test_a_newer_attempt_ends_the_program_of_an_older_one_before_it_saves_over_its_work(readings: Readings) -> None:
    older = readings.start(RESUMES)
    readings.wait_for(lambda: len(readings.points()) > 1)
    assert readings.run(EPOCHS, attempt="2").code == 0
    older.communicate(timeout=60)
    assert older.returncode == 75
    assert not (readings.root / "saved").exists()
    known = dict(readings.points())
    assert list(known) == list(range(max(known) + 1))


def test_a_file_asks_a_program_that_knows_nothing_of_it_to_leave(readings: Readings) -> None:
    asks = readings.root / "leave"
    asks.touch()
    readings.variables["SPECON_LEAVE_FILE"] = str(asks)
    process = readings.start(RESUMES)
    readings.wait_for(lambda: len(readings.points()) > 1)
    beside = asks.with_name("new")
    beside.write_text("1")
    beside.replace(asks)
    process.communicate(timeout=60)
    assert process.returncode == 75
    assert (readings.root / "saved").exists()


def test_other_signals_reach_the_program_too(readings: Readings) -> None:
    process = readings.start('trap "echo heard; exit 0" USR1; echo ready; while :; do sleep 0.05; done')
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, signal.SIGUSR1)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "heard\n")


def test_a_process_that_the_program_leaves_behind_keeps_nobody_waiting(readings: Readings) -> None:
    done = readings.run(f"{EPOCHS}; sleep 100 & exit 0")
    assert done.code == 0
    assert len(readings.points()) == 3


def test_where_nothing_matched_the_end_says_so_with_the_last_lines(readings: Readings) -> None:
    done = readings.run("for i in 1 2 3 4 5 6; do echo Epoche $i: Verlust $i; done; printf '\\377 end'", COUNTED)
    assert done.code == 0
    assert "no line that was printed told the objective 'loss'; the last lines were:" in done.err
    assert "Epoche 6: Verlust 6\n  \\xff end" in done.err
    assert "Epoche 1:" not in done.err


@pytest.mark.parametrize(
    ("printed", "words"), [("epoch 0.5: loss=1", "the step '0.5' is no whole"), ("epoch 1: loss=x", "loss='x' is no")]
)
def test_what_cannot_be_kept_is_told_once(readings: Readings, printed: str, words: str) -> None:
    form = PrintedForm(patterns=(r"epoch (?P<step>\S+): loss=(?P<loss>\S+)",))
    done = readings.run(f"echo {printed}; echo {printed}", form)
    assert done.err.count(words) == 1
    assert readings.points() == {}


def test_a_binary_flood_without_line_ends_neither_stops_the_program_nor_fills_the_memory(readings: Readings) -> None:
    done = readings.run(f"head -c 30000000 /dev/zero | tr '\\0' '\\377' >&2; echo >&2; {EPOCHS}")
    assert done.code == 0
    assert len(readings.points()) == 3


def test_a_program_gets_its_environment_but_not_what_joins_runs(readings: Readings) -> None:
    readings.variables |= {"MLFLOW_RUN_ID": "r", "MLFLOW_RUN_CONTEXT": "{}", "OWN": "x"}
    done = readings.run('echo "$MLFLOW_RUN_ID|$MLFLOW_RUN_CONTEXT|$SPECON_PRINTED|$OWN|$SPECON_TRIAL_ID"')
    assert done.out == "|||x|s.a\n"


@pytest.mark.parametrize("form", ["{", '{"patterns": ["("]}'])
def test_a_form_that_makes_no_sense_starts_no_program(readings: Readings, form: str) -> None:
    readings.variables["SPECON_PRINTED"] = form
    done = readings.run("touch started")
    assert done.code == 64
    assert "mlflow_hooks: " in done.err
    assert not (readings.root / "started").exists()


def test_where_a_trial_has_no_folder_mlflow_alone_keeps_each_step_from_coming_twice(
    readings: Readings, mlflow_server: Server
) -> None:
    readings.variables |= {
        "SPECON_STATE_ROOT": "/proc/none",
        "MLFLOW_TRACKING_URI": mlflow_server.uri,
        "MLFLOW_EXPERIMENT_NAME": "printed",
        "SPECON_FLUSH_S": "60",
        "SPECON_TRIAL_ID": readings.root.parent.name[:50],
    }
    assert readings.run(f"{EPOCHS}; exit 1").code == 1
    again = 'for i in 0 1 2 3; do echo "epoch $i: loss=9"; done'
    assert readings.run(again, attempt="2").code == 0
    assert kept_of(mlflow_server.folder, "printed") == [(0, 0.0), (1, 0.1), (2, 0.2), (3, 9.0)]


def kept_of(folder: Path, experiment: str) -> list[tuple[int, float]]:
    """Return the steps and values of the loss that MLflow's own database has of an experiment with one run."""
    with sqlite3.connect(folder / "mlflow.db") as database:
        return database.execute(
            "SELECT m.step, m.value FROM metrics m JOIN runs r ON r.run_uuid = m.run_uuid "
            "JOIN experiments e ON e.experiment_id = r.experiment_id WHERE e.name = ? AND m.key = 'loss' "
            "ORDER BY r.run_uuid, m.step",
            (experiment,),
        ).fetchall()


def test_a_program_with_hooks_of_its_own_is_told_whose_word_counts(readings: Readings) -> None:
    job = "import mlflow_hooks\nwith mlflow_hooks.trial() as t:\n    t.log(loss=5, step=0)\nprint('epoch 1: loss=7')\n"
    (readings.root / "job.py").write_text(job)
    done = readings.run(f"{sys.executable} job.py", LOSS)
    assert done.code == 0
    assert readings.points() == {0: 5}
    assert "the program has the hooks itself" in done.err
