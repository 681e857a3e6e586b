"""ResourceQuota and LimitRange of the namespace, against the trials of a sweep."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from controllers.core.expressions import HELPER_CPU
from controllers.worlds.argo.calls.untrusted import at, mappings, quantity, text
from hera_specon.doctor.facts import Json, LimitFacts, Unread
from hera_specon.doctor.findings import Finding, fault, ok, unknown, warning
from hera_specon.doctor.sweep_needs import PodNeeds, SweepNeeds, fitting
from hera_specon.formatting import cores

_GIB: Final = 2**30
_CPU: Final = ("requests.cpu", "cpu")
_MEMORY: Final = ("requests.memory", "memory")
_PODS: Final = ("pods", "count/pods")
_CPU_LIMIT: Final = ("limits.cpu",)
_MEMORY_LIMIT: Final = ("limits.memory",)
_GROWS: Final = "A share that grows counts, too."


def check_limits(facts: LimitFacts, needs: SweepNeeds | None) -> Iterator[Finding]:
    """Yield what quotas leave for a sweep, and what a LimitRange does to its pods and their resizes."""
    if isinstance(facts.quotas, Unread):
        advice = "A quota that is used up lets trials wait; ask an administrator what is left."
        yield unknown("quota", facts.quotas.told, advice, f"kubectl describe resourcequota -n {facts.name}")
    elif not facts.quotas:
        yield ok("quota", "the namespace has none")
    else:
        for quota in facts.quotas:
            yield _check_quota(quota, needs, facts)
    if isinstance(facts.ranges, Unread):
        advice = "A LimitRange may refuse a resize; ask an administrator."
        yield unknown("limit range", facts.ranges.told, advice, f"kubectl describe limitrange -n {facts.name}")
    elif not any(bounds_of(one) for one in facts.ranges):
        yield ok("limit range", "the namespace has none for containers and pods")
    else:
        for limit_range in facts.ranges:
            yield _check_range(limit_range, needs, facts.name)


def bounds_of(limit_range: Json) -> list[Mapping[str, Any]]:
    """Return the bounds of a LimitRange that hold for containers or for pods."""
    return [one for one in mappings(limit_range, "spec", "limits") if text(one, "type") in {"Container", "Pod"}]


def _defaults(facts: LimitFacts) -> set[str]:
    """Return what a LimitRange fills in where a container does not say it, such as ``limits.cpu``."""
    ranges = () if isinstance(facts.ranges, Unread) else facts.ranges
    bounds = [one for found in ranges for one in bounds_of(found) if text(one, "type") == "Container"]
    kinds = {"limits": "default", "requests": "defaultRequest"}
    return {
        f"{kind}.{what}"
        for one in bounds
        for kind, field in kinds.items()
        for what in ("cpu", "memory")
        # A default limit is the default request, too.
        if at(one, field, what) is not None or (kind == "requests" and at(one, "default", what) is not None)
    }


def _check_quota(quota: Json, needs: SweepNeeds | None, facts: LimitFacts) -> Finding:
    name = text(quota, "metadata", "name", most=253)
    subject, show = f"quota {name}", f"kubectl describe resourcequota {name} -n {facts.name}"
    if at(quota, "spec", "scopes") or at(quota, "spec", "scopeSelector"):
        advice = "It counts only pods of some kind, by its scopes; see whether trials are among them."
        return unknown(subject, "it has scopes", advice, show)
    left = _left(quota)
    told = ", ".join(f"{_shown(what, amount)} {what} left" for what, amount in sorted(left.items()))
    if needs is None:
        return ok(subject, told or "it bounds nothing that pods take")
    unsaid = [what for each in needs.each for what in _unsaid(each, left, _defaults(facts))]
    if unsaid:
        advice = "It refuses such pods: name it in Sweep(resources=Resources(...)), and in Argo's executor settings."
        return fault(
            subject, f"the trials say nothing of {', '.join(dict.fromkeys(unsaid))}, which it bounds", advice, show
        )
    fits = {each.sweep: min(_fits(each, left), each.pods) for each in needs.each}
    lacking = [each for each in needs.each if fits[each.sweep] < each.pods]
    if not lacking:
        return ok(subject, f"all {sum(each.pods for each in needs.each)} pods that may run at once fit; {told}")
    counted = ", ".join(f"{fits[each.sweep]:g} of {each.pods} pods of {each.sweep} fit at once" for each in lacking)
    advice = f"Lower parallelism= or the trials' requests, or ask for more. {_GROWS}"
    judge = fault if any(fits[each.sweep] < 1 for each in lacking) else warning
    return judge(subject, f"{counted} ({told})", advice, show)


def _left(quota: Json) -> dict[str, float]:
    hard = at(quota, "status", "hard")
    names = [name for name in (hard if isinstance(hard, Mapping) else ()) if isinstance(name, str)]
    known = {*_CPU, *_MEMORY, *_PODS, *_CPU_LIMIT, *_MEMORY_LIMIT}
    return {
        name: max(0.0, quantity(quota, "status", "hard", name) - quantity(quota, "status", "used", name))
        for name in names
        if name in known
    }


def _fits(each: PodNeeds, left: Mapping[str, float]) -> float:
    amounts = {
        _CPU: each.cpu,
        _MEMORY: each.memory,
        _PODS: 1.0,
        _CPU_LIMIT: each.cpu_limit,
        _MEMORY_LIMIT: each.memory_limit,
    }
    return min(
        (fitting(left[name], each) for names, each in amounts.items() for name in names if name in left),
        default=math.inf,
    )


def _unsaid(each: PodNeeds, left: Mapping[str, float], defaults: set[str]) -> Iterator[str]:
    said = {
        "requests.memory": each.memory or each.memory_limit,
        "limits.cpu": each.cpu_limit,
        "limits.memory": each.memory_limit,
    }
    for what, amount in said.items():
        bounded = what in left or what.removeprefix("requests.") in left
        if bounded and not amount and what not in defaults:
            yield what


def _check_range(limit_range: Json, needs: SweepNeeds | None, namespace: str) -> Finding:
    name = text(limit_range, "metadata", "name", most=253)
    subject, show = f"limit range {name}", f"kubectl describe limitrange {name} -n {namespace}"
    bounds = bounds_of(limit_range)
    most = min((cpu for one in bounds if (cpu := quantity(one, "max", "cpu"))), default=math.inf)
    given = min((cpu for one in bounds if (cpu := quantity(one, "default", "cpu"))), default=math.inf)
    least = max((quantity(one, "min", "cpu") for one in bounds if text(one, "type") == "Container"), default=0.0)
    ratio = min((found for one in bounds if (found := quantity(one, "maxLimitRequestRatio", "cpu"))), default=math.inf)
    told = [f"no share grows above {cores(min(most, given))} cores" if min(most, given) < math.inf else ""]
    told += [f"none falls below {cores(least)}" if least else ""]
    told += [f"none falls below a limit's {ratio:g}th part" if ratio < math.inf else ""]
    means = ", ".join(filter(None, told)) or "it bounds no share"
    if least > quantity({"cpu": HELPER_CPU}, "cpu"):
        advice = "Argo's own containers request less, so it refuses the trials' pods: ask for a lower minimum."
        return fault(subject, f"a container requests {cores(least)} cores at least", advice, show)
    too_large = [each.sweep for each in (needs.each if needs else ()) if each.own_cpu > most]
    if too_large:
        advice = "Lower cpu_request=, or ask for a higher maximum."
        return fault(subject, f"trials of {', '.join(too_large)} request more than {cores(most)} cores", advice, show)
    if not any(told):
        return ok(subject, means)
    advice = (
        "Resizes beyond that are refused, which costs no trial; ask for other bounds where shares shall change more."
    )
    return warning(subject, means, advice, show)


def _shown(what: str, amount: float) -> str:
    if "memory" in what:
        return f"{amount / _GIB:.1f} GiB"
    return cores(amount) or "0"
