"""The Argo expressions in a sweep's manifest: one text for the code that writes and for the code that reads it."""

import re
from collections.abc import Mapping
from typing import Final

from controllers.core.after_attempt import LEFT
from controllers.core.annotations import of_sweep
from controllers.core.labels import (
    ANNOTATION_ADOPTED,
    ANNOTATION_GANG,
    ANNOTATION_IDLE,
    ANNOTATION_LEFT,
    ANNOTATION_STOP,
    ANNOTATION_TRIES,
    GATE_PLACEMENT,
    INPUT_ATTEMPT,
    INPUT_TRIAL,
    MOVED_MESSAGE,
    PARAMETER_CONTINUE,
)

ARGOEXEC: Final = "/var/run/argo/argoexec"
"""Argo's own program, which is in every main container."""
ENDING: Final = "version"
"""What it is told where a pod shall only end, and well."""
HELPER_CPU: Final = "10m"
"""CPU request of Argo's containers ``init`` and ``wait``: without one ``wait`` hardly gets to run on a busy node.

The kubelet weighs a pod by the greater of what its init containers and its containers request, also when the former are
long over. With the trial's own request for ``init``, no resize could take a trial below that.
"""
HELPER_MEMORY: Final = "32Mi"
_EXITS: Final = " || ".join(f"lastRetry.exitCode == '{code}'" for code in sorted(LEFT))
MOVED: Final = f"({_EXITS} || lastRetry.message contains '{MOVED_MESSAGE}')"
"""Whether the attempt before left to go on elsewhere: by itself, or by force because it was deaf to the request."""
# Argo 3.6 knows nothing of the attempt before while it makes a pod. There each pod but a trial's first waits, and the
# controller that steers the workflow lets it go at once where nothing was to move.
_LAST: Final = "let before = get($env, 'lastRetry')"
_MAY_HAVE_MOVED: Final = f"retries != '0' && (before == nil || {MOVED.replace('lastRetry.', 'before.')})"
# Argo splits the names of annotations at every dot.
_DOMAIN, _, _NAME = ANNOTATION_ADOPTED.partition(".")
_ADOPTED: Final = f"workflow.annotations['{_DOMAIN}']?.['{_NAME}'] == workflow.uid"
_GATES: Final = f"[{{name: '{GATE_PLACEMENT}'}}]"

_STOP: Final = ANNOTATION_STOP.partition(".")[2]
_GANG: Final = ANNOTATION_GANG.partition(".")[2]
_LEFT: Final = ANNOTATION_LEFT.partition(".")[2]
_IDLE: Final = ANNOTATION_IDLE.partition(".")[2]
_TRIES: Final = ANNOTATION_TRIES.partition(".")[2]
_ATTEMPT: Final = f"inputs.parameters['{INPUT_ATTEMPT}']"
# A full cluster may have no room for the trial's own requests for hours, and its sweep would be over no sooner. Blanks
# stand between the braces, since two of them end an expression.
_LITTLE: Final = f"{{'$patch': 'replace', requests: {{cpu: '{HELPER_CPU}', memory: '{HELPER_MEMORY}'}} }}"
_NEEDS: Final = f", resources: {_LITTLE} "
_ENDS: Final = f"{{name: 'main', command: ['{ARGOEXEC}'], args: ['{ENDING}']{_NEEDS}}}"
_ANY_SWEEP: Final = "[A-Za-z0-9-]+"


def gates(sweep: str, *, first: bool = False, every: bool = False) -> str:
    """Return the expression of the scheduling gates of a trial's pod: ours where it is to wait for a controller.

    It is to wait where it follows a move or a suspension that a controller may have asked for: a drained node makes a
    trial exit as these do, and without a controller its next pod must not wait for one. With ``first`` it waits for its
    first place too; with ``every`` each pod waits, since a search gives it its hyperparameters. The pod that only ends
    the step of a stopped trial never waits.
    """
    # Without the number of retries, Argo would work it out once for all attempts, and miss a stop.
    waits = "retries != ''"
    if not every:
        moved = f"(retries == '0' || {_MAY_HAVE_MOVED})" if first else f"{_MAY_HAVE_MOVED} && {_ADOPTED}"
        waits = f"{_LAST}; {moved}"
    return f"{{{{={waits} && !({_is_stopped(sweep)}) ? {_GATES} : []}}}}"


