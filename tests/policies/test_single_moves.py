from controllers.core.model import NodeName, Phase, TrialId
from controllers.policies.kit.single_moves import SingleMoves, with_destinations
from tests.policies.policy_fakes import node, snapshot, trial

ASKED = SingleMoves().with_asked(trial("a", "x"), NodeName("y"))


def test_a_move_is_done_once_a_later_attempt_runs_at_its_destination_and_is_never_repeated() -> None:
    arrived = trial("a", "y", attempt=2)
    after = ASKED.answered(snapshot(0.0, [arrived], [node("y")]))
    assert after == SingleMoves(done=(TrialId("a"),))
    assert not after.allows(arrived)


def test_a_move_that_failed_or_was_refused_may_be_asked_for_again() -> None:
    for back in (trial("a", "x", attempt=2), trial("a", "x", attempt=1), trial("a", "y", attempt=1)):
        after = ASKED.answered(snapshot(0.0, [back], []))
        assert after == SingleMoves()
        assert after.allows(back)


def test_a_move_under_way_counts_where_it_was_asked_to_go_if_the_world_does_not_tell() -> None:
    moving = trial("a", "x", phase=Phase.MOVING)
    seen = snapshot(0.0, [moving], [])
    assert ASKED.answered(seen) == ASKED
    assert with_destinations(seen, ASKED.asked).trials[0].moving_to == "y"
    told = snapshot(0.0, [trial("a", "x", phase=Phase.MOVING, moving_to=NodeName("z"))], [])
    assert with_destinations(told, ASKED.asked) == told


def test_nothing_is_kept_of_trials_that_have_ended() -> None:
    seen = snapshot(0.0, [trial("a", phase=Phase.SUCCEEDED), trial("b", phase=Phase.FAILED)], [])
    assert SingleMoves(ASKED.asked, (TrialId("b"), TrialId("c"))).answered(seen) == SingleMoves()


def test_gangs_and_trials_that_do_not_run_are_not_moved() -> None:
    assert not SingleMoves().allows(trial("a", "x", "y"))
    assert not SingleMoves().allows(trial("a", "x", phase=Phase.MOVING))
    assert SingleMoves().allows(trial("a", "x"))
