"""Container and script templates: checked when read, and turned into a pod step once their values are known."""

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

import yaml

from controllers.core import foreign_yaml, kueue, labels
from controllers.core.after_attempt import TrialRetries
from controllers.core.devices import GPU
from controllers.core.expressions import tries_given, without_argo
from controllers.core.labels import GATE_PLACEMENT
from controllers.worlds.local.mps import MOST_CLIENTS
from controllers.worlds.local.workflow.fields import check_fields
from controllers.worlds.local.workflow.findings import Findings
from controllers.worlds.local.workflow.steps import LATE_TAGS, POLICIES, Backoff, OutputFile, PodStep, RetryRule
from controllers.worlds.local.workflow.templates import Pod, StepTemplate
from controllers.worlds.local.workflow.values import (
    ManifestValueError,
    as_text,
    find_tags,
    parse_duration,
    parse_quantity,
    substitute,
)
from controllers.worlds.local.workflow.volumes import read_mounts
from mlflow_hooks.contract import (
    ENV_ATTEMPT,
    ENV_CPUS,
    ENV_FLUSH,
    ENV_LEAVE_FILE,
    ENV_NODE,
    ENV_PARENT_RUN_ID,
    ENV_POD_IP,
    ENV_RANK,
    ENV_STATE_ROOT,
    ENV_WORLD_SIZE,
)

_ANNOTATION: Final = re.compile(r"metadata\.annotations\['([^']+)'\]")
DEFAULT_CPU: Final = 1.0
"""Cores of a step that requests none: most trainings keep a core busy."""
_LEAST_CPU: Final = 0.1
_SLACK: Final = 1e-9
WORLD_ENV: Final = frozenset(
    {ENV_ATTEMPT, ENV_CPUS, ENV_FLUSH, ENV_NODE, ENV_PARENT_RUN_ID, ENV_STATE_ROOT}
    | {ENV_RANK, ENV_WORLD_SIZE, ENV_POD_IP}
)
"""Variables that the local world sets itself or does without, so that their ``valueFrom`` need not be followed."""


def read_pod(findings: Findings, node: Mapping[str, Any], path: str, shared: Mapping[str, Any]) -> Pod:
    """Read the container or script of the template ``node``; ``shared`` is the workflow's spec."""
    kind = "script" if "script" in node else "container"
    main, main_path = findings.mapping(node[kind], f"{path}.{kind}"), f"{path}.{kind}"
    check_fields(findings, kind, main, main_path)
    resources = findings.mapping(main.get("resources"), f"{main_path}.resources")
    check_fields(findings, "resources", resources, f"{main_path}.resources")
    manifest = {
        "command": _texts(findings, main.get("command"), f"{main_path}.command"),
        "args": _texts(findings, main.get("args"), f"{main_path}.args"),
        "source": findings.text(main.get("source"), f"{main_path}.source") if kind == "script" else None,
        **_env(findings, main, main_path),
        **{
            kind: _quantities(findings, kind, resources, f"{main_path}.resources.{kind}")
            for kind in ("requests", "limits")
        },
        **_metadata(findings, node, path, shared),
    }
    mounts = read_mounts(findings, main, main_path, node, shared)
    if not manifest["command"]:
        findings.malformed(f"{main_path}.command", "is needed: without an image there is no default command")
    return Pod(
        manifest,
        read_retry(findings, node, path),
        grace_s(findings, node, path, shared),
        _timeout_s(findings, node, path),
        mounts,
        _output_files(findings, node, path, tuple(mount.path for mount in mounts)),
    )


def _output_files(
    findings: Findings, node: Mapping[str, Any], path: str, mounted: Sequence[str]
) -> dict[str, OutputFile]:
    """Return the files of the output parameters, which lie in a volume: all steps share the rest of this machine."""
    files: dict[str, OutputFile] = {}
    for name, source, where in read_outputs(findings, node, path):
        file, default = findings.text(source.get("path"), f"{where}.path"), source.get("default")
        if not any(PurePosixPath(file).is_relative_to(folder) for folder in mounted):
            why = f"all steps share this machine's folders, and {file!r} is in none of the step's own"
            findings.unsupported(f"{where}.path", f"{why}: mount an emptyDir at a path that this machine does not have")
        files[name] = OutputFile(file, None if default is None else as_text(default))
    return files


