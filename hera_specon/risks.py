"""What a policy that ends trials early may cost: told before a sweep starts, and on its page."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from controllers.core import labels
from controllers.core.policy import Policy
from controllers.policies.kit.settings import PolicyError
from controllers.policies.optuna_pruners.policy import OptunaPruner
from controllers.policies.promote.policy import LEVELS, Promote
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
    "promote:finish=best": MeasuredRisk(480, 0.071, 0.005, _PAGE),
    "promote:finish=fast": MeasuredRisk(480, 0.148, 0.010, _PAGE),
}
"""By what the risk is of, such as ``promote:finish=best``. Only figures that were measured stand here."""


def risks(policies: Iterable[Policy[Any]], measured: Mapping[str, MeasuredRisk] = MEASURED) -> list[str]:
    """Return a line for each of ``policies``, or part of one, that may end the trial which would become the best."""
    parts = (part for policy in policies for part in _parts(policy))
    named = dict.fromkeys(name for part in parts if (name := _ends_early(part)))
    return [_line(name, measured.get(name)) for name in named]


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
        if promote.risk is not None:
            lines.append(_promise(promote.risk))
            continue
        level = LEVELS[promote.finish]
        parts = ", ".join(f"{100 * rung:.0f}" for rung in level.rungs(promote.warmup))
        lines.append(
            f"promote:finish={promote.finish} compares trials after {parts} % of their training: those that are among "
            f"the best 1 / {level.eta:g} there go on, the others wait"
        )
    return list(dict.fromkeys(lines))


def _promise(risk: float) -> str:
    return (
        f"promote:risk={risk:g} trains two trials to their end and the others to 8 %, then those that are likeliest to "
        f"beat the best. It is to miss a model more than 1 % better in about {risk:.0%} of all sweeps. Where values "
        "are noisy, or trials gain late, it misses more"
    )


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


def _ends_early(policy: Policy[Any]) -> str:
    """Return what the risk is of, empty where the policy ends no trial that could still become the best."""
    if isinstance(policy, Promote) and policy.risk is not None:
        return f"promote:risk={policy.risk:g}"
    if isinstance(policy, Promote):
        return "" if policy.finish == "all" else f"promote:finish={policy.finish}"
    return "optuna" if isinstance(policy, OptunaPruner) else ""


def _line(name: str, risk: MeasuredRisk | None) -> str:
    told = f"{name} ends trials early, and may end the one that would have become the best: "
    if risk is None:
        return f"{told}how often is not measured. Of your own past sweeps `specon replay` tells it"
    return (
        f"{told}in {100 * risk.lost:.0f} % of {risk.sweeps} simulated sweeps it lost more than 1 % of the gap "
        f"between the best and the median trial, and {100 * risk.regret:.1f} % on average ({risk.source})"
    )
