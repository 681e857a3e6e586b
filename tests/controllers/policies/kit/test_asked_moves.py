from controllers.core.model import NodeName, Phase, TrialId
from controllers.policies.kit.asked_moves import AskedMoves, with_destinations
from tests.controllers.policies.policy_fakes import node, snapshot, trial

ASKED = AskedMoves().with_asked(trial("a", "x"), NodeName("y"))


def test_a_move_is_done_once_a_later_attempt_runs_at_its_destination_and_by_default_is_never_repeated() -> None:
    arrived = trial("a", "y", attempt=2)
    after = ASKED.answered(snapshot(0.0, [arrived], [node("y")]))
    assert after == AskedMoves(arrived={TrialId("a"): 1})
    assert not after.allows(arrived)
    assert after.allows(arrived, most=2)


def test_moves_of_a_trial_are_counted_until_no_more_are_allowed() -> None:
    once = ASKED.answered(snapshot(0.0, [arrived := trial("a", "y", attempt=2)], []))
    back = trial("a", "x", attempt=3)
    twice = once.with_asked(arrived, NodeName("x")).answered(snapshot(1.0, [back], []))
    assert twice.arrived == {"a": 2}
    assert not twice.allows(back, most=2)


def test_a_move_that_failed_or_was_refused_may_be_asked_for_again() -> None:
    for back in (trial("a", "x", attempt=2), trial("a", "x", attempt=1), trial("a", "y", attempt=1)):
        after = ASKED.answered(snapshot(0.0, [back], []))
        assert after == AskedMoves()
        assert after.allows(back)


def test_a_move_under_way_counts_where_it_was_asked_to_go_if_the_world_does_not_tell() -> None:
    moving = trial("a", "x", phase=Phase.MOVING)
    seen = snapshot(0.0, [moving], [])
    assert ASKED.answered(seen) == ASKED
    assert with_destinations(seen, ASKED.asked).trials[0].moving_to == "y"
    told = snapshot(0.0, [trial("a", "x", phase=Phase.MOVING, destination=(NodeName("z"),))], [])
    assert with_destinations(told, ASKED.asked) == told


def test_nothing_is_kept_of_trials_that_have_ended() -> None:
    seen = snapshot(0.0, [trial("a", phase=Phase.SUCCEEDED), trial("b", phase=Phase.FAILED)], [])
    assert AskedMoves(ASKED.asked, {TrialId("b"): 1, TrialId("c"): 2}).answered(seen) == AskedMoves()


def test_parts_of_gangs_and_trials_that_do_not_run_are_not_moved() -> None:
    assert AskedMoves().allows(trial("a", "x", "y"))
    assert not AskedMoves().allows(trial("a", "x", workers=2))
    assert not AskedMoves().allows(trial("a", "x", phase=Phase.MOVING))
    assert AskedMoves().allows(trial("a", "x"))