def read_outputs(
    findings: Findings, node: Mapping[str, Any], path: str
) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """Yield each output parameter of a template: its name, where its value is from, and where that stands."""
    path = f"{path}.outputs"
    outputs = findings.mapping(node.get("outputs"), path)
    check_fields(findings, "outputs", outputs, path)
    for index, item in enumerate(findings.sequence(outputs.get("parameters"), f"{path}.parameters")):
        where = f"{path}.parameters[{index}]"
        parameter = findings.mapping(item, where)
        check_fields(findings, "output", parameter, where)
        source = findings.mapping(parameter.get("valueFrom"), f"{where}.valueFrom")
        check_fields(findings, "valueFrom", source, f"{where}.valueFrom")
        yield findings.text(parameter.get("name"), f"{where}.name"), source, f"{where}.valueFrom"


def _timeout_s(findings: Findings, node: Mapping[str, Any], path: str) -> float | None:
    """Return how many seconds an attempt may last, None for any time: Argo has two fields for it."""
    limits: list[float | None] = [findings.whole(node.get("activeDeadlineSeconds"), f"{path}.activeDeadlineSeconds")]
    if node.get("timeout") is not None:
        limits.append(findings.attempt(f"{path}.timeout", lambda: parse_duration(node["timeout"])))
    return min((limit for limit in limits if limit is not None), default=None)


def guessed_cpu(nodes: Sequence[float], workers: int) -> float:
    """Return the cores that each of ``workers`` of a trial requests whose author named no request.

    It is one core, or the most with which all of them fit on ``nodes`` of so many cores, but a tenth of one at least
    where a node has that; no nodes mean any.
    """
    if not nodes:
        return DEFAULT_CPU

    def fit(part: float) -> bool:
        return sum(math.floor(cpu / part + _SLACK) for cpu in nodes) >= workers

    least = min(_LEAST_CPU, max(nodes))
    parts = sorted({DEFAULT_CPU, *(cpu / count for cpu in nodes for count in range(1, workers + 1))}, reverse=True)
    return next((part for part in parts if least <= part <= DEFAULT_CPU and fit(part)), least)


def build_pod(
    template: StepTemplate, pod: Pod, node_name: str, scope: Mapping[str, str], nodes: Sequence[float] = ()
) -> PodStep:
    """Return ``pod`` as a step with the values of ``scope`` in the places of its tags.

    Args:
        template: Its template.
        pod: What the template says.
        node_name: Argo's name of the step.
        scope: The values of tags.
        nodes: Cores of each node that it may run on, by which a request that nobody named is bounded.

    Raises:
        ManifestValueError: A tag has no value, or its value is no quantity.
    """
    manifest = substitute(pod.manifest, scope, LATE_TAGS if pod.retry else ())
    requests = {**manifest["limits"], **manifest["requests"]}
    workers = _workers(manifest["annotations"]) if labels.LABEL_SWEEP in manifest["labels"] else {}
    guessed = "cpu" not in requests or manifest["annotations"].get(labels.ANNOTATION_DEFAULT_CPU) == "true"
    cpu = guessed_cpu(nodes, workers.get("min_workers", 1)) if guessed else parse_quantity(requests["cpu"])
    gpus, gpu_part = _gpus(requests.get(GPU, 0))
    limit, most_memory = (manifest["limits"].get(name) for name in ("cpu", "memory"))
    return PodStep(
        id=node_name,
        template=template.name,
        command=tuple(manifest["command"]),
        args=tuple(manifest["args"]),
        source=manifest["source"],
        env=manifest["env"],
        env_from=manifest["env_from"],
        labels=manifest["labels"],
        annotations=manifest["annotations"],
        cpu=cpu,
        memory=parse_quantity(requests["memory"]) if "memory" in requests else 0.0,
        cpu_limit=None if limit is None else parse_quantity(limit),
        retry=pod.retry,
        grace_s=pod.grace_s,
        timeout_s=pod.timeout_s,
        gpus=gpus,
        gpu_part=gpu_part,
        memory_limit=None if most_memory is None else parse_quantity(most_memory),
        mounts=pod.mounts,
        secrets=tuple(manifest["secrets"]),
        cpu_guessed=guessed,
        outputs=pod.outputs,
        **workers,
    )


def _gpus(asked: Any) -> tuple[int, float]:  # noqa: ANN401 - any JSON value
    """Return how many GPUs are asked for, and which part of each: less than 1 only of a single one."""
    count = parse_quantity(asked)
    if count == int(count):
        return int(count), 1.0
    if 1 / MOST_CLIENTS <= count < 1:
        return 1, count
    message = f"{GPU} must be a whole number, or a part of one GPU from {1 / MOST_CLIENTS:.2g} to 1, not {asked!r}"
    raise ManifestValueError(message)


