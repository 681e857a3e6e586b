"""What a trial's run shows of the trials from whose checkpoints it went on."""

from controllers.core.model import TrialId
from controllers.tracking.tag_boards import trial_tags
from tests.controllers.policies.policy_fakes import trial


def test_a_clone_shows_its_parent_and_all_its_lineage_by_their_numbers() -> None:
    lineage = (TrialId("u.s.t003"), TrialId("u.s.t001"))
    tags = trial_tags(trial("u.s.t000", "x", lineage=lineage), None, None)
    assert (tags["specon.parent"], tags["specon.lineage"]) == ("t001", "t003,t001")
    assert not {"specon.parent", "specon.lineage"} & trial_tags(trial("u.s.t000", "x"), None, None).keys()
