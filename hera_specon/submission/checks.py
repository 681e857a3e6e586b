"""What is refused before a sweep is sent to a cluster: it would fail there, or lose its checkpoints. Pure."""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import urlsplit

from controllers.core import labels
from controllers.core.after_sweeps import after_in
from controllers.core.annotations import most_read_of, why_unnameable
from controllers.core.devices import Devices
from controllers.core.errors import SearchError
from controllers.core.expressions import claim_templates, gates, tries_given, worker_gates
from controllers.core.goals import GoalError, aims_in, goals_in
from controllers.core.model import Direction
from controllers.core.stop_rules import rules_in
from controllers.driving.clones import why_no_clones
from controllers.policies.kit.settings import PolicyError
from controllers.policies.registry import parse_policy
from controllers.policies.wrappers.wrapper import one_objective_only
from controllers.search import IN_A_CLUSTER, check_cost, read_search, why_no_terminator
from controllers.worlds.argo.calls.untrusted import quantity
from controllers.worlds.argo.reading.planned import planned_trials
from controllers.worlds.local.workflow import ExpressionError, RetryRule
from hera_specon.devices import device_problems, devices_asked
from hera_specon.errors import SubmissionError, SweepError
from hera_specon.gang_request import GangRequest
from hera_specon.manifest import Manifest, program, runs_gang, sweep_of, trial_templates, variable
from hera_specon.settings import MOST_WORKERS
from hera_specon.several_objectives import aims_of, check_searched
from hera_specon.submission.working_folders import folder_problems
from mlflow_hooks import contract
from mlflow_hooks.run_artifacts import ADDRESS as RUN_ARTIFACTS
from mlflow_hooks.store_address import why_no_store

TRACKING_URI: Final = "MLFLOW_TRACKING_URI"
_THIS_MACHINE: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_OF_ONE_POD: Final = frozenset({"emptyDir", "ephemeral", "configMap", "secret", "downwardAPI", "projected", "image"})
_OF_ONE_NODE: Final = frozenset(
    {"awsElasticBlockStore", "azureDisk", "cinder", "fc", "gcePersistentDisk", "iscsi", "rbd", "vsphereVolume"}
)
_SHARED_MODE: Final = "ReadWriteMany"
_SHARE_IT: Final = (
    "give it a shared one, Sweep(state_claim='NAME of a ReadWriteMany PersistentVolumeClaim'), "
    "or a store of objects, Sweep(state='s3://bucket/prefix')"
)


def check_for_cluster(manifest: Manifest) -> None:
    """Check that the trials of a manifest can run, move and come back on a cluster.

    Raises:
        SubmissionError: They cannot; it lists every reason.
    """
    spec = manifest.get("spec") or {}
    problems = []
    for parameter in (spec.get("arguments") or {}).get("parameters") or []:
        name = parameter.get("name")
        if all(parameter.get(field) is None for field in ("value", "valueFrom", "default")):
            problems.append(f"parameter {name!r} has no value; give it one with -p {name}=VALUE")
    for template in trial_templates(manifest):
        problems += [f"template {template.get('name')!r} {problem}" for problem in _problems(template, spec)]
    if problems:
        raise SubmissionError(problems)