def _workers(annotations: Mapping[str, str]) -> dict[str, int]:
    """Return how many workers a trial has at most, and at least."""
    most = annotations.get(labels.ANNOTATION_WORKERS, "1")
    least = annotations.get(labels.ANNOTATION_MIN_WORKERS, most)
    for name, text in ((labels.ANNOTATION_WORKERS, most), (labels.ANNOTATION_MIN_WORKERS, least)):
        if not text.isdecimal() or int(text) < 1:
            message = f"annotation {name} must be a whole number above 0, not {text!r}"
            raise ManifestValueError(message)
    if int(least) > int(most):
        message = f"annotation {labels.ANNOTATION_MIN_WORKERS} is {least}, above {labels.ANNOTATION_WORKERS}, {most}"
        raise ManifestValueError(message)
    return {"workers": int(most), "min_workers": int(least)}


def _texts(findings: Findings, value: object, path: str) -> list[str]:
    return [as_text(item) for item in findings.sequence(value, path)]


def _env(findings: Findings, main: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the variables with a value, those that come from an annotation, with its name, and those from Secrets."""
    env: dict[str, str] = {}
    env_from: dict[str, str] = {}
    secrets: list[str] = []
    for index, item in enumerate(findings.sequence(main.get("env"), f"{path}.env")):
        entry, entry_path = findings.mapping(item, f"{path}.env[{index}]"), f"{path}.env[{index}]"
        check_fields(findings, "env", entry, entry_path)
        name = findings.text(entry.get("name"), f"{entry_path}.name")
        if name == ENV_LEAVE_FILE:
            continue  # here a trial is asked by a signal, and no kubelet would renew the file
        if entry.get("valueFrom"):
            if (note := _annotation(entry["valueFrom"])) is not None:
                env_from[name] = note
            elif "secretKeyRef" in entry["valueFrom"]:
                # Each attempt reads it itself. Read here, a secret would be kept in the run's files.
                secrets.append(name)
                if not {name, f"{name}_FILE"} & os.environ.keys():
                    why = (
                        f"it is a Secret: set the environment variable {name}, or {name}_FILE to the file that holds it"
                    )
                    findings.unsupported(f"{entry_path}.valueFrom", why)
            elif name not in WORLD_ENV:
                findings.unsupported(f"{entry_path}.valueFrom", f"{name} would come from an object of a cluster")
        else:
            env[name] = as_text(entry.get("value", ""))
    return {"env": env, "env_from": env_from, "secrets": tuple(secrets)}


def _annotation(source: object) -> str | None:
    """Return the annotation of its own pod that a variable comes from, None where it comes from elsewhere."""
    reference = source.get("fieldRef") if isinstance(source, Mapping) else None
    path = reference.get("fieldPath") if isinstance(reference, Mapping) else None
    match = _ANNOTATION.fullmatch(path) if isinstance(path, str) else None
    return None if match is None else match[1]


def _quantities(findings: Findings, kind: str, resources: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    amounts = findings.mapping(resources.get(kind), path)
    check_fields(findings, kind, amounts, path)
    for name, amount in amounts.items():
        if not any(find_tags(amount)):
            parse = _gpus if name == GPU else parse_quantity
            findings.attempt(f"{path}.{name}", lambda amount=amount, parse=parse: parse(amount))  # type: ignore[misc]  # bound now
    return amounts


def _metadata(
    findings: Findings, node: Mapping[str, Any], path: str, shared: Mapping[str, Any]
) -> dict[str, dict[str, str]]:
    merged: dict[str, dict[str, str]] = {"labels": {}, "annotations": {}}
    for source, where in ((shared.get("podMetadata"), "spec.podMetadata"), (node.get("metadata"), f"{path}.metadata")):
        metadata = findings.mapping(source, where)
        check_fields(findings, "podMetadata", metadata, where)
        for kind, texts in merged.items():
            pairs = findings.mapping(metadata.get(kind), f"{where}.{kind}")
            # Nobody queues on one machine, and pods have no names here, by which Kueue tells them apart.
            of_ours = {str(key): value for key, value in pairs.items() if not str(key).startswith(kueue.DOMAIN)}
            texts.update({key: as_text(value) for key, value in of_ours.items()})
    return merged


def read_retry(findings: Findings, node: Mapping[str, Any], path: str) -> TrialRetries | RetryRule | None:
    """Read the retryStrategy of the template ``node``, None where it has none."""
    if node.get("retryStrategy") is None:
        return None
    path = f"{path}.retryStrategy"
    strategy = findings.mapping(node["retryStrategy"], path)
    check_fields(findings, "retryStrategy", strategy, path)
    text = strategy.get("expression")
    failures = _failures_forgiven(findings, node, text)
    if failures is not None:
        return TrialRetries(failures)
    policy = strategy.get("retryPolicy") or ("Always" if text else "OnFailure")
    if policy not in POLICIES:
        findings.unsupported(f"{path}.retryPolicy", f"{policy!r} is none of {', '.join(POLICIES)}")
    limit = findings.whole(strategy.get("limit"), f"{path}.limit")
    backoff = _backoff(findings, strategy.get("backoff"), f"{path}.backoff")
    return findings.attempt(f"{path}.expression", lambda: RetryRule(limit, policy, text or None, backoff))


def _failures_forgiven(findings: Findings, node: Mapping[str, Any], expression: object) -> int | None:
    """Return how many failures the template of a sweep's trial forgives; None where it is another, or says nothing."""
    match node:
        case {"metadata": {"annotations": {labels.ANNOTATION_RETRIES: told}}}:
            return findings.whole(told, f"annotation {labels.ANNOTATION_RETRIES}")
    # Sweeps that were built before 0.3 have no such annotation.
    return tries_given(expression) if isinstance(expression, str) else None


def _backoff(findings: Findings, node: object, path: str) -> Backoff | None:
    if node is None:
        return None
    backoff = findings.mapping(node, path)
    check_fields(findings, "backoff", backoff, path)
    seconds = findings.attempt(f"{path}.duration", lambda: parse_duration(backoff.get("duration")))
    factor = findings.whole(backoff.get("factor"), f"{path}.factor")
    cap = backoff.get("cap")
    cap_s = None if cap is None else findings.attempt(f"{path}.cap", lambda: parse_duration(cap))
    return Backoff(seconds or 0.0, float(factor or 1), cap_s)


DEFAULT_GRACE_S: Final = 30.0
"""Kubernetes' terminationGracePeriodSeconds."""

_GRACE: Final = "terminationGracePeriodSeconds"
_HELPERS: Final = {"containers": "wait", "initContainers": "init"}
"""Argo's own containers beside a step's; a step is one process here, so what they are given is left aside."""


def grace_s(findings: Findings, node: Mapping[str, Any], path: str, shared: Mapping[str, Any]) -> float:
    """Return the seconds between SIGTERM and SIGKILL of the template ``node``; ``shared`` is the workflow's spec."""
    grace = DEFAULT_GRACE_S
    for source, where in ((shared, "spec"), (node, path)):
        patch = _patch(findings, source.get("podSpecPatch"), f"{where}.podSpecPatch")
        for name, value in patch.items():
            if name == _GRACE and (seconds := findings.whole(value, f"{where}.podSpecPatch.{name}")) is not None:
                grace = float(seconds)
            elif name != _GRACE and not _left_aside(name, value):
                findings.unsupported(f"{where}.podSpecPatch.{name}", f"only {_GRACE} has a meaning here")
    return grace


def _left_aside(name: str, value: object) -> bool:
    """Return whether ``name`` is a gate of ours or the resources of Argo's own containers."""
    if not isinstance(value, list):
        return False
    if name == "schedulingGates":
        return all(item == {"name": GATE_PLACEMENT} for item in value)
    return name in _HELPERS and all(
        isinstance(item, Mapping)
        and (item == {"name": "main"} or (item.get("name") == _HELPERS[name] and item.keys() <= {"name", "resources"}))
        for item in value
    )


def _patch(findings: Findings, text: object, path: str) -> Mapping[str, Any]:
    if text is None:
        return {}
    # Gates hold a pod until a controller has chosen its node; the local world does so before it starts a process.
    known = without_argo(text) if isinstance(text, str) else text
    if any(find_tags(known)):
        findings.unsupported(path, "only a patch without {{...}} can be read here")
        return {}
    try:
        return findings.mapping(foreign_yaml.parsed(findings.text(known, path)), path)
    except yaml.YAMLError as error:
        findings.malformed(path, f"is not YAML: {error}")
        return {}
