"""How a sweep fans out into trials, and what reaches each of them."""

from typing import Any

from hera.workflows import Artifact, Parameter, Workflow
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.worlds.argo.reading.planned import item_keys
from hera_specon import at_random, choice, every
from hera_specon.points import points
from hera_specon.space import value_text
from tests.hera_specon.built_sweeps import as_argo_puts_it, built, items, params_of, sweep
from tests.property_examples import examples


def test_a_sweep_is_one_template_to_start_and_one_for_its_trials() -> None:
    assert list(built()) == ["vae", "vae-trial"]


def test_all_trials_are_items_of_one_step_so_they_run_side_by_side() -> None:
    ((step,),) = built()["vae"]["steps"]
    assert step["template"] == "vae-trial"
    assert [item["trial"] for item in step["withItems"]] == ["t000", "t001", "t002"]


def test_a_failed_trial_stops_no_other() -> None:
    template = built()["vae"]
    assert "failFast" not in template
    assert "parallelism" not in template


def test_trial_numbers_of_a_large_sweep_sort_as_they_count() -> None:
    templates = built(trials=1001)
    key = item_keys(templates["vae"]["steps"][0][0])["trial"]
    names = [item[key] for item in items(templates)]
    assert names == sorted(names)
    assert names[-1] == "t1000"


texts = st.text(st.characters(exclude_characters="\"'\\{}", exclude_categories=("C", "Z")), max_size=8)


@given(st.lists(texts | st.integers() | st.floats(-1e9, 1e9), min_size=1, max_size=4, unique=True))
@settings(max_examples=examples(40))
def test_hyperparameters_reach_a_trial_unchanged_through_argos_substitution(options: list[Any]) -> None:
    space = {"x": choice(*options)}
    templates = built(space=space, search="grid", trials=None)
    for item, point in zip(items(templates), points(space, "grid", None, 0), strict=True):
        assert params_of(templates, item) == point
        assert as_argo_puts_it(item["x"]) == value_text(point["x"])


def test_each_hyperparameter_stands_once_in_the_workflow_unless_it_is_text_in_some_trials_only() -> None:
    assert set(items(built())[0]) == {"trial", "lr", "activation", "hidden"}
    mixed = built(space={"depth": choice(1, "auto")}, search="grid", trials=None)
    assert items(mixed) == [
        {"trial": "t000", "params": {"depth": 1}, "depth": "1"},
        {"trial": "t001", "params": {"depth": "auto"}, "depth": "auto"},
    ]


def test_hyperparameters_are_arguments_after_the_authors_own() -> None:
    assert built(args=["--epochs=3"])["vae-trial"]["container"]["args"] == [
        "--epochs=3",
        "--lr={{inputs.parameters.lr}}",
        "--activation={{inputs.parameters.activation}}",
        "--hidden={{inputs.parameters.hidden}}",
    ]


def test_every_input_of_a_trial_gets_an_argument() -> None:
    for arrivals in (None, every(50)):
        templates = built(arrivals=arrivals)
        for template in templates.values():
            for step in (step for group in template.get("steps", ()) for step in group):
                called = templates[step["template"]]
                declared = [parameter["name"] for parameter in called["inputs"]["parameters"]]
                assert [parameter["name"] for parameter in step["arguments"]["parameters"]] == declared


def test_arriving_trials_wait_in_a_template_of_their_own() -> None:
    templates = built(arrivals=every(50))
    assert [item["delay"] for item in items(templates)] == ["0s", "50s", "100s"]
    (wait,), (trial,) = templates["vae-arrival"]["steps"]
    assert wait["template"] == "vae-delay"
    assert trial["template"] == "vae-trial"
    assert templates["vae-delay"]["suspend"] == {"duration": "{{inputs.parameters.delay}}"}


def test_random_arrivals_have_durations_that_go_can_read() -> None:
    delays = [item["delay"] for item in items(built(arrivals=at_random(within=300, seed=1)))]
    assert all(float(delay.removesuffix("s")) <= 300 for delay in delays)


def test_parallelism_limits_the_trials() -> None:
    assert built(parallelism=2)["vae"]["parallelism"] == 2


def test_inputs_of_the_sweep_reach_every_trial() -> None:
    given = [Parameter(name="data", default="digits"), Artifact(name="weights", path="/in/weights")]
    templates = built(inputs=given, arrivals=every(1))
    for name in ("vae", "vae-arrival"):
        step = templates[name]["steps"][-1][0]
        assert {"name": "data", "value": "{{inputs.parameters.data}}"} in step["arguments"]["parameters"]
        assert step["arguments"]["artifacts"] == [{"name": "weights", "from": "{{inputs.artifacts.weights}}"}]
    assert {"name": "data", "default": "digits"} in templates["vae-trial"]["inputs"]["parameters"]


def test_building_twice_gives_the_same_workflow() -> None:
    with Workflow(generate_name="vae-", entrypoint="vae") as w:
        sweep(args=["--epochs=3"], env={"A": "1"}, arrivals=every(2), pod_spec_patch="priorityClassName: low")
    assert w.to_yaml() == w.to_yaml()