def older_gates(sweep: str, *, first: bool = False) -> str:
    """Return what ``gates`` gave before 0.3: workflows that were built then have it. Argo 3.6 cannot work it out."""
    waits = f"(retries == '0' || {MOVED})" if first else f"{MOVED} && {_ADOPTED}"
    return f"{{{{={waits} && !({_is_stopped(sweep)}) ? {_GATES} : []}}}}"


def main_container(sweep: str) -> str:
    """Return the expression of a patch of a trial's main container: once it was stopped, the next pod only ends.

    Argo has no other way to let a step succeed whose last attempt has left. ``argoexec`` is in every main container.
    """
    # Argo works an expression out as soon as it knows all its names: the number of retries only at each attempt.
    return f"{{{{=retries != '' && {_is_stopped(sweep)} ? {_ENDS} : {{name: 'main'}} }}}}"


def workers(sweep: str, most: int) -> str:
    """Return the expression of the number of workers of a gang's attempt: ``most`` unless its annotation says another.

    The number of retries picks the attempt's own number. Argo expands a step again whenever it looks at it: a number
    for all attempts would make pods in the middle of one as soon as it grows.
    """
    plan = f"{_of_trial(sweep, _GANG)} ?? '{most}'"
    return f"{{{{=let plan = split({plan}, ','); plan[min(int(retries), len(plan) - 1)]}}}}"


def retries(sweep: str, most: int) -> str:
    """Return the expression that lets a failed attempt be followed by another, where fewer than ``most`` came before.

    Where they fail alike, a controller says in an annotation that fewer are enough; where it was interrupted, that
    there may be more.
    """
    # Without an input, Argo would work it out once for all attempts.
    tries = f"inputs.parameters.{INPUT_TRIAL} != '' ? {_of_trial(sweep, _TRIES)} ?? '{most}' : ''"
    return f"asInt(retries) < {{{{={tries}}}}}"


def leaves(sweep: str, most: int) -> str:
    """Return the expression that lets one that left be followed by another attempt, if fewer than ``most`` came before.

    Of a trial that leaves by itself again and again and comes no further, a controller says when it is enough.
    """
    # Without an input, Argo would work it out once for all attempts.
    enough = f"inputs.parameters.{INPUT_TRIAL} != '' ? {_of_trial(sweep, _IDLE)} ?? '{most}' : ''"
    return f"asInt(retries) < {{{{={enough}}}}}"


def losses(sweep: str, most: int, beyond: int) -> str:
    """Return the expression that lets a lost attempt be followed by another: ``beyond`` more than if it had failed."""
    tries = f"int({_of_trial(sweep, _TRIES)} ?? '{most}') + {beyond}"
    # Without an input, Argo would work it out once for all attempts.
    return f"asInt(retries) < {{{{=inputs.parameters.{INPUT_TRIAL} != '' ? {tries} : 0}}}}"


def gang_retries(sweep: str, failures: int) -> str:
    """Return the expression that forgives a gang ``failures`` attempts besides those that were asked to leave.

    An attempt of several pods has no exit code; so the annotation tells which of them left because they were asked.
    Where attempts fail alike, another says that fewer failures are to be forgiven.
    """
    # Without an input, Argo would work it out once for all attempts.
    left = f"let left = inputs.parameters.{INPUT_TRIAL} != '' ? {_of_trial(sweep, _LEFT)} ?? '' : ''"
    tries = f"let tries = {_of_trial(sweep, _TRIES)} ?? '{failures}'"
    return f"asInt(retries) < {{{{={left}; {tries}; int(tries) + (left == '' ? 0 : len(split(left, ',')))}}}}"


def worker_gates(sweep: str, *, first: bool = False) -> str:
    """Return the expression of the scheduling gates of a gang's worker, as ``gates`` does for a trial of one worker.

    Inside a gang's attempt nobody sees why the one before it ended, so the pods of each attempt but the first wait
    where a controller steers the workflow. Where that has planned for the trial before, Argo was told to run the trial
    again, and counts its attempts from the first: that waits too.
    """
    again = f"({_ATTEMPT} != '0' || {_of_trial(sweep, _GANG)} != nil) && {_ADOPTED}"
    waits = f"{_ATTEMPT} != ''" if first else again
    return f"{{{{={waits} && !({_is_stopped(sweep)}) ? {_GATES} : []}}}}"


