"""What trials have to tell stands in the sweep's own output, once, whatever they have written."""

import json
import os
from pathlib import Path

import pytest

from controllers.core import labels
from controllers.core.model import Phase
from controllers.local_run.trial_notices import Notices
from controllers.worlds.local.jobs import LocalJob
from controllers.worlds.local.workflow import PodStep
from mlflow_hooks import contract
from mlflow_hooks.state_folder import NOTICES, tell


def job(name: str) -> LocalJob:
    step = PodStep(name, "t", (), env={contract.ENV_TRIAL_ID: name}, labels={labels.LABEL_SWEEP: "s"})
    return LocalJob(step, 0.0, 0.1, phase=Phase.RUNNING, pids=(1,))


def test_what_several_trials_tell_is_shown_once_and_what_is_new_is_shown_too(tmp_path: Path) -> None:
    notices, jobs = Notices(tmp_path, str.upper), [job("t0"), job("t1")]
    for name in ("t0", "t1"):
        (tmp_path / name).mkdir()
        tell(tmp_path / name, "rows would be lost")
    assert notices.look(jobs) == ["T0: rows would be lost"]
    assert notices.look(jobs) == []
    tell(tmp_path / "t1", "rows would be lost")
    tell(tmp_path / "t1", "so would order")
    os.utime(tmp_path / "t1" / NOTICES, ns=(1, 1))
    assert notices.look(jobs) == ["T1: so would order"]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (b"", []),
        (b"\xff\xfe", []),
        (b"[" * 10_000, []),
        (b'{"a": 1}', []),
        (b'[1, null, "a\\u001b[31mb\\nc"]', ["t0: a[31mbc"]),
        (json.dumps(["x" * 10_000]).encode(), [f"t0: {'x' * 500}"]),
        (json.dumps([str(number) for number in range(50)]).encode(), [f"t0: {number}" for number in range(5)]),
        (b'["' + b"x" * 100_000 + b'"]', []),
    ],
)
def test_whatever_a_script_has_written_there_is_bounded_and_printable(
    tmp_path: Path, written: bytes, shown: list[str]
) -> None:
    (tmp_path / "t0").mkdir()
    (tmp_path / "t0" / NOTICES).write_bytes(written)
    assert Notices(tmp_path, str).look([job("t0")]) == shown


def test_a_pipe_in_its_place_holds_nothing_up(tmp_path: Path) -> None:
    (tmp_path / "t0").mkdir()
    os.mkfifo(tmp_path / "t0" / NOTICES)
    assert Notices(tmp_path, str).look([job("t0")]) == []
