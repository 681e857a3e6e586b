"""Which trials are let go without a node, how many, and when none is."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from controllers.core.actions import Action, Decision, Place, Proposal
from controllers.core.model import Goals, Node, NodeKind, NodeName, Progress, Snapshot, Trial, TrialId
from controllers.policies import Default, Edf, Guarded, LetGo, Pinned, Promote
from controllers.policies.kit.settings import NoState
from tests.controllers.policies.autoscaled_world import BIG, UNKNOWN, gated
from tests.controllers.policies.policy_fakes import node, snapshot, trial

FOUR = tuple(gated(name, submitted_at=float(number)) for number, name in enumerate("abcd"))
FULL = node("n1", 1.0)
RUNS = trial("r", "n1")


def seen(
    trials: tuple[Trial, ...],
    nodes: tuple[Node, ...] = (),
    kinds: tuple[NodeKind, ...] = (BIG,),
    *,
    now: float = 60.0,
    let_go: tuple[str, ...] = (),
) -> Snapshot:
    asking = {TrialId(name): now - 10 for name in let_go}
    return replace(snapshot(now, trials, nodes), kinds=kinds, let_go=asking)


def decided(at: Snapshot, policy: Any = None) -> list[Proposal]:  # noqa: ANN401 - each policy has its own state
    wrapped = LetGo(policy=policy or Edf())
    return list(wrapped.decide(at, wrapped.initial()).proposals)


def let_go(at: Snapshot, policy: Any = None) -> list[str]:  # noqa: ANN401 - each policy has its own state
    return [one.action.trial for one in decided(at, policy) if one.action == Place(one.action.trial)]


def test_trials_that_fit_on_no_node_are_let_go_and_the_reason_names_kind_and_time() -> None:
    (first, *_) = decided(seen(FOUR))
    assert first.action == Place(TrialId("a"))
    assert first.reason == "no node has room for it: it asks for one of kind big, which takes about 90 s"
    assert let_go(seen(FOUR)) == ["a", "b", "c", "d"]


def test_where_no_node_can_come_nothing_is_different() -> None:
    at = seen(FOUR, (FULL,), ())
    assert decided(at) == list(Edf().decide(at, Edf().initial()).proposals)


def test_those_that_fit_here_are_placed_and_only_the_others_let_go() -> None:
    wanted = [one.action for one in decided(seen(FOUR, (node("n1", 3.0),)))]
    places = {action.trial: action.nodes for action in wanted if isinstance(action, Place)}
    assert places == {"a": ("n1",), "b": ("n1",), "c": ("n1",), "d": ()}


def test_no_more_are_let_go_than_the_nodes_that_can_come_hold() -> None:
    small = NodeKind("small", 1.0, more=2.0, coming=1)
    assert let_go(seen(FOUR, kinds=(small,))) == ["a", "b", "c"]
    assert let_go(seen(FOUR, kinds=(replace(small, more=0.0, coming=0),))) == []


def test_those_let_go_before_count_until_they_have_a_node() -> None:
    asks = tuple(replace(one, gated=False) for one in FOUR[:2])
    small = NodeKind("small", 1.0, more=3.0)
    assert let_go(seen((*asks, *FOUR[2:]), kinds=(small,), let_go=("a", "b"))) == ["c"]


def test_one_that_was_let_go_long_ago_waits_for_something_else_and_counts_no_more() -> None:
    asks = replace(FOUR[0], gated=False)
    at = seen((asks, FOUR[1]), kinds=(NodeKind("small", 1.0, more=1.0),), let_go=("a",))
    assert let_go(at) == []
    assert let_go(replace(at, let_go={TrialId("a"): at.now - 601})) == ["b"]


def test_the_room_on_a_node_that_came_is_for_those_let_go() -> None:
    asks = replace(FOUR[0], gated=False)
    places = decided(seen((asks, FOUR[1]), (node("n1", 1.0),), (replace(BIG, more=0.0),), let_go=("a",)))
    assert places == []
    assert [one.action for one in decided(seen((FOUR[1],), (node("n1", 1.0),)))] == [
        Place(TrialId("b"), (NodeName("n1"),))
    ]


def test_the_order_is_that_of_the_policy() -> None:
    urgent = replace(FOUR[3], goals=Goals(deadline_at=100.0))
    assert let_go(seen((*FOUR[:3], urgent), kinds=(NodeKind("small", 1.0, more=1.0),))) == ["d"]


@dataclass(frozen=True)
class OnlyOdd:
    """Starts no trial but b and d, on any node with room."""

    name: ClassVar[str] = "only-odd"
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Place})
    state_type: ClassVar[type[NoState]] = NoState

    def initial(self) -> NoState:
        return NoState()

    def decide(self, at: Snapshot, state: NoState) -> Decision[NoState]:
        odd = [one for one in at.unended if one.waits and one.id in {"b", "d"}]
        return Decision(state, tuple(Proposal(Place.on(at.nodes[0].name, one), "") for one in odd if at.nodes))


def test_a_trial_that_the_policy_would_not_start_is_not_let_go() -> None:
    assert let_go(seen(FOUR), OnlyOdd()) == ["b", "d"]
    assert let_go(seen(FOUR, kinds=(UNKNOWN,)), OnlyOdd()) == ["b"]


def test_a_suspended_trial_goes_on_where_its_policy_would_let_it_and_not_where_it_lost() -> None:
    assert Promote().needs >= {Place}
    assert let_go(seen((replace(FOUR[0], suspensions=1),))) == ["a"]


def test_no_node_is_asked_for_where_a_trial_ends_before_one_could_be_there() -> None:
    ends = replace(RUNS, progress=Progress(1.0, 0.5, 0.5, 90, 60.0, steps_total=100))
    assert let_go(seen((ends, FOUR[0]), (FULL,))) == []
    assert let_go(seen((ends, *FOUR[:2]), (FULL,), (NodeKind("small", 1.0, more=9.0),))) == ["a"]
    lasts = replace(RUNS, progress=Progress(1.0, 0.5, 0.5, 10, 60.0, steps_total=100))
    assert let_go(seen((lasts, FOUR[0]), (FULL,))) == ["a"]


def test_a_gang_is_never_let_go() -> None:
    assert let_go(seen((gated("g", workers=2, max_workers=2),))) == []


def test_of_nodes_of_which_nothing_is_known_one_trial_tries() -> None:
    assert let_go(seen(FOUR, kinds=(UNKNOWN,))) == ["a"]
    assert "tries" in decided(seen(FOUR, kinds=(UNKNOWN,)))[0].reason
    asks = replace(FOUR[0], gated=False)
    assert let_go(seen((asks, *FOUR[1:]), kinds=(UNKNOWN,), let_go=("a",))) == []
    larger = replace(asks, base_cpu=8.0)
    assert let_go(seen((larger, *FOUR[1:]), kinds=(UNKNOWN,), now=700.0, let_go=("a",))) == []


def test_nobody_tries_at_once_nor_soon_while_others_run_nor_in_a_pause() -> None:
    assert let_go(seen(FOUR, kinds=(UNKNOWN,), now=14.0)) == []
    assert let_go(seen((RUNS, *FOUR), (FULL,), (UNKNOWN,), now=599.0)) == []
    assert let_go(seen((RUNS, *FOUR), (FULL,), (UNKNOWN,), now=601.0)) == ["a"]
    withheld = replace(gated("z"), withheld=True)
    assert let_go(seen((withheld, *FOUR), kinds=(UNKNOWN,))) == ["a"]
    assert let_go(seen(FOUR, kinds=(replace(UNKNOWN, more=0.0),))) == []


def test_nobody_tries_where_a_known_kind_would_do_though_no_more_of_it_can_come() -> None:
    assert let_go(seen(FOUR, kinds=(UNKNOWN, replace(BIG, more=0.0)))) == []
    huge = replace(FOUR[0], base_cpu=64.0)
    assert let_go(seen((huge,), kinds=(UNKNOWN, BIG))) == ["a"]


def test_under_a_policy_that_gives_no_places_a_trial_whose_search_waits_for_room_is_let_go() -> None:
    asking = replace(FOUR[0], search="{}")
    assert let_go(seen((asking, FOUR[1])), Default()) == ["a"]
    whole = Pinned(policy=Guarded(policy=LetGo(policy=Default())))
    actions = [one.action for one in whole.decide(seen((asking,)), whole.initial()).proposals]
    assert actions == [Place(TrialId("a"))]


def test_a_trial_may_ask_only_for_kinds_that_its_selectors_allow() -> None:
    other = NodeKind("other", 4.0, more=9.0)
    choosy = replace(FOUR[0], may_use=frozenset(), may_ask=frozenset({"other"}))
    (asks,) = decided(seen((choosy,), kinds=(replace(BIG, boots_s=1.0), other)))
    assert "of kind other" in asks.reason
    assert let_go(seen((choosy,), kinds=(BIG,))) == []
    assert math.isinf(UNKNOWN.cpu)