def worker_container(sweep: str) -> str:
    """Return the expression of a patch of a worker's main container, as ``main_container`` for a trial of one."""
    return f"{{{{={_ATTEMPT} != '' && {_is_stopped(sweep)} ? {_ENDS} : {{name: 'main'}} }}}}"


def resource_claims(sweep: str, claims: Mapping[str, str], *, gang: bool) -> str:
    """Return the expression of the resource claims of a trial's pod: ResourceClaimTemplates by the claims' names.

    The pod that only ends the step of a stopped trial claims nothing: it would wait until a device is free.
    """
    made = ", ".join(
        f"{{name: '{name}', resourceClaimTemplateName: '{template}'}}" for name, template in claims.items()
    )
    begun = _ATTEMPT if gang else "retries"
    return f"{{{{={begun} != '' && {_is_stopped(sweep)} ? [] : [{made}]}}}}"


def claim_templates(patch: str) -> dict[str, str]:
    """Return the ResourceClaimTemplates in a podSpecPatch with ``resource_claims``, by the names of the claims."""
    return dict(_CLAIMED.findall(patch))


def without_argo(patch: str) -> str:
    """Return a trial's podSpecPatch with our expressions worked out for a place where no pod waits or is stopped."""
    for expression, value in _WITHOUT_ARGO:
        patch = expression.sub(value, patch)
    return patch


def tries_given(expression: str) -> int | None:
    """Return the number of attempts before the last that the retry expression of a trial allows; None without one.

    For a gang, only failures count. For any other trial, failures count, and so do the moves that it may make.
    """
    match = _TRIED.search(expression)
    return None if match is None else int(match[1])


def is_count_of_workers(text: str) -> bool:
    """Return whether ``text`` is what ``workers`` gives for some sweep."""
    return _COUNT.fullmatch(text) is not None


def _is_stopped(sweep: str) -> str:
    return f"{_of_trial(sweep, _STOP)} != nil"


def _of_trial(sweep: str, name: str) -> str:
    """Return the expression of a trial's own annotation of the workflow, nil where there is none."""
    return f"workflow.annotations['{_DOMAIN}']?.['{of_sweep(name, sweep)}' + inputs.parameters.{INPUT_TRIAL}]"


def _for_any_sweep(expression: str) -> re.Pattern[str]:
    needs = re.escape(_NEEDS)  # which older workflows lack
    return re.compile(re.escape(expression).replace(_ANY, _ANY_SWEEP).replace(needs, f"(?:{needs})?"))


def _any_claims(expression: str) -> re.Pattern[str]:
    none = re.escape("[] : []")
    return re.compile(_for_any_sweep(expression).pattern.replace(none, rf"{none[:-4]}\[[^\]]*\]"))


_ANY: Final = "ANYSWEEP"
_WITHOUT_ARGO: Final = (
    (_for_any_sweep(gates(_ANY)), "[]"),
    (_for_any_sweep(gates(_ANY, first=True)), "[]"),
    (_for_any_sweep(gates(_ANY, every=True)), "[]"),
    (_for_any_sweep(older_gates(_ANY)), "[]"),
    (_for_any_sweep(older_gates(_ANY, first=True)), "[]"),
    (_for_any_sweep(main_container(_ANY)), '{"name": "main"}'),
    (_for_any_sweep(worker_gates(_ANY)), "[]"),
    (_for_any_sweep(worker_gates(_ANY, first=True)), "[]"),
    (_for_any_sweep(worker_container(_ANY)), '{"name": "main"}'),
    *((_any_claims(resource_claims(_ANY, {}, gang=gang)), "[]") for gang in (False, True)),
)

_CLAIMED: Final = re.compile(r"\{name: '([a-z0-9-]{1,63})', resourceClaimTemplateName: '([a-z0-9.-]{1,253})'\}")
_COUNT: Final = re.compile(_for_any_sweep(workers(_ANY, 0)).pattern.replace("'0'", "'[0-9]+'"))
_TRIED: Final = re.compile(_for_any_sweep(_of_trial(_ANY, _TRIES)).pattern + r" \?\? '([0-9]{1,9})'")

SWEEP_UID: Final = f"{{{{=sprig.coalesce(workflow.parameters['{PARAMETER_CONTINUE}'] ?? '', workflow.uid)}}}}"
"""What the ids of sweep and trials begin with: the workflow's uid, or that of the workflow which it continues."""


def inside(tag: str) -> str:
    """Return ``tag`` without its braces."""
    return tag.removeprefix("{{").removesuffix("}}")
