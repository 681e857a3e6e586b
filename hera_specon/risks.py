"""What a policy that ends trials early may cost: told before a sweep starts, and on its page."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from controllers.core import labels
from controllers.core.policy import Policy
from controllers.policies.kit.settings import PolicyError
from controllers.policies.optuna_pruners.policy import OptunaPruner
from controllers.policies.promote.policy import Promote
from controllers.policies.registry import parse_policy
from hera_specon.manifest import Manifest, sweep_of, trial_templates


@dataclass(frozen=True, slots=True)
class MeasuredRisk:
    """What was measured of a policy over simulated sweeps whose trials were all trained to their end, too.

    ``regret`` is how much worse the best model left was than the best of all, as a part of the gap between that and the
    median trial: the mean over the sweeps. ``lost`` is the part of the sweeps with more than 1 %. ``source`` names the
    page with the figures.
    """

    sweeps: int
    lost: float
    regret: float
    source: str


_PAGE: Final = "docs/experiments/best-models.md"
MEASURED: Final[Mapping[str, MeasuredRisk]] = {
    "promote:rungs=best": MeasuredRisk(480, 0.071, 0.005, _PAGE),
    "promote:rungs=fast": MeasuredRisk(480, 0.148, 0.010, _PAGE),
}
"""By what the risk is of, such as ``promote:rungs=best``. Only figures that were measured stand here."""


def risks(policies: Iterable[Policy[Any]], measured: Mapping[str, MeasuredRisk] = MEASURED) -> list[str]:
    """Return a line for each of ``policies``, or part of one, that may end the trial which would become the best."""
    parts = (part for policy in policies for part in _parts(policy))
    return list(dict.fromkeys(_line(part, measured) for part in parts if _ends_early(part)))


def promise_of(policy: Policy[Any]) -> float | None:
    """Return the part of sweeps in which ``policy`` may miss a better model, as it promises; None without a promise."""
    promises = (part.promise for part in _parts(policy) if isinstance(part, Promote))
    return next((promise for promise in promises if promise is not None), None)


def deaf_searches(manifest: Manifest, policies: Iterable[Policy[Any]]) -> list[str]:
    """Return a line for the sweeps of ``manifest`` whose search would learn next to nothing under ``policies``."""
    if not any(isinstance(part, Promote) for policy in policies for part in _parts(policy)):
        return []
    notes = {
        sweep_of(template): (template["metadata"].get("annotations") or {}) for template in trial_templates(manifest)
    }
    searched = ", ".join(sorted(sweep for sweep, given in notes.items() if labels.ANNOTATION_SEARCH in given))
    if not searched:
        return []
    told = (
        f"promote starts most trials of {searched} before more than a few have come to their end, so the search learns "
        "next to nothing and its trials are about as good as those drawn by chance: leave promote out, or the search"
    )
    return [told]


def rungs(policies: Iterable[Policy[Any]]) -> list[str]:
    """Return a line for each part of ``policies`` that compares trials at rungs: at which parts of their training."""
    promoting = (part for policy in policies for part in _parts(policy) if isinstance(part, Promote))
    lines = []
    for promote in promoting:
        if promote.promise is not None:
            lines.append(
                f"{_named(promote)} trains two trials to their end and the others to 8 %, then those that are "
                "likeliest to beat the best"
            )
            continue
        parts = ", ".join(f"{100 * rung:.0f}" for rung in promote.level.rungs(promote.warmup))
        lines.append(
            f"{_named(promote)} compares trials after {parts} % of their training: those that are among "
            f"the best 1 / {promote.level.eta:g} there go on, the others wait"
        )
    return list(dict.fromkeys(lines))


def policies_in(specs: Sequence[object]) -> list[Policy[Any]]:
    """Return the policies of spec strings that were kept with a run, but for those that this version does not know."""
    policies: list[Policy[Any]] = []
    for spec in specs:
        try:
            policies.append(parse_policy(str(spec)))
        except PolicyError:
            continue
    return policies


def _parts(policy: Policy[Any]) -> Iterator[Policy[Any]]:
    within = getattr(policy, "within", ())
    if not within:
        yield policy
    for part in within:
        yield from _parts(part)


def _ends_early(policy: Policy[Any]) -> bool:
    """Whether the policy may end a trial that could still become the best."""
    if isinstance(policy, Promote):
        return policy.promise is not None or policy.rungs is not None
    return isinstance(policy, OptunaPruner)


def _named(policy: Policy[Any]) -> str:
    """Return what a risk is of: the policy with what it ends trials by."""
    if not isinstance(policy, Promote):
        return policy.name
    given = ("risk", policy.risk), ("rungs", policy.rungs), ("finish", policy.finish)
    name, value = next((name, value) for name, value in given if value is not None)
    return f"promote:{name}={value}"


def _line(policy: Policy[Any], measured: Mapping[str, MeasuredRisk]) -> str:
    name = _named(policy)
    told = f"{name} ends trials early, and may end the one that would have become the best: "
    if isinstance(policy, Promote) and policy.promise is not None:
        return (
            f"{told}it is to miss a model that leads by more than 1 %, and by more than the noise of a value, in about "
            f"{100 * policy.promise:.3g} % of all sweeps, on average over kinds of training. It counts the best value "
            "that a trial has reached: a trial that keeps only its newest checkpoints may have lost that model: save "
            "the best one, too"
        )
    if (risk := measured.get(name)) is None:
        return f"{told}how often is not measured. Of your own past sweeps `specon replay` tells it"
    return (
        f"{told}in {100 * risk.lost:.0f} % of {risk.sweeps} simulated sweeps it lost more than 1 % of the gap "
        f"between the best and the median trial, and {100 * risk.regret:.1f} % on average ({risk.source})"
    )
