"""What is refused before a sweep is sent to a cluster: it would fail there, or lose what it learnt. Pure."""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import urlsplit

from controllers.core import labels
from controllers.core.goals import GoalError, goals_in
from controllers.core.model import Direction
from controllers.policies.registry import parse_policy
from controllers.worlds.local.workflow import RetryRule, WorkflowError
from hera_specon.errors import SubmissionError
from hera_specon.manifest import Manifest, program, trial_templates, variable
from mlflow_hooks import contract
from mlflow_hooks.contract import ENV_STATE_ROOT

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
    except (WorkflowError, ValueError):
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


_OF_ONE_POD: Final = frozenset({"emptyDir", "ephemeral", "configMap", "secret", "downwardAPI", "projected", "image"})
_OF_ONE_NODE: Final = frozenset(
    {"awsElasticBlockStore", "azureDisk", "cinder", "fc", "gcePersistentDisk", "iscsi", "rbd", "vsphereVolume"}
)
_SHARED_MODE: Final = "ReadWriteMany"
ADVICE: Final = "give it a shared one: Sweep(state_claim='NAME of a ReadWriteMany PersistentVolumeClaim')"


def state_problem(template: Manifest, spec: Manifest) -> str | None:
    """Return why a trial that moves would lose its checkpoints, None where it would not."""
    root = variable(template, ENV_STATE_ROOT)
    if not root:
        return f"sets no {ENV_STATE_ROOT}; build it with Sweep"
    mount = _mount_of(template, root)
    if mount is None:
        return f"keeps checkpoints in {root}, where no volume is mounted: a trial that moves loses them; {ADVICE}"
    if mount.get("readOnly"):
        return f"keeps checkpoints in {root}, which is mounted read-only"
    why = _not_shared(str(mount.get("name")), template, spec)
    return None if why is None else f"keeps checkpoints in {root}, {why}: a trial that moves loses them; {ADVICE}"


def state_claim(template: Manifest, spec: Manifest) -> str | None:
    """Return the name of the claim that a trial keeps its state on, None where it is no existing claim."""
    mount = _mount_of(template, variable(template, ENV_STATE_ROOT))
    volume = {} if mount is None else _volumes(template, spec).get(str(mount.get("name")), {})
    claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
    return str(claim) if claim and "{{" not in str(claim) else None


def is_host_path(template: Manifest, spec: Manifest) -> bool:
    """Return whether a trial keeps its state in a folder of its node, which may or may not be the same everywhere."""
    mount = _mount_of(template, variable(template, ENV_STATE_ROOT))
    return mount is not None and "hostPath" in _volumes(template, spec).get(str(mount.get("name")), {})


def _mount_of(template: Manifest, root: str) -> Manifest | None:
    mounts = [mount for mount in program(template).get("volumeMounts") or [] if _covers(mount, root)]
    return max(mounts, key=lambda mount: len(str(mount["mountPath"])), default=None)


def _covers(mount: Manifest, root: str) -> bool:
    where = str(mount.get("mountPath") or "")
    return bool(where and root) and PurePosixPath(root).is_relative_to(where)


def _volumes(template: Manifest, spec: Manifest) -> dict[str, Any]:
    found = [*(spec.get("volumes") or []), *(template.get("volumes") or [])]
    return {str(volume.get("name")): volume for volume in found}


def _not_shared(name: str, template: Manifest, spec: Manifest) -> str | None:
    volume = _volumes(template, spec).get(name)
    if volume is None:
        modes = next((modes for claimed, modes in _claimed(spec) if claimed == name), None)
        if modes is None:
            return f"on volume {name!r}, which is not there"
        return None if _SHARED_MODE in modes else f"on a claim that one node at a time can mount ({', '.join(modes)})"
    if kind := next(iter(_OF_ONE_POD & volume.keys()), None):
        return f"on a volume of the pod alone ({kind})"
    if kind := next(iter(_OF_ONE_NODE & volume.keys()), None):
        return f"on a disk that one node at a time can mount ({kind})"
    return None


def _claimed(spec: Manifest) -> Iterator[tuple[str, list[str]]]:
    for claim in spec.get("volumeClaimTemplates") or []:
        name = str((claim.get("metadata") or {}).get("name"))
        yield name, [str(mode) for mode in (claim.get("spec") or {}).get("accessModes") or []]
