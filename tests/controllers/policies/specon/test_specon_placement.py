from collections.abc import Iterable, Mapping

from hypothesis import given
from hypothesis import strategies as st

from controllers.core.model import Category, Node, NodeName, Phase, Trial, TrialId
from controllers.policies.specon.placement import ScoredNodes, destination, rebalance
from tests.controllers.policies.policy_fakes import node, snapshot, trial

P, W, C = Category.PROGRESSING, Category.WATCHING, Category.CONVERGED


def board(nodes: Iterable[Node], trials: Mapping[Trial, Category]) -> ScoredNodes:
    categories = {one.id: category for one, category in trials.items()}
    return ScoredNodes.of(snapshot(0.0, trials, nodes), categories)


def fill(where: str, categories: Iterable[Category]) -> dict[Trial, Category]:
    return {trial(f"{where}-{index}", where): category for index, category in enumerate(categories)}


def test_the_scores_of_figure_6_22_send_job_1_to_worker_2() -> None:
    job = trial("job-1", "worker-4")
    trials = {
        **fill("worker-1", [P, P, P]),
        **fill("worker-2", [P, W]),
        **fill("worker-3", [P, P]),
        **fill("worker-4", [P] * 5),
        job: C,
    }
    workers = [f"worker-{index}" for index in range(1, 5)]
    cluster = board([node(name) for name in workers], trials)
    assert [cluster.score(NodeName(name)) for name in workers] == [6.0, 3.5, 4.0, 11.0]
    assert destination(cluster, job, strict=True) == "worker-2"


def test_a_trial_whose_own_node_is_among_the_best_stays() -> None:
    job = trial("job", "w1")
    cluster = board([node("w1"), node("w2")], {job: C, **fill("w2", [C])})
    assert destination(cluster, job, strict=False) == "w1"


def test_among_several_best_the_one_with_least_of_its_cpu_in_use_is_taken_then_the_first_by_name() -> None:
    job = trial("job", "w1")
    trials = {job: C, **fill("w1", [P, P])}
    used = [node("w1"), node("w2", 4.0, cpu_used=2.0), node("w3", 100.0, cpu_used=3.0)]
    assert destination(board(used, trials), job, strict=True) == "w3"
    even = [node("w1"), node("w3", 4.0, cpu_used=2.0), node("w2", 2.0, cpu_used=1.0)]
    assert destination(board(even, trials), job, strict=True) == "w2"


def test_the_guard_refuses_a_move_that_would_not_leave_the_trial_better_off() -> None:
    job = trial("job", "w1")
    trials = {job: C, **fill("w1", [W]), **fill("w2", [W])}
    cluster = board([node("w1"), node("w2")], trials)
    assert destination(cluster, job, strict=True) is None
    assert destination(cluster, job, strict=False) == "w2"


def test_a_full_and_an_unready_node_are_no_candidates() -> None:
    job = trial("job", "w1", cpu=2.0)
    trials = {job: C, **fill("w1", [P, P, P, P]), **fill("w3", [P])}
    full = [node("w1"), node("w2", 1.9), node("w3", 3.0)]
    assert destination(board(full, trials), job, strict=True) == "w3"
    away = [node("w1"), node("w2", ready=False), node("w3", 2.0)]
    assert destination(board(away, trials), job, strict=True) == "w1"


def test_a_share_that_was_lent_away_is_kept_free_for_the_trial_that_asked_for_it() -> None:
    job = trial("job", "w1")
    trials = {job: C, **fill("w1", [P, P, P]), trial("shrunk", "w2", cpu=0.2, base_cpu=1.5): C}
    assert destination(board([node("w1"), node("w2", 2.0)], trials), job, strict=True) == "w1"


def test_a_moving_trial_counts_where_it_is_heading_and_holds_its_room_at_both_ends() -> None:
    gone = trial("gone", "w1", phase=Phase.MOVING, destination=(NodeName("w2"),))
    cluster = board([node("w1", 2.0), node("w2", 1.5)], {gone: C})
    occupancy = cluster.occupancy
    assert occupancy.on(NodeName("w1")) == ()
    assert occupancy.on(NodeName("w2")) == (gone,)
    assert not occupancy.capacity.fits(trial("other", "w3"), NodeName("w2"))
    assert occupancy.capacity.requested(NodeName("w1")) == 1.0


def converged(counts: Mapping[str, int]) -> ScoredNodes:
    trials = {one: category for where, count in counts.items() for one, category in fill(where, [C] * count).items()}
    return board([node(name) for name in counts], trials)


def everyone(cluster: ScoredNodes) -> dict[TrialId, float]:
    return {name: float(index) for index, name in enumerate(sorted(cluster.trials))}


