"""Sweeps whose trials get their hyperparameters from a search, and pruners of Optuna's, in the manifest."""

from collections.abc import Callable
from typing import Any

import optuna
import pytest

from controllers.core import labels
from controllers.core.expressions import gates
from controllers.search import read_search
from hera_specon import SpaceError, SweepError, choice, cmaes, grid, integer, random, sampler, tpe, uniform, when
from hera_specon.search import Sampler
from mlflow_hooks import contract
from tests.hera_specon.built_sweeps import SPACE, built, environment, fields_of_the_pod, items, params_of


def test_a_search_leaves_its_trials_a_number_and_no_hyperparameters() -> None:
    templates = built(search=tpe(n_startup_trials=5), seed=7)
    assert items(templates) == [{"trial": f"t{number:03}"} for number in range(3)]
    notes = templates["vae-trial"]["metadata"]["annotations"]
    spec = read_search(notes[labels.ANNOTATION_SEARCH])
    assert (spec.sampler, spec.settings, spec.seed) == ("tpe", {"n_startup_trials": 5}, 7)
    assert [dimension.name for dimension in spec.space] == list(SPACE)


def test_its_pods_take_the_hyperparameters_from_annotations_and_pass_them_on_as_ever() -> None:
    trial = built(search=tpe())["vae-trial"]
    assert trial["container"]["args"] == [f"--{name}=$({contract.ENV_PARAM}{name})" for name in SPACE]
    fields = fields_of_the_pod(trial)
    assert fields[contract.ENV_PARAMS] == f"metadata.annotations['{labels.ANNOTATION_PARAMS}']"
    for name in SPACE:
        assert fields[contract.ENV_PARAM + name] == f"metadata.annotations['{labels.ANNOTATION_PARAM}{name}']"
    assert contract.ENV_PARAMS not in environment(trial)


def test_every_pod_of_it_waits_at_a_gate() -> None:
    patch = built(search=tpe())["vae-trial"]["podSpecPatch"]
    assert gates("vae", every=True) in patch
    assert gates("vae") not in patch


@pytest.mark.parametrize(("search", "same_as"), [(random(), "random"), (grid(), "grid")])
def test_random_and_grid_are_known_beforehand(search: str, same_as: str) -> None:
    space = {"a": choice(1, 2), "b": integer(1, 2)}
    assert built(space=space, search=search, trials=4) == built(space=space, search=same_as, trials=4)


def test_any_other_sampler_is_named_by_its_class() -> None:
    by_class = built(search=sampler(optuna.samplers.QMCSampler, scramble=True))
    assert by_class == built(search=sampler("QMCSampler", scramble=True))


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({"search": "bayes"}, "tpe()"),
        ({"search": sampler("BayesSampler")}, "BayesSampler"),
        ({"search": optuna.samplers.TPESampler()}, "TPESampler"),
        ({"search": tpe(popsize=3)}, "popsize"),
        ({"search": tpe(n_startup_trials=10**7)}, "10000000"),
        ({"search": tpe(n_ei_candidates=10_000), "trials": 10_000}, "one machine allows"),
        ({"search": tpe(), "trials": None}, "trials="),
        ({"search": cmaes(), "trials": 0}, "not 0"),
        ({"search": tpe(), "space": {"lr_": uniform(0, 1)}}, "'lr_'"),
        ({"search": tpe(), "space": {f"h{n}": uniform(0, 1) for n in range(40)}}, "space"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused_where_the_sweep_is_written(settings: Any, shown: str) -> None:  # noqa: ANN401
    with pytest.raises(SweepError) as caught:
        built(**settings)
    assert shown in str(caught.value)


def test_a_condition_gives_the_other_trials_what_does_not_matter() -> None:
    space = {"optimizer": choice("sgd", "adam"), "momentum": when("optimizer", "sgd", choice(0.5, 0.9), otherwise=0.0)}
    by_chance = built(space=space, trials=30)
    drawn = [params_of(by_chance, item) for item in items(by_chance)]
    assert {point["momentum"] for point in drawn if point["optimizer"] == "adam"} == {0.0}
    assert {point["momentum"] for point in drawn if point["optimizer"] == "sgd"} == {0.5, 0.9}
    in_order = built(space=space, search="grid", trials=3)
    whole = [params_of(in_order, item) for item in items(in_order)]
    assert whole == [
        {"optimizer": "sgd", "momentum": 0.5},
        {"optimizer": "sgd", "momentum": 0.9},
        {"optimizer": "adam", "momentum": 0.0},
    ]


@pytest.mark.parametrize(
    ("space", "shown"),
    [
        ({"b": when("a", 1, uniform(0, 1), otherwise=0.0), "a": choice(1, 2)}, "'a', which does not come before"),
        ({"a": choice(1, 2), "b": when("a", 3, uniform(0, 1), otherwise=0.0)}, "being 3, which it never is"),
    ],
)
def test_a_condition_that_makes_no_sense_is_refused(space: Any, shown: str) -> None:  # noqa: ANN401
    with pytest.raises(SpaceError, match=shown):
        built(space=space)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize(
    ("made", "policy"),
    [
        (optuna.pruners.MedianPruner, "optuna:pruner=median"),
        (lambda: optuna.pruners.MedianPruner(n_startup_trials=3), "optuna:pruner=median,n_startup_trials=3"),
        (optuna.pruners.SuccessiveHalvingPruner, "optuna"),
        (
            lambda: optuna.pruners.HyperbandPruner(min_resource=2, max_resource=50),
            "optuna:pruner=hyperband,min_resource=2,max_resource=50",
        ),
        (lambda: optuna.pruners.PercentilePruner(25.0), "optuna:pruner=percentile,percentile=25"),
        (lambda: optuna.pruners.ThresholdPruner(upper=2.5), "optuna:pruner=threshold,upper=2.5"),
        (lambda: optuna.pruners.PatientPruner(None, patience=4), "optuna:pruner=patient,patience=4"),
    ],
)
def test_a_pruner_of_optunas_becomes_a_part_of_the_policy(made: Callable[[], object], policy: str) -> None:
    pruner = made()
    named = built(pruner=pruner)["vae-trial"]["metadata"]["annotations"][labels.ANNOTATION_POLICY]
    assert named == f"{policy}+ahead"
    named = built(pruner=pruner, policy="specon")["vae-trial"]["metadata"]["annotations"][labels.ANNOTATION_POLICY]
    assert named == f"{policy}+specon"


@pytest.mark.parametrize("pruner", ["median", optuna.pruners.NopPruner(), Sampler("tpe")])
def test_what_is_no_such_pruner_is_refused(pruner: object) -> None:
    with pytest.raises(SweepError, match="pruner= is one of Optuna's"):
        built(pruner=pruner)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_pruner_around_another_cannot_be_written_down() -> None:
    around = optuna.pruners.PatientPruner(optuna.pruners.MedianPruner(), patience=2)
    with pytest.raises(SweepError, match="wrapped_pruner"):
        built(pruner=around)
