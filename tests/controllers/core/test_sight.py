"""What an engine sees of its trials is the same, however little of it is looked at again."""

from dataclasses import fields, replace

from hypothesis import given
from hypothesis import strategies as st

from controllers.core.model import Phase, Progress, Sample, Snapshot, Trial, TrialId
from controllers.core.progress import merge
from controllers.core.sight import Sight
from tests.controllers.policies.policy_fakes import trial

names = st.sampled_from("abcdef")
shown = st.lists(st.tuples(names, st.sampled_from(list(Phase))), unique_by=lambda one: one[0], max_size=6)
told = st.dictionaries(names, st.integers(1, 9), max_size=6)
looks = st.lists(st.tuples(shown, told), min_size=1, max_size=8)


@given(looks)
def test_each_look_shows_all_trials_in_order_with_all_that_is_known_of_them(
    seen: list[tuple[list[tuple[str, Phase]], dict[str, int]]],
) -> None:
    sight, known = Sight({}), dict[TrialId, Progress]()
    trials: dict[tuple[str, Phase], Trial] = {}
    samples: dict[tuple[str, int], Sample] = {}
    for there, reports in seen:
        world = [trials.setdefault((name, phase), trial(name, phase=phase, progress=None)) for name, phase in there]
        source = {
            TrialId(name): samples.setdefault((name, step), Sample(1.0 / step, step, float(step)))
            for name, step in reports.items()
        }
        for one in world:
            if one.id in source and (merged := merge(known.get(one.id), source[one.id], one.direction)):
                known[one.id] = merged
        plain = Snapshot(0.0, tuple(replace(one, progress=known.get(one.id)) for one in world), ())
        found = Snapshot.in_order(0.0, sight.look(world, source), sight.unended, ())
        assert (found.trials, found.unended) == (plain.trials, plain.unended)


def test_what_is_not_new_is_the_same_object() -> None:
    sight, world = Sight({}), [trial("b", progress=None), trial("a", progress=None)]
    samples = {TrialId("a"): Sample(1.0, 1, 1.0)}
    before = sight.look(world, samples)
    samples[TrialId("b")] = Sample(1.0, 1, 1.0)
    after = sight.look([*world, trial("c")], samples)
    assert [old is new for old, new in zip(before, after, strict=False)] == [True, False]


def test_a_trial_keeps_all_else_where_its_progress_changes() -> None:
    before = trial(
        "a",
        "n",
        goals="goals",
        devices="devices",
        parameters="parameters",
        destination=("m",),
        gated=True,
        withheld=True,
    )
    after = before.with_progress(None)
    assert after == replace(before, progress=None)
    assert {field.name for field in fields(Trial) if getattr(before, field.name) != getattr(after, field.name)} <= {
        "progress"
    }
