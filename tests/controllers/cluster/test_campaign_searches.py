"""A campaign whose trials get their hyperparameters from a search in a process of its own."""

from collections.abc import Callable
from dataclasses import replace

from controllers.core.actions import Place
from controllers.core.model import Phase, Trial
from controllers.core.parameters import bound_parameters
from controllers.search import Dimension, NumberRange, SearchSpec
from tests.controllers.cluster.clusters_in_memory import gated
from tests.controllers.cluster.conftest import Stage
from tests.controllers.search.test_optuna_search import X


def _searched(it: Stage, number: int, spec: SearchSpec) -> Trial:
    name = f"{it.sweep}.t{number:03d}"
    return replace(gated(name), search=spec.written(), sweep=it.sweep)


def test_a_trial_of_a_search_starts_once_the_process_that_searches_has_answered(stage: Callable[..., Stage]) -> None:
    it = stage()
    waiting = _searched(it, 1, SearchSpec(sampler="tpe", space=(X,)))
    it.world.now = {waiting.id: waiting}
    it.step_until(it.start(), lambda: it.world.done)
    (placed,) = it.world.done
    assert isinstance(placed, Place)
    assert [name for name, _ in placed.point] == ["x"]


def test_a_search_that_would_compute_too_much_starts_no_trial_and_the_sweep_beside_it_does(
    stage: Callable[..., Stage],
) -> None:
    space = tuple(Dimension(name=f"x{number}", domain=NumberRange(low=0, high=1)) for number in range(32))
    dear = SearchSpec(sampler="tpe", settings={"n_ei_candidates": 10_000}, space=space)
    attacker, victim = stage(), stage()
    point = {one.name: 0.5 for one in space}
    done = [_searched(attacker, number, dear) for number in range(400)]
    trials = [replace(one, phase=Phase.SUCCEEDED, gated=False, parameters=bound_parameters(point)) for one in done]
    trials.append(_searched(attacker, 400, dear))
    attacker.world.now = {one.id: one for one in trials}
    waiting = _searched(victim, 1, SearchSpec(sampler="tpe", space=(X,)))
    victim.world.now = {waiting.id: waiting}
    hostile, harmless = attacker.start(), victim.start()

    def both() -> object:
        hostile.step(attacker.campaign)
        return victim.world.done

    victim.step_until(harmless, both)
    refusals = attacker.instruments.registry.get_sample_value(
        "specon_actions_total", {"kind": "place", "outcome": "refused"}
    )
    assert refusals
    assert not attacker.world.done
