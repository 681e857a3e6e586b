"""Checkpoints are whole or skipped."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlflow_hooks.checkpoints import Checkpoints
from tests.property_examples import examples


def write(folder: Path) -> tuple[str, ...]:
    (folder / "model").mkdir()
    (folder / "model/weights.bin").write_bytes(bytes(range(200)))
    return ("model",)


def save(checkpoints: Checkpoints, *steps: int) -> None:
    for step in steps:
        assert checkpoints.save(step, write, 1.5, lambda: True)


def test_the_newest_two_are_kept(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    save(checkpoints, 5, 10, 15)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000010", "step-00000015"]
    newest = checkpoints.newest()
    assert newest
    assert (newest.step, newest.states, newest.cpu_seconds) == (15, ("model",), 1.5)


@settings(max_examples=examples(50))
@given(position=st.integers(0, 199), cut=st.booleans())
def test_any_changed_byte_and_any_cut_is_found(
    position: int, *, cut: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("checkpoints")
    checkpoints = Checkpoints(folder)
    save(checkpoints, 5, 10)
    file = folder / "step-00000010/model/weights.bin"
    data = bytearray(file.read_bytes())
    data[position] ^= 1
    file.write_bytes(data[:position] if cut else data)
    newest = checkpoints.newest()
    assert newest
    assert newest.step == 5


@pytest.mark.parametrize("manifest", ["", "{", "[]", '{"step": 10}', '{"step": "x", "states": [], "sha256": {}}'])
def test_a_broken_manifest_is_reported_and_skipped(
    tmp_path: Path, manifest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoints = Checkpoints(tmp_path)
    save(checkpoints, 5, 10)
    (tmp_path / "step-00000010/manifest.json").write_text(manifest)
    newest = checkpoints.newest()
    assert newest
    assert newest.step == 5
    assert "step-00000010 is broken" in capsys.readouterr().err


def test_broken_ones_and_half_written_ones_make_room(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    save(checkpoints, 5, 10)
    (tmp_path / "step-00000010/model/weights.bin").unlink()
    (tmp_path / ".writing-00000012-1").mkdir()
    checkpoints.newest()
    checkpoints.clean()
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000005"]


def test_nothing_is_published_once_the_owner_has_changed(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    assert not checkpoints.save(5, write, 0.0, lambda: False)
    assert list(tmp_path.iterdir()) == []