def _problems(template: Manifest, spec: Manifest) -> Iterator[str]:
    main = program(template)
    if not main.get("image"):
        yield "names no image; give one with --image"
    if not main.get("command"):
        yield "names no command; Argo would have to look up the image's own in a registry"
    if "cpu" not in ((main.get("resources") or {}).get("requests") or {}):
        yield "requests no CPU, the share that a policy starts from"
    yield from device_problems(main.get("resources") or {})
    ids = {name: variable(template, name) for name in (contract.ENV_TRIAL_ID, contract.ENV_SWEEP_ID)}
    fixed = [f"{name}={value!r}" for name, value in ids.items() if "{{" not in value]
    if missing := [name for name, value in ids.items() if not value]:
        yield f"sets no {' and no '.join(missing)}; build it with Sweep"
    elif fixed:
        yield f"gives every run the same identity: {', '.join(fixed)}; build it with Sweep"
    uri = variable(template, TRACKING_URI)
    read_from = any(entry.get("name") == TRACKING_URI and entry.get("valueFrom") for entry in main.get("env") or [])
    if "{{" not in uri and not read_from and not _is_reachable(uri):
        yield (
            f"has {TRACKING_URI}={uri!r}, which no pod can reach; "
            "give the server's address in the cluster with --mlflow-tracking-uri"
        )
    gang = next((item for item in spec.get("templates") or [] if runs_gang(item, template)), None)
    yield from _retry_problems((template if gang is None else gang).get("retryStrategy") or {})
    yield from _worker_problems(template, spec, gang)
    yield from _state_problems(template, spec)
    yield from folder_problems(template)
    notes = (template.get("metadata") or {}).get("annotations") or {}
    planned = planned_trials({"spec": spec}, [sweep_of(template)], {})
    unnameable = (why_unnameable(*trial.id.partition(".")[::2]) for trial in planned)
    yield from itertools.islice(filter(None, unnameable), 1)
    yield from _annotation_problems(notes, len(planned))
    yield from _population_problems(template, notes)
    if (rules := notes.get(labels.ANNOTATION_END_WHEN)) and not rules_in({labels.ANNOTATION_END_WHEN: str(rules)}):
        yield f"has {str(rules)!r:.200} as annotation {labels.ANNOTATION_END_WHEN}, which is no rule; use Sweep(stop=)"
    if (after := notes.get(labels.ANNOTATION_AFTER)) and not after_in({**notes, labels.ANNOTATION_AFTER: str(after)}):
        yield f"has {str(after)!r:.200} as annotation {labels.ANNOTATION_AFTER}, which names none; use Sweep(after=)"
    held = (gates(sweep_of(template), every=True), worker_gates(sweep_of(template), first=True))
    if labels.ANNOTATION_SEARCH in notes and not any(gate in str(template.get("podSpecPatch") or "") for gate in held):
        yield "lets a search choose hyperparameters, but has no gate that holds a trial until then; build it with Sweep"


def _population_problems(template: Manifest, notes: Mapping[str, Any]) -> Iterator[str]:
    """Yield why the policy that is named cannot clone these trials, where it would."""
    try:
        policy = str(notes.get(labels.ANNOTATION_POLICY) or "")
        why_not = policy and why_no_clones(
            parse_policy(policy),
            search=str(notes.get(labels.ANNOTATION_SEARCH) or ""),
            gang=str(notes.get(labels.ANNOTATION_WORKERS) or "1") != "1",
            store=variable(template, contract.ENV_STATE_STORE),
            printed=any(one.get("name") == contract.ENV_PRINTED for one in program(template).get("env") or []),
        )
    except PolicyError:
        return  # what is wrong with it is told anyway
    if why_not:
        yield f"names a policy that does not fit: {why_not}"


def _worker_problems(template: Manifest, spec: Manifest, gang: Manifest | None) -> Iterator[str]:
    """Yield why the workers of a trial could not train together."""
    notes = (template.get("metadata") or {}).get("annotations") or {}
    written = str(notes.get(labels.ANNOTATION_WORKERS, "1"))
    most = int(written) if written.isdecimal() and len(written) <= len(str(MOST_WORKERS)) else 0
    if not 1 <= most <= MOST_WORKERS:
        yield f"has {written!r} as annotation {labels.ANNOTATION_WORKERS}, which is from 1 to {MOST_WORKERS}"
        return
    fewest = str(notes.get(labels.ANNOTATION_MIN_WORKERS, most))
    if not fewest.isdecimal() or not 1 <= int(fewest) <= most:
        yield f"has {fewest!r} as annotation {labels.ANNOTATION_MIN_WORKERS}, which is from 1 to its {most} workers"
    if most > 1 and gang is None:
        yield f"asks for {most} workers, but runs one pod; build it with Sweep"
    if most > 1 and spec.get("parallelism") is not None:
        # Argo counts pods, and would start part of a gang, which waits for the rest and holds room for nothing.
        yield f"has {most} workers a trial, which the workflow's parallelism={spec['parallelism']} would cut in parts"


