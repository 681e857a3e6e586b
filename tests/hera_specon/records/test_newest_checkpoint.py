from pathlib import Path

from hera_specon.records.run_folder import newest_checkpoint


def test_the_newest_checkpoint_is_that_of_the_greatest_step(tmp_path: Path) -> None:
    for trial, step in (("s.t1", "00000009"), ("s.t1", "00000010"), ("s.t1", "123456789"), ("s.t10", "00000099")):
        (tmp_path / "state" / f"run-00.{trial}" / "checkpoints" / f"step-{step}").mkdir(parents=True)
    found = newest_checkpoint(tmp_path, "s.t1")
    assert found is not None
    assert found.name == "step-123456789"
    assert found.parts[-3] == "run-00.s.t1"


def test_a_trial_without_a_checkpoint_has_none(tmp_path: Path) -> None:
    assert newest_checkpoint(tmp_path, "s.t[0-9]") is None
