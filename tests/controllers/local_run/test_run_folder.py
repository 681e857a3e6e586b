"""Where a run is kept, and how one that was cut short is found again."""

import errno
import json
import os
from pathlib import Path
from typing import NoReturn

import pytest

from controllers.core.errors import SpeconError
from controllers.core.results import RunResult, TrialResult
from controllers.local_run import run_folder
from controllers.local_run.run_folder import find_or_make_run, read_result

SAME = {"workflow": {"spec": {}}, "policies": ["default"]}


def test_the_same_command_goes_on_with_an_unfinished_run(tmp_path: Path) -> None:
    first = find_or_make_run(tmp_path, "vae", SAME, fresh=False)
    again = find_or_make_run(tmp_path, "vae", SAME, fresh=False)
    assert (first.resumed, again.resumed) == (False, True)
    assert again.path == first.path


def test_another_command_gets_a_run_of_its_own(tmp_path: Path) -> None:
    first = find_or_make_run(tmp_path, "vae", SAME, fresh=False)
    other = find_or_make_run(tmp_path, "vae", {**SAME, "policies": ["specon"]}, fresh=False)
    assert (first.name, other.name, other.resumed) == ("vae-1", "vae-2", False)


def test_a_finished_run_is_not_gone_on_with(tmp_path: Path) -> None:
    find_or_make_run(tmp_path, "vae", SAME, fresh=False).describe({"finished": True})
    assert find_or_make_run(tmp_path, "vae", SAME, fresh=False).name == "vae-2"


def test_fresh_starts_anew_beside_an_unfinished_run(tmp_path: Path) -> None:
    find_or_make_run(tmp_path, "vae", SAME, fresh=False)
    assert find_or_make_run(tmp_path, "vae", SAME, fresh=True).name == "vae-2"


def test_runs_of_the_same_name_in_two_folders_never_share_an_id(tmp_path: Path) -> None:
    one = find_or_make_run(tmp_path / "one", "vae", SAME, fresh=False)
    two = find_or_make_run(tmp_path / "two", "vae", SAME, fresh=False)
    assert one.name == two.name
    assert one.uid(0) != two.uid(0)
    assert one.uid(0) == find_or_make_run(tmp_path / "one", "vae", SAME, fresh=False).uid(0)
    assert one.uid(0) != one.uid(1)


def test_two_controllers_never_drive_the_same_run(tmp_path: Path) -> None:
    folder = find_or_make_run(tmp_path, "vae", SAME, fresh=False)
    with folder.lock(), pytest.raises(SpeconError, match="vae-1 is being driven"):
        folder.lock()
    folder.lock().close()


def test_what_is_described_stays_beside_what_was(tmp_path: Path) -> None:
    folder = find_or_make_run(tmp_path, "vae", SAME, fresh=False)
    folder.describe({"nodes": 4})
    folder.describe({"finished": True})
    facts = json.loads((folder.path / "run.json").read_text())
    assert (facts["nodes"], facts["finished"], facts["sweep"]) == (4, True, "vae")


def test_a_result_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    trial = TrialResult("vae.t0", 1.0, 4.0, "node-1", 1, 2, 0.25, params={"lr": 0.1})
    result = RunResult("specon", (trial,))
    (tmp_path / "result.json").write_text(json.dumps(result.to_dict()))
    assert read_result(tmp_path) == result
    assert read_result(tmp_path / "nowhere") is None


def test_what_a_run_keeps_is_whole_whenever_it_is_read_and_for_its_owner_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = find_or_make_run(tmp_path, "vae", SAME, fresh=False)
    folder.describe({"nodes": 4})
    folder.keep_order({"workflow": {"env": "secret"}})
    for name in ("run.json", "order.json"):
        assert (folder.path / name).stat().st_mode & 0o777 == 0o600

    def killed(_from: object, _to: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("controllers.worlds.local.jobs.os.replace", killed)
    with pytest.raises(KeyboardInterrupt):
        folder.describe({"nodes": 5})
    assert json.loads((folder.path / "run.json").read_text())["nodes"] == 4


def test_a_disk_that_takes_no_run_keeps_no_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(run_folder, "write_whole", full)
        with pytest.raises(OSError, match="No space"):
            find_or_make_run(tmp_path, "digits", {"seed": 1}, fresh=False)
    assert list((tmp_path / "runs").iterdir()) == []
    assert find_or_make_run(tmp_path, "digits", {"seed": 1}, fresh=False).name == "digits-1"
