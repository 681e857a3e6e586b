"""What is refused before a sweep is sent to a cluster: it would fail there, or lose what it learnt. Pure."""

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from controllers.core import labels
from controllers.core.goals import GoalError, goals_in
from controllers.core.model import Direction
from controllers.policies.registry import parse_policy
from controllers.worlds.local.workflow import ExpressionError, RetryRule
from hera_specon.submission.errors import SubmissionError
from hera_specon.submission.state_check import state_problem
from hera_specon.submission.trial_templates import Manifest, program, trial_templates, variable
from mlflow_hooks import contract

_TRACKING_URI: Final = "MLFLOW_TRACKING_URI"
_THIS_MACHINE: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def check_for_cluster(manifest: Manifest) -> None:
    """Check that the trials of a manifest can run, move and come back on a cluster.

    Raises:
        SubmissionError: They can't; it lists every reason.
    """
    spec = manifest.get("spec") or {}
    problems = [
        *_workflow_problems(spec),
        *(
            f"template {template.get('name')!r} {problem}"
            for template in trial_templates(manifest)
            for problem in _problems(template, spec)
        ),
    ]
    if problems:
        raise SubmissionError(problems)


def _workflow_problems(spec: Manifest) -> Iterator[str]:
    for parameter in (spec.get("arguments") or {}).get("parameters") or []:
        if all(parameter.get(field) is None for field in ("value", "valueFrom", "default")):
            yield f"parameter {parameter.get('name')!r} has no value; give it one with -p {parameter.get('name')}=VALUE"


def _problems(template: Manifest, spec: Manifest) -> Iterator[str]:
    main = program(template)
    if not main.get("image"):
        yield "names no image; give one with --image"
    if not main.get("command"):
        yield "names no command; Argo would have to look the image's own up in a registry"
    if "cpu" not in ((main.get("resources") or {}).get("requests") or {}):
        yield "requests no CPU, the share that a policy starts from"
    for found in (_identity(template), _tracking(template), _retry(template), state_problem(template, spec)):
        if found is not None:
            yield found
    yield from _annotations((template.get("metadata") or {}).get("annotations") or {})


def _identity(template: Manifest) -> str | None:
    ids = {name: variable(template, name) for name in (contract.ENV_TRIAL_ID, contract.ENV_SWEEP_ID)}
    missing = [name for name, value in ids.items() if not value]
    if missing:
        return f"sets no {' and no '.join(missing)}; build it with Sweep"
    fixed = [f"{name}={value!r}" for name, value in ids.items() if "{{" not in value]
    return f"gives every run the same identity: {', '.join(fixed)}; build it with Sweep" if fixed else None


def _tracking(template: Manifest) -> str | None:
    uri = variable(template, _TRACKING_URI)
    parts = urlsplit(uri)
    if "{{" in uri or any(entry.get("name") == _TRACKING_URI and entry.get("valueFrom") for entry in _env(template)):
        return None
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.hostname in _THIS_MACHINE:
        return (
            f"has {_TRACKING_URI}={uri!r}, which no pod can reach; "
            "give the server's address in the cluster with --mlflow-tracking-uri"
        )
    return None


def _env(template: Manifest) -> list[Manifest]:
    found: list[Manifest] = program(template).get("env") or []
    return found


def _retry(template: Manifest) -> str | None:
    strategy = template.get("retryStrategy")
    advice = f"so a trial that moves (exit {contract.EXIT_MIGRATE}) would end there; build it with Sweep"
    if not strategy:
        return f"has no retryStrategy, {advice}"
    expression = strategy.get("expression")
    policy = strategy.get("retryPolicy") or ("Always" if expression else "OnFailure")
    limit = strategy.get("limit")
    try:
        rule = RetryRule(None if limit is None else int(limit), policy, expression or None)
    except (ExpressionError, ValueError):
        return None  # more of Argo's language than is understood here; Argo judges it
    again = rule.allows(1, contract.EXIT_MIGRATE)
    return None if again else f"has a retryStrategy that makes no attempt after exit {contract.EXIT_MIGRATE}, {advice}"


def _annotations(notes: dict[str, Any]) -> Iterator[str]:
    if not notes.get(labels.ANNOTATION_OBJECTIVE):
        yield f"lacks the annotation {labels.ANNOTATION_OBJECTIVE}: the metric that says how good the model is"
    direction = notes.get(labels.ANNOTATION_DIRECTION)
    if direction not in set(Direction):
        yield f"has {direction!r} as annotation {labels.ANNOTATION_DIRECTION}, which is minimize or maximize"
    if policy := notes.get(labels.ANNOTATION_POLICY):
        try:
            parse_policy(str(policy))
        except ValueError as error:
            yield f"names the policy {policy!r}: {error}"
    try:
        goals_in({name: str(value) for name, value in notes.items() if "{{" not in str(value)})
    except GoalError as error:
        yield f"has a goal that can't be reached: {error}"
