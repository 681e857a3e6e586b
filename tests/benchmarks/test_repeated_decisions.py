import json
from pathlib import Path

from benchmarks.believability.decisions import repeated
from controllers.core.actions import Migrate, Resize
from controllers.core.model import NodeName, Snapshot, TrialId

LINES = (
    {"at": 5.0, "kind": "Resize", "trial": "run-1-00.vae.t0", "cpu": 0.03, "outcome": "done"},
    {"at": 6.0, "kind": "Migrate", "trial": "run-1-00.vae.t1", "node": "node-2", "outcome": "refused"},
    {"at": 9.0, "kind": "Migrate", "trial": "run-1-00.vae.t1", "node": "node-2", "outcome": "done"},
)


def test_only_what_was_carried_out_is_repeated_each_once_at_its_time(tmp_path: Path) -> None:
    (tmp_path / "actions.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in LINES))
    policy = repeated(tmp_path, "run-1-00")
    early = policy.decide(Snapshot(6.0, (), ()), policy.initial())
    assert [proposal.action for proposal in early.proposals] == [Resize(TrialId("vae.t0"), 0.03)]
    assert early.wake_at == 9.0
    late = policy.decide(Snapshot(20.0, (), ()), early.state)
    assert [proposal.action for proposal in late.proposals] == [Migrate(TrialId("vae.t1"), (NodeName("node-2"),))]
    assert (late.wake_at, policy.decide(Snapshot(30.0, (), ()), late.state).proposals) == (None, ())


def test_a_run_without_actions_has_nothing_to_repeat(tmp_path: Path) -> None:
    assert repeated(tmp_path, "run-1-00").script == ()
