"""Container and script templates: checked when read, and turned into a pod step once their values are known."""

from collections.abc import Mapping
from typing import Any, Final

from controllers.core import labels
from controllers.worlds.local.workflow.fields import check_fields
from controllers.worlds.local.workflow.findings import Findings
from controllers.worlds.local.workflow.pod_patch import grace_s
from controllers.worlds.local.workflow.quantity import parse_duration, parse_quantity
from controllers.worlds.local.workflow.retry import POLICIES, Backoff, RetryRule
from controllers.worlds.local.workflow.steps import LATE_TAGS, PodStep
from controllers.worlds.local.workflow.substitute import as_text, find_tags, substitute
from controllers.worlds.local.workflow.templates import Pod, Template
from mlflow_hooks.contract import ENV_ATTEMPT, ENV_CPUS, ENV_FLUSH, ENV_NODE, ENV_PARENT_RUN_ID, ENV_STATE_ROOT

DEFAULT_CPU: Final = 0.1
"""Cores of a step that requests none, as kube-scheduler counts it."""
WORLD_ENV: Final = frozenset({ENV_ATTEMPT, ENV_CPUS, ENV_FLUSH, ENV_NODE, ENV_PARENT_RUN_ID, ENV_STATE_ROOT})
"""Variables that the local world sets itself, so that their ``valueFrom`` need not be followed."""


def read_pod(found: Findings, node: Mapping[str, Any], path: str, shared: Mapping[str, Any]) -> Pod:
    """Read the container or script of the template ``node``; ``shared`` is the workflow's spec."""
    kind = "script" if "script" in node else "container"
    main, main_path = found.mapping(node[kind], f"{path}.{kind}"), f"{path}.{kind}"
    check_fields(found, kind, main, main_path)
    manifest = {
        "command": _texts(found, main.get("command"), f"{main_path}.command"),
        "args": _texts(found, main.get("args"), f"{main_path}.args"),
        "source": found.text(main.get("source"), f"{main_path}.source") if kind == "script" else None,
        "env": _env(found, main, main_path),
        **_resources(found, main, main_path),
        **_metadata(found, node, path, shared),
    }
    if not manifest["command"]:
        found.malformed(f"{main_path}.command", "is needed: without an image there is no default command")
    return Pod(manifest, _retry(found, node, path), grace_s(found, node, path, shared))


def build_pod(template: Template, pod: Pod, node_name: str, scope: Mapping[str, str]) -> PodStep:
    """Return ``pod`` as a step with the values of ``scope`` in the places of its tags.

    Raises:
        ValueError: A tag has no value, or what came out is no quantity.
    """
    manifest = substitute(pod.manifest, scope, LATE_TAGS if pod.retry else ())
    requests = {**manifest["limits"], **manifest["requests"]}
    limit = manifest["limits"].get("cpu")
    return PodStep(
        id=node_name,
        template=template.name,
        command=tuple(manifest["command"]),
        args=tuple(manifest["args"]),
        source=manifest["source"],
        env=manifest["env"],
        labels=manifest["labels"],
        annotations=manifest["annotations"],
        cpu=parse_quantity(requests["cpu"]) if "cpu" in requests else DEFAULT_CPU,
        memory=parse_quantity(requests["memory"]) if "memory" in requests else 0.0,
        cpu_limit=None if limit is None else parse_quantity(limit),
        retry=pod.retry,
        grace_s=pod.grace_s,
        workers=_workers(manifest["annotations"].get(labels.ANNOTATION_WORKERS, "1")),
    )


def _workers(text: str) -> int:
    if text.isdecimal() and int(text) > 0:
        return int(text)
    message = f"annotation {labels.ANNOTATION_WORKERS} must be a whole number above 0, not {text!r}"
    raise ValueError(message)


def _texts(found: Findings, value: object, path: str) -> list[str]:
    return [as_text(item) for item in found.sequence(value, path)]


def _env(found: Findings, main: Mapping[str, Any], path: str) -> dict[str, str]:
    env: dict[str, str] = {}
    for index, item in enumerate(found.sequence(main.get("env"), f"{path}.env")):
        entry, entry_path = found.mapping(item, f"{path}.env[{index}]"), f"{path}.env[{index}]"
        check_fields(found, "env", entry, entry_path)
        name = found.text(entry.get("name"), f"{entry_path}.name")
        if entry.get("valueFrom"):
            if name not in WORLD_ENV:
                found.unsupported(f"{entry_path}.valueFrom", f"{name} would come from an object of a cluster")
        else:
            env[name] = as_text(entry.get("value", ""))
    return env


def _resources(found: Findings, main: Mapping[str, Any], path: str) -> dict[str, Mapping[str, Any]]:
    resources = found.mapping(main.get("resources"), f"{path}.resources")
    check_fields(found, "resources", resources, f"{path}.resources")
    return {kind: _quantities(found, kind, resources, f"{path}.resources.{kind}") for kind in ("requests", "limits")}


def _quantities(found: Findings, kind: str, resources: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    amounts = found.mapping(resources.get(kind), path)
    check_fields(found, kind, amounts, path)
    for name, amount in amounts.items():
        if not any(find_tags(amount)):
            found.attempt(f"{path}.{name}", lambda amount=amount: parse_quantity(amount))  # type: ignore[misc]  # bound now
    return amounts


def _metadata(
    found: Findings, node: Mapping[str, Any], path: str, shared: Mapping[str, Any]
) -> dict[str, dict[str, str]]:
    merged: dict[str, dict[str, str]] = {"labels": {}, "annotations": {}}
    for source, where in ((shared.get("podMetadata"), "spec.podMetadata"), (node.get("metadata"), f"{path}.metadata")):
        metadata = found.mapping(source, where)
        check_fields(found, "podMetadata", metadata, where)
        for kind, texts in merged.items():
            pairs = found.mapping(metadata.get(kind), f"{where}.{kind}")
            texts.update({str(key): as_text(value) for key, value in pairs.items()})
    return merged


def _retry(found: Findings, node: Mapping[str, Any], path: str) -> RetryRule | None:
    if node.get("retryStrategy") is None:
        return None
    path = f"{path}.retryStrategy"
    strategy = found.mapping(node["retryStrategy"], path)
    check_fields(found, "retryStrategy", strategy, path)
    text = strategy.get("expression")
    policy = strategy.get("retryPolicy") or ("Always" if text else "OnFailure")
    if policy not in POLICIES:
        found.unsupported(f"{path}.retryPolicy", f"{policy!r} is none of {', '.join(POLICIES)}")
    limit = found.whole(strategy.get("limit"), f"{path}.limit")
    backoff = _backoff(found, strategy.get("backoff"), f"{path}.backoff")
    return found.attempt(f"{path}.expression", lambda: RetryRule(limit, policy, text or None, backoff))


def _backoff(found: Findings, node: object, path: str) -> Backoff | None:
    if node is None:
        return None
    backoff = found.mapping(node, path)
    check_fields(found, "backoff", backoff, path)
    seconds = found.attempt(f"{path}.duration", lambda: parse_duration(backoff.get("duration")))
    factor = found.whole(backoff.get("factor"), f"{path}.factor")
    cap = backoff.get("cap")
    cap_s = None if cap is None else found.attempt(f"{path}.cap", lambda: parse_duration(cap))
    return Backoff(seconds or 0.0, float(factor or 1), cap_s)
