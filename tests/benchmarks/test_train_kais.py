"""The training of ``kais`` sees what the policy sees, and none of the sweeps that it is tested on."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from benchmarks.train_kais import __main__ as training  # noqa: E402 - torch may be missing
from benchmarks.train_kais import workloads  # noqa: E402
from benchmarks.train_kais.episodes import WHOLE, Exploring, Notes, Step, TrainedKais, explored, under  # noqa: E402
from benchmarks.train_kais.learning import Twin  # noqa: E402
from controllers.policies.kais.network import Embedding  # noqa: E402
from controllers.policies.kais.weights import Trained, read  # noqa: E402

pytestmark = pytest.mark.pytorch
ROUNDING = 0.05


class Beside(Exploring):
    """Keeps the scores that the policy had beside each step."""

    def place(self, embedding: Embedding, trial: int, pairs: np.ndarray, scores: np.ndarray) -> int:
        found = super().place(embedding, trial, pairs, scores)
        SCORES.append((self.notes.steps[-1], scores))
        return found

    def ways(self, embedding: Embedding, nodes: np.ndarray, scores: np.ndarray) -> np.ndarray:
        found = super().ways(embedding, nodes, scores)
        SCORES.append((self.notes.steps[-1], scores))
        return found


SCORES: list[tuple[Step, np.ndarray]] = []


def test_the_network_that_is_trained_scores_as_the_policy_does() -> None:
    twin = Twin(1)
    policy = TrainedKais(trained=Trained(twin.network(), WHOLE), chooser=Beside(Notes(), np.random.default_rng(0), 0.0))
    SCORES.clear()
    under(policy, "training", 0)
    first = [(step, scores) for step, scores in SCORES if step.now == SCORES[0][0].now][:1]
    shares = [(step, scores) for step, scores in SCORES if step.kind == "share"][-3:]
    assert first
    assert shares
    for step, scores in (*first, *shares):
        told = twin.logits([step]).detach().numpy().reshape(np.atleast_2d(scores).shape)
        roomy = np.isfinite(np.atleast_2d(scores))
        assert np.abs(told[roomy] - np.atleast_2d(scores)[roomy]).max() < ROUNDING


def test_the_same_seeds_explore_the_same_sweep() -> None:
    trained = Trained(Twin(1).network(), WHOLE)
    ends = [explored(trained, "training", 3, draw, 0.0).ended.tolist() for draw in (0, 0, 1)]
    assert ends[0] == ends[1]
    assert ends[0] != ends[2]


def test_sweeps_of_the_test_have_node_counts_and_sizes_that_training_has_never_seen() -> None:
    seen = [kind(seed) for kind in (workloads.training, workloads.validation) for seed in range(300)]
    tested = [workloads.test(nodes, seed) for nodes in (4, 8, 30, 100) for seed in range(4)]
    for what in (len, lambda nodes: {one.cpu for one in nodes}):
        known = [what(workload.nodes) for workload in seen]
        assert not [workload for workload in tested if what(workload.nodes) in known]
    lengths = {trial.work_s for workload in seen for trial in workload.trials}
    assert not [trial for workload in tested for trial in workload.trials if trial.work_s in lengths]


@pytest.mark.slow
def test_training_goes_on_where_it_stopped_and_ships_what_the_policy_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "LESSONS": 1,
        "TAUGHT_SWEEPS": 2,
        "SWEEPS": 1,
        "DRAWS": 2,
        "JUDGED": 1,
        "JUDGED_EVERY": 1,
    }.items():
        monkeypatch.setattr(training, name, value)
    monkeypatch.setattr(training, "SHIPPED", tmp_path / "weights.safetensors")
    monkeypatch.setattr(training, "PAGE", tmp_path / "page.md")
    for hours in ("1e-9", "1"):
        monkeypatch.setattr(sys, "argv", ["train_kais", "--cpu-hours", hours, "--folder", str(tmp_path), "--ship"])
        monkeypatch.setattr(training, "HOUR", 1e-3 if hours == "1" else 3600.0)
        if hours == "1":  # a budget that is more than the first round's
            done = training.Training.resumed(tmp_path / "checkpoint.pt").cpu_s
            monkeypatch.setattr(training, "HOUR", done + 1e-3)
        training.main()
    rounds = [json.loads(line)["round"] for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert rounds == [0, 1]
    assert read(tmp_path / "weights.safetensors").network.matrices
    assert "| round |" in (tmp_path / "page.md").read_text()