def _is_reachable(uri: str) -> bool:
    """Return whether ``uri`` is an address that another machine may reach."""
    parts = urlsplit(uri)
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.hostname not in _THIS_MACHINE


def _retry_problems(strategy: Manifest) -> Iterator[str]:
    advice = f"so a trial that moves (exit {contract.EXIT_MIGRATE}) would end there; build it with Sweep"
    if not strategy:
        yield f"has no retryStrategy, {advice}"
        return
    text, limit = str(strategy.get("expression") or ""), strategy.get("limit")
    policy = strategy.get("retryPolicy") or ("Always" if text else "OnFailure")
    expression = text if text and tries_given(text) is None else None  # that of a sweep follows what leaves by another
    if limit is not None and not str(limit).isdecimal():
        return  # a placeholder, which only Argo fills in
    try:
        again = RetryRule(None if limit is None else int(limit), policy, expression).allows(1, contract.EXIT_MIGRATE)
    except (ExpressionError, ValueError):  # a limit that is no number is Argo's to judge too
        return  # the expression uses more of Argo's language than we understand; Argo judges it
    if not again:
        yield f"has a retryStrategy that makes no attempt after exit {contract.EXIT_MIGRATE}, {advice}"


def _problems_of_aims(notes: Mapping[str, Any]) -> Iterator[str]:
    """Yield why several objectives or constraints make no sense, or do not go with a trial's policy or its search."""
    policy, search = (str(notes.get(name) or "") for name in (labels.ANNOTATION_POLICY, labels.ANNOTATION_SEARCH))
    try:
        aims = aims_in({name: str(value) for name, value in notes.items()})
        if aims.further and policy and (why_not := one_objective_only(parse_policy(policy))):
            yield f"names a policy that does not fit: {why_not}"
        check_searched(aims, search)
    except GoalError as error:
        yield f"has objectives or constraints that cannot be read: {error}"
    except SweepError as error:
        yield f"has a search that does not fit: {error}"
    except (PolicyError, SearchError):
        return  # what is wrong with these themselves is told anyway


def _problems_of_terminator(notes: Mapping[str, Any]) -> Iterator[str]:
    """Yield why a terminator could not end a sweep."""
    rules = rules_in({labels.ANNOTATION_END_WHEN: str(notes.get(labels.ANNOTATION_END_WHEN) or "")})
    search, several = str(notes.get(labels.ANNOTATION_SEARCH) or ""), bool(aims_of(notes).further)
    if why_not := why_no_terminator(rules, search, several=several, in_cluster=True):
        yield f"ends by a rule that it cannot have: {why_not}"


def _annotation_problems(notes: Mapping[str, Any], trials: int) -> Iterator[str]:
    for name, value in notes.items():
        if name.startswith(labels.DOMAIN) and len(str(value)) > most_read_of(name):
            yield f"has {len(str(value))} characters as annotation {name}; only {most_read_of(name)} are read"
    if not notes.get(labels.ANNOTATION_OBJECTIVE):
        yield f"lacks the annotation {labels.ANNOTATION_OBJECTIVE}: the metric that says how good the model is"
    direction = notes.get(labels.ANNOTATION_DIRECTION)
    if direction not in set(Direction):
        yield f"has {direction!r} as annotation {labels.ANNOTATION_DIRECTION}, which is minimize or maximize"
    if policy := notes.get(labels.ANNOTATION_POLICY):
        try:
            parse_policy(str(policy))
        except PolicyError as error:
            yield f"names the policy {policy!r}: {error}"
    if search := notes.get(labels.ANNOTATION_SEARCH):
        try:
            check_cost(read_search(str(search)), trials, IN_A_CLUSTER)
        except SearchError as error:
            yield f"has a search that no controller takes: {error}"
    if (keep := notes.get(labels.ANNOTATION_KEEP)) not in {None, *labels.Keep}:
        yield f"has {keep!r} as annotation {labels.ANNOTATION_KEEP}, which is {' or '.join(labels.Keep)}"
    yield from _problems_of_aims(notes)
    yield from _problems_of_terminator(notes)
    try:
        goals_in({name: str(value) for name, value in notes.items() if "{{" not in str(value)})
    except GoalError as error:
        yield f"has a goal that cannot be reached: {error}"


