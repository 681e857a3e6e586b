"""Scripts that call ``trial()`` more than once: folds, retries, pools, forked children. None trains nothing unheard."""

import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from mlflow_hooks.points import Point
from mlflow_hooks.state_folder import read_ending

ROOT = Path(__file__).parents[2]
TRIAL = "s.t000"
BEGIN = """
import json, multiprocessing, os, signal, subprocess, sys
from pathlib import Path
from mlflow_hooks import trial

class Model:
    w = 0.0
    def save(self, folder): Path(folder, "w.json").write_text(json.dumps(self.w))
    def load(self, folder): self.w = json.loads(Path(folder, "w.json").read_text())

def train(fold, steps=4, fail_at=None):
    model, done = Model(), 0
    with trial(checkpoint_every_s=0) as t:
        t.track(model)
        for step in t.steps(steps):
            if step == fail_at:
                raise ValueError("flaky")
            model.w += 1 + fold
            done += 1
            t.log(loss=step + 0.1 * fold)
    print(f"fold {fold}: {done} steps, weights {model.w}", flush=True)

"""


@dataclass(frozen=True)
class Ended:
    """How a script ended, and what it printed."""

    code: int
    out: str
    err: str


class Launcher:
    """Runs scripts as a sweep does, or by hand."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "state"
        self.script = folder / "train.py"

    @property
    def trial(self) -> Path:
        return self.state / TRIAL

    def run(self, body: str, attempt: str = "a1", *, swept: bool = True) -> Ended:
        self.script.write_text(BEGIN + textwrap.dedent(body))
        own = {"SPECON_TRIAL_ID": TRIAL, "SPECON_ATTEMPT": attempt, "SPECON_OBJECTIVE": "loss"} if swept else {}
        kept = {name: text for name, text in os.environ.items() if not name.startswith(("SPECON_", "MLFLOW_"))}
        ended = subprocess.run(
            [sys.executable, str(self.script)],
            env={**kept, "PYTHONPATH": str(ROOT), "SPECON_STATE_ROOT": str(self.state), **own},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def losses(self) -> list[tuple[int, float]]:
        lines = (self.trial / "points.jsonl").read_bytes().splitlines()
        return [(point.step, point.value) for point in map(Point.decode, lines) if point and point.key == "loss"]


@pytest.fixture
def launcher(tmp_path: Path) -> Launcher:
    return Launcher(tmp_path)


FOLD_0 = [(step, float(step)) for step in range(4)]


def test_the_second_fold_with_a_trial_of_its_own_is_refused_before_it_trains(launcher: Launcher) -> None:
    ended = launcher.run("for fold in range(3): train(fold)")
    assert ended.out == "fold 0: 4 steps, weights 4.0\n"
    assert ended.code == 1
    assert f"SecondTrialError: the trial {TRIAL} has ended" in ended.err
    assert "Cross-validation" in ended.err
    assert launcher.losses() == FOLD_0


def test_folds_that_track_nothing_are_refused_too_rather_than_lose_their_points(launcher: Launcher) -> None:
    ended = launcher.run("""
        for fold in range(2):
            with trial() as t:
                for step in range(4):
                    t.log(loss=float(step), step=step)
            print("fold", fold)
    """)
    assert (ended.code, ended.out) == (1, "fold 0\n")
    assert "SecondTrialError" in ended.err


def test_a_refusal_is_told_also_where_the_script_catches_whatever_a_fold_raises(launcher: Launcher) -> None:
    ended = launcher.run("""
        for fold in range(2):
            try: train(fold)
            except Exception: print("caught")
    """)
    assert ended.out.splitlines()[1:] == ["caught"]
    assert f"mlflow_hooks: the trial {TRIAL} has ended" in ended.err


def test_a_trial_within_a_trial_is_refused_and_the_outer_one_is_whole(launcher: Launcher) -> None:
    ended = launcher.run("""
        with trial() as outer:
            try: train(1)
            except Exception as error: print(type(error).__name__)
            for step in outer.steps(4): outer.log(loss=float(step))
    """)
    assert (ended.code, ended.out) == (0, "SecondTrialError\n")
    assert launcher.losses() == FOLD_0


def test_a_block_that_only_reads_its_parameters_may_come_before_the_one_that_trains(launcher: Launcher) -> None:
    ended = launcher.run("""
        with trial() as t: t.params
        trial().params
        train(0)
    """)
    assert (ended.code, ended.out) == (0, "fold 0: 4 steps, weights 4.0\n")
    assert launcher.losses() == FOLD_0


def test_a_retry_after_an_error_goes_on_where_it_was_and_says_so(launcher: Launcher) -> None:
    ended = launcher.run("""
        for fail_at in (2, None):
            try: train(0, fail_at=fail_at)
            except ValueError: pass
    """)
    assert (ended.code, ended.out.count("weights 4.0\n")) == (0, 1)
    assert "trial() once more, after ValueError('flaky')" in ended.err
    assert launcher.losses() == FOLD_0
    ending = read_ending(launcher.trial)
    assert ending is not None
    assert ending.status == "FINISHED"


def test_a_retry_of_a_fold_after_which_another_one_comes_is_refused(launcher: Launcher) -> None:
    ended = launcher.run("""
        for fold, fail_at in ((0, 2), (0, None), (1, None)):
            try: train(fold, fail_at=fail_at)
            except ValueError: pass
    """)
    assert (ended.code, ended.out.count("weights 4.0\n"), ended.out.count("\n")) == (1, 1, 1)


def test_a_script_that_catches_the_request_to_leave_leaves_at_the_next_trial(launcher: Launcher) -> None:
    ended = launcher.run("""
        def leaving():
            with trial() as t:
                for step in t.steps(4):
                    os.kill(os.getpid(), signal.SIGTERM)
        try: leaving()
        except BaseException: pass
        train(1)
    """)
    assert (ended.code, ended.out) == (75, "")


def test_each_trial_made_by_hand_is_its_own(launcher: Launcher) -> None:
    ended = launcher.run("for fold in range(3): train(fold)", swept=False)
    assert ended.code == 0, ended.err
    assert ended.out.splitlines() == [f"fold {fold}: 4 steps, weights {4.0 * (1 + fold)}" for fold in range(3)]
    assert len(list(launcher.state.glob("train-*/points.jsonl"))) == 3


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_trial_in_a_worker_of_a_process_that_has_it_is_refused(launcher: Launcher, method: str) -> None:
    ended = launcher.run(f"""
        def work(fold):
            try: train(fold)
            except Exception as error: return type(error).__name__
        if __name__ == "__main__":
            with trial() as t:
                with multiprocessing.get_context({method!r}).Pool(2) as pool:
                    print(pool.map(work, range(1, 3)))
                for step in t.steps(4): t.log(loss=float(step))
    """)
    assert (ended.code, ended.out) == (0, "['SecondTrialError', 'SecondTrialError']\n")
    assert launcher.losses() == FOLD_0


def test_of_workers_that_each_call_trial_one_has_it(launcher: Launcher) -> None:
    ended = launcher.run("""
        def work(both, found):
            try:
                with trial() as t:
                    both.wait(60)
                    for step in t.steps(4): t.log(loss=float(step))
                found.put("trained")
            except Exception as error:
                both.wait(60)
                found.put(type(error).__name__)
        if __name__ == "__main__":
            context = multiprocessing.get_context("spawn")
            both, found = context.Barrier(2), context.Queue()
            workers = [context.Process(target=work, args=(both, found)) for _ in range(2)]
            for worker in workers: worker.start()
            print(sorted(found.get() for _ in workers))
            for worker in workers: worker.join()
    """)
    assert ended.out == "['SecondTrialError', 'trained']\n"
    assert launcher.losses() == FOLD_0


def test_a_second_program_of_the_attempt_may_log_more_and_must_not_train_the_same(launcher: Launcher) -> None:
    assert launcher.run("train(0)").code == 0
    more = launcher.run("""
        model = Model()
        with trial() as t:
            t.track(model)
            t.log(tested=model.w)
    """)
    assert more.code == 0
    again = launcher.run("train(1)")
    assert (again.code, again.out) == (1, "")
    assert "another process of this attempt has trained" in again.err
    repeats = launcher.run("with trial() as t: t.log(loss=9.0, step=2)")
    assert repeats.code == 1
    assert "another process of this attempt has logged loss" in repeats.err
    assert launcher.losses() == FOLD_0


def test_a_program_that_failed_is_begun_again_within_its_attempt(launcher: Launcher) -> None:
    assert launcher.run("train(0, fail_at=3)").code == 1
    assert launcher.run("train(0)").out.endswith("weights 4.0\n")
    assert launcher.losses() == FOLD_0


def test_the_next_attempt_trains_on_and_may_find_nothing_left(launcher: Launcher) -> None:
    assert launcher.run("train(0, fail_at=3)").code == 1
    assert launcher.run("train(0)", "a2").out.endswith("weights 4.0\n")
    assert launcher.run("train(0)", "a3").out == "fold 0: 0 steps, weights 4.0\n"


def test_trainings_of_one_trial_may_each_go_further_and_none_trains_nothing(launcher: Launcher) -> None:
    body = """
        with trial(checkpoint_every_s=0) as t:
            model = Model()
            t.track(model)
            for total in {totals}:
                for step in t.steps(total):
                    t.log(loss=float(step))
    """
    assert launcher.run(body.format(totals=(2, 4))).code == 0
    assert launcher.run(body.format(totals=(2, 4)), "a2").code == 0
    assert launcher.losses() == FOLD_0
    folds = launcher.run(body.format(totals=(6, 6)), "a3")
    assert folds.code == 1
    assert "a training of 6 steps would train nothing" in folds.err


def test_a_loop_that_begins_again_says_at_which_step_it_goes_on(launcher: Launcher) -> None:
    ended = launcher.run("""
        with trial() as t:
            for fold in range(2):
                for step in t.steps(4):
                    if step == 2: break
                    t.log(loss=float(step))
    """)
    assert ended.code == 0
    assert f"{TRIAL} begins to train again: its steps go on at step 2" in ended.err


LEAVES = {
    "exits": "sys.exit(0)",
    "fails": "raise RuntimeError('in the child')",
    "returns": "pass",
    "is stopped": "os.kill(os.getpid(), signal.SIGTERM)",
}


@pytest.mark.parametrize("leave", LEAVES.values(), ids=LEAVES)
def test_a_forked_child_that_ends_leaves_the_trial_to_its_parent(launcher: Launcher, leave: str) -> None:
    ended = launcher.run(f"""
        with trial() as t:
            t.track(Model())
            for step in t.steps(4):
                if step == 1:
                    child = os.fork()
                    if child == 0:
                        {leave}
                        break
                    os.waitpid(child, 0)
                    folder = t.settings.folder
                    print((folder / "ended.json").exists(), len(list((folder / "checkpoints").iterdir())))
                t.log(loss=float(step))
        sys.exit(0)
    """)
    assert (ended.code, ended.out) == (0, "False 0\n"), ended.err
    assert launcher.losses() == FOLD_0


def test_a_child_that_trains_logs_or_saves_for_its_parent_is_told_to_return_its_results(launcher: Launcher) -> None:
    ended = launcher.run("""
        calls = {
            "log": lambda t: t.log(loss=7.0, step=9), "steps": lambda t: next(t.steps(9)),
            "begin": lambda t: t.begin(9), "finish_step": lambda t: t.finish_step(8),
            "finish_training": lambda t: t.finish_training(), "save_or_leave": lambda t: t.save_or_leave(),
            "leave": lambda t: t.leave(), "track": lambda t: t.track(Model()),
        }
        def call(name):
            try: calls[name](t)
            except Exception as error: return name, type(error).__name__
            return name, "done"
        with trial() as t:
            with multiprocessing.get_context("fork").Pool(1) as pool:
                for name, came in pool.map(call, calls): print(name, came)
            for step in t.steps(4): t.log(loss=float(step))
    """)
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert len(lines) == 8
    assert all(line.endswith("SecondTrialError") for line in lines), lines
    assert launcher.losses() == FOLD_0


FOLDS = """
    class Losses:
        kept = {}
        def save(self, folder): Path(folder, "losses.json").write_text(json.dumps(self.kept))
        def load(self, folder): self.kept = json.loads(Path(folder, "losses.json").read_text())

    EPOCHS, FOLDS = 4, 3
    with trial() as t:
        models, losses = [Model() for _ in range(FOLDS)], Losses()
        for fold, model in enumerate(models):
            t.track(model, f"fold-{fold}")
        t.track(losses, "losses")
        for step in t.steps(EPOCHS * FOLDS):
            epoch, fold = divmod(step, FOLDS)
            models[fold].w += 1 + fold
            losses.kept[str(fold)] = 1 / models[fold].w
            t.log({f"fold-{fold}/loss": losses.kept[str(fold)]})
            if fold == FOLDS - 1:
                t.log(loss=sum(losses.kept.values()) / FOLDS)
            if step == LEAVE_AT:
                os.kill(os.getpid(), signal.SIGTERM)
    print([model.w for model in models])
"""


def test_folds_within_one_trial_train_each_its_own_model_over_moves(tmp_path: Path) -> None:
    whole, moved = Launcher(tmp_path / "whole"), Launcher(tmp_path / "moved")
    for one in (whole, moved):
        one.script.parent.mkdir()
    assert whole.run(f"LEAVE_AT = None{FOLDS}".replace("\n    ", "\n")).out == "[4.0, 8.0, 12.0]\n"
    for number, leave_at in enumerate((1, 7, None)):
        body = f"LEAVE_AT = {leave_at}{FOLDS}".replace("\n    ", "\n")
        ended = moved.run(body, f"a{number}")
        assert ended.code == (0 if leave_at is None else 75), ended.err
    assert ended.out == "[4.0, 8.0, 12.0]\n"
    assert moved.losses() == whole.losses()
    assert [step for step, _ in moved.losses()] == [2, 5, 8, 11]