def test_the_idle_worker_of_figure_6_22_takes_the_four_trials_that_converged_last() -> None:
    """Worker-4 falls idle at 904.5 s; jobs 23 and 25 of Worker-3 and 27 and 3 of Worker-2 go there."""
    names = {
        "worker-1": ("14", "15", "16", "17"),
        "worker-2": ("27", "3", "18", "19", "20", "21"),
        "worker-3": ("23", "25", "28", "29", "30", "31"),
        "worker-4": (),
    }
    trials = {trial(job, where): C for where, jobs in names.items() for job in jobs}
    cluster = board([node(name) for name in names], trials)
    since = {one.id: 100.0 for one in trials}
    since.update({TrialId(job): 900.0 - late for late, job in enumerate(("23", "25", "27", "3"))})
    taken = [(one.id, to) for one, to in rebalance(cluster, since)]
    assert taken == [(TrialId(job), "worker-4") for job in ("23", "25", "27", "3")]
    assert [cluster.occupancy.count(NodeName(name)) for name in names] == [4, 4, 4, 4]


def test_a_pair_on_one_of_three_nodes_is_split_though_the_floor_of_the_balance_is_nought() -> None:
    cluster = converged({"w1": 2, "w2": 0, "w3": 0})
    assert len(list(rebalance(cluster, everyone(cluster)))) == 1


def test_a_lone_trial_is_not_sent_to_an_idle_node() -> None:
    cluster = converged({"w1": 1, "w2": 0})
    assert list(rebalance(cluster, everyone(cluster))) == []


def test_without_an_idle_node_only_those_far_below_the_balance_receive() -> None:
    near = converged({"w1": 3, "w2": 5})
    assert list(rebalance(near, everyone(near))) == []
    far = converged({"w1": 1, "w2": 9})
    assert len(list(rebalance(far, everyone(far)))) == 3


def test_with_no_ready_node_nothing_moves() -> None:
    cluster = board([node("w1", ready=False)], fill("w1", [C, C]))
    assert list(rebalance(cluster, everyone(cluster))) == []


@given(st.lists(st.integers(0, 8), min_size=1, max_size=6))
def test_rebalancing_ends_moves_nothing_twice_and_never_turns_back(counts: list[int]) -> None:
    cluster = converged({f"w{index}": count for index, count in enumerate(counts)})
    taken = list(rebalance(cluster, everyone(cluster)))
    assert len({one.id for one, _ in taken}) == len(taken)
    receivers, donors = {to for _, to in taken}, {one.node for one, _ in taken}
    assert not receivers & donors
    after = [cluster.occupancy.count(NodeName(f"w{index}")) for index in range(len(counts))]
    assert sum(after) == sum(counts)
    assert max(after) - min(after) <= max(counts) - min(counts)


def naive_destination(cluster: ScoredNodes, job: Trial, *, strict: bool) -> NodeName | None:
    """Algorithm 4 as it is written down: every node is looked at."""
    own = job.node
    candidates = [name for name in cluster.ready() if name == own or cluster.occupancy.capacity.fits(job, name)]
    least = min((cluster.score(name) for name in candidates), default=0.0)
    best = [name for name in candidates if cluster.score(name) == least]
    if not best or own in best:
        return own if best else None
    if strict and own is not None and least + 1.0 >= cluster.score(own):
        return None
    nodes = cluster.occupancy.capacity.nodes
    return min(best, key=lambda name: (nodes[name].cpu_used / nodes[name].cpu, name))


@given(
    nodes=st.lists(st.tuples(st.floats(0.5, 8.0), st.floats(0.0, 0.5), st.booleans()), min_size=1, max_size=6),
    jobs=st.lists(st.tuples(st.integers(0, 5), st.sampled_from([P, W, C]), st.floats(0.1, 3.0)), max_size=12),
    strict=st.booleans(),
)
def test_a_kept_up_order_of_nodes_finds_what_a_look_at_each_would_find(
    nodes: list[tuple[float, float, bool]], jobs: list[tuple[int, Category, float]], *, strict: bool
) -> None:
    places = [node(f"w{n}", cpu, cpu_used=used, ready=ready) for n, (cpu, used, ready) in enumerate(nodes)]
    trials = {
        trial(f"job-{n}", f"w{where % len(nodes)}", cpu=cpu): category for n, (where, category, cpu) in enumerate(jobs)
    }
    cluster = board(places, trials)
    for job in trials:
        expected = naive_destination(cluster, job, strict=strict)
        assert destination(cluster, job, strict=strict) == expected
        if expected is not None and expected != job.node:
            cluster.move(job, expected)
    assert [cluster.score(one.name) for one in places] == [
        sum({P: 2.0, W: 1.5, C: 1.0}[cluster.categories[job.id]] for job in cluster.occupancy.on(one.name))
        for one in places
    ]