def _state_problems(template: Manifest, spec: Manifest) -> Iterator[str]:
    """Yield why a trial that moves would lose its checkpoints: no volume that every node mounts holds them."""
    root = variable(template, contract.ENV_STATE_ROOT)
    mount, volume = _state_volume(template, spec)
    where, store = f"keeps checkpoints in {root}", variable(template, contract.ENV_STATE_STORE)
    if not root:
        yield f"sets no {contract.ENV_STATE_ROOT}; build it with Sweep"
    elif store:
        if why_not := why_no_store(store):
            yield f"keeps checkpoints in {store!r}, which {why_not}"
        elif store.startswith("file:"):
            yield f"keeps checkpoints in {store}, a folder of whichever node it runs on: a trial that moves loses them"
    elif mount is None:
        yield f"{where}, where no volume is mounted: a trial that moves loses them; {_SHARE_IT}"
    elif mount.get("readOnly"):
        yield f"{where}, which is mounted read-only"
    elif (why := _why_not_shared(str(mount.get("name")), volume, spec)) is not None:
        yield f"{where}, {why}: a trial that moves loses them; {_SHARE_IT}"


def _why_not_shared(name: str, volume: Manifest | None, spec: Manifest) -> str | None:
    """Return why not every node can mount ``volume``, None if it can; without one, the workflow may make a claim."""
    if volume is None:
        for claim in spec.get("volumeClaimTemplates") or []:
            if (claim.get("metadata") or {}).get("name") == name:
                modes = [str(mode) for mode in (claim.get("spec") or {}).get("accessModes") or []]
                listed = ", ".join(modes)
                return None if _SHARED_MODE in modes else f"on a claim that one node at a time can mount ({listed})"
        return f"on volume {name!r}, which does not exist"
    if kind := next(iter(_OF_ONE_POD & volume.keys()), None):
        return f"on a volume of the pod alone ({kind})"
    if kind := next(iter(_OF_ONE_NODE & volume.keys()), None):
        return f"on a disk that one node at a time can mount ({kind})"
    return None


def _state_volume(template: Manifest, spec: Manifest) -> tuple[Manifest | None, Manifest | None]:
    """Return the mount that holds a trial's checkpoints, and its volume; None for what is not there."""
    root = variable(template, contract.ENV_STATE_ROOT)
    mounts = [
        mount
        for mount in program(template).get("volumeMounts") or []
        if root and mount.get("mountPath") and PurePosixPath(root).is_relative_to(str(mount["mountPath"]))
    ]
    mount = max(mounts, key=lambda mount: len(str(mount["mountPath"])), default=None)
    volumes = [*(template.get("volumes") or []), *(spec.get("volumes") or [])]
    named = (volume for volume in volumes if mount and str(volume.get("name")) == str(mount.get("name")))
    return mount, next(named, None)


def state_claims(manifest: Manifest) -> set[str]:
    """Return the existing claims that the trials of a manifest keep their checkpoints on."""
    volumes = (_state_volume(template, manifest["spec"])[1] or {} for template in trial_templates(manifest))
    claims = (str((volume.get("persistentVolumeClaim") or {}).get("claimName") or "") for volume in volumes)
    return {claim for claim in claims if claim and "{{" not in claim}


def asked_devices(manifest: Manifest) -> dict[str, Devices]:
    """Return the devices that each trial of a sweep asks for, by the sweep's name."""
    return {
        sweep_of(template): devices_asked(program(template).get("resources") or {})
        for template in trial_templates(manifest)
    }


def asked_claims(manifest: Manifest) -> dict[str, dict[str, str]]:
    """Return the ResourceClaimTemplates of each trial's claims, by the claims' names, by the name of its sweep."""
    return {
        sweep_of(template): claim_templates(str(template.get("podSpecPatch") or ""))
        for template in trial_templates(manifest)
    }


def asked_gangs(manifest: Manifest) -> dict[str, GangRequest]:
    """Return what the least number of workers of a sweep's trials asks for, by the sweep's name; of gangs only."""
    request_of: dict[str, GangRequest] = {}
    for template in trial_templates(manifest):
        notes = template["metadata"].get("annotations") or {}
        least = int(notes.get(labels.ANNOTATION_MIN_WORKERS) or notes.get(labels.ANNOTATION_WORKERS) or 1)
        requests = (program(template).get("resources") or {}).get("requests") or {}
        if least > 1:
            cpu, memory = quantity(requests, "cpu"), quantity(requests, "memory")
            request_of[sweep_of(template)] = GangRequest(least, cpu, memory)
    return request_of


def search_warning(manifest: Manifest) -> str | None:
    """Return what to know if a search chooses the hyperparameters of trials: they start only under a controller."""
    notes = {sweep_of(item): (item["metadata"].get("annotations") or {}) for item in trial_templates(manifest)}
    searched = sorted(sweep for sweep, given in notes.items() if labels.ANNOTATION_SEARCH in given)
    if not searched:
        return None
    return (
        f"the trials of {', '.join(searched)} wait for a controller: it gives each its hyperparameters when it starts. "
        "Without one, `specon release` starts them with hyperparameters drawn by chance"
    )


def stop_warning(manifest: Manifest) -> str | None:
    """Return what to know if rules are to end a sweep early: only a controller does."""
    notes = {sweep_of(item): (item["metadata"].get("annotations") or {}) for item in trial_templates(manifest)}
    ended = sorted(sweep for sweep, given in notes.items() if labels.ANNOTATION_END_WHEN in given)
    if not ended:
        return None
    return f"only a controller ends {', '.join(ended)} by stop=: without one, all of its trials train to their end"


def after_warning(manifest: Manifest) -> str | None:
    """Return what to know if a sweep is to learn from earlier ones: only a controller reads them."""
    notes = {sweep_of(item): (item["metadata"].get("annotations") or {}) for item in trial_templates(manifest)}
    learning = sorted(sweep for sweep, given in notes.items() if labels.ANNOTATION_AFTER in given)
    if not learning:
        return None
    return f"only a controller reads what {', '.join(learning)} learns by after=; it logs how many trials that are"


def keep_warning(manifest: Manifest) -> str | None:
    """Return what to know if a sweep wants checkpoints removed at its end: no controller can reach them."""
    for template in trial_templates(manifest):
        keep = (template["metadata"].get("annotations") or {}).get(labels.ANNOTATION_KEEP)
        if keep not in {None, labels.Keep.ALL}:
            store = variable(template, contract.ENV_STATE_STORE)
            if store == RUN_ARTIFACTS:
                how = "deleting their runs in MLflow does"
            elif store:
                how = f"`specon clean --state {store}` does"
            else:
                how = "`specon clean --folder PATH` does where their volume is mounted"
            return (
                f"keep={keep!r} removes no checkpoints in a cluster at the end of sweep {sweep_of(template)!r}: {how}"
            )
    return None


def host_path_warning(manifest: Manifest) -> str | None:
    """Return what to know if trials keep their checkpoints in a folder of their node, which may differ by node."""
    volumes = (_state_volume(template, manifest["spec"])[1] or {} for template in trial_templates(manifest))
    if any("hostPath" in volume for volume in volumes):
        return "checkpoints go to a folder of the node (hostPath): that must be the same file system on every node"
    return None
