"""Turn the template of a container or script into the template of a sweep's trials."""

import json
from collections.abc import Mapping
from collections.abc import Sequence as Ordered
from dataclasses import dataclass, field
from typing import Any, Final

from hera.workflows.models import (
    Arguments,
    Artifact,
    Container,
    EnvVar,
    EnvVarSource,
    Inputs,
    IntOrString,
    Metadata,
    ObjectFieldSelector,
    ParallelSteps,
    Parameter,
    ResourceClaim,
    ResourceRequirements,
    Sequence,
    Template,
    WorkflowStep,
)

from controllers.core import labels
from controllers.core.after_sweeps import after_notes
from controllers.core.aims import Aims
from controllers.core.expressions import SWEEP_UID, workers
from controllers.core.means import NO_MEANS, Means, means_notes
from controllers.core.stop_rules import NO_RULES, StopRules, rules_notes
from controllers.core.word_script import wrap
from hera_specon.devices import device_problems, tolerations
from hera_specon.errors import SweepError
from hera_specon.flags import Flag
from hera_specon.goals import SweepGoals
from hera_specon.pod_spec import (
    LEAVE_FILE,
    container_security,
    leave_mount,
    leave_volume,
    pod_patch,
    pod_security,
    python_mount,
    python_volume,
)
from hera_specon.printed_metrics import PrintedMetrics
from hera_specon.queues import as_groups_of_one
from hera_specon.settings import Objective, Workers, check_distinct, input_name
from hera_specon.several_objectives import aims_notes
from hera_specon.space import Point
from hera_specon.trial_retries import gang_trial_retries, trial_retries
from mlflow_hooks import contract
from mlflow_hooks.foreign_json import parsed
from mlflow_hooks.printed import carried
from mlflow_hooks.printed.command import read_by

DEFAULT_CPU = "1"
"""CPU request of a trial whose author names none: most trainings keep a core busy. There is no limit above it."""

FLUSH_S = "300"
"""Seconds for which a trial that has ended waits for MLflow: in a cluster nobody else sends what it would leave."""

_OF_WORKERS: Final = (labels.INPUT_ATTEMPT, labels.INPUT_RANK, labels.INPUT_WORKERS)


@dataclass(frozen=True, slots=True)
class TrialSettings:
    """What all trials of a sweep have in common; ``grace`` is in seconds.

    ``aims`` is what the sweep wants beside ``objective``.
    ``flags`` tells how each hyperparameter stands on the command line.
    ``own_security`` tells that the workflow as a whole has a pod security context. ``params`` is the JSON of a trial's
    hyperparameters, for Argo to fill in; ``search`` is what gives trials theirs as they start instead, else None.
    ``weight`` and ``priority`` count among sweeps that share a cluster; None where its author names none.
    ``means`` are what it may take of nodes that come and go, ``stops`` the rules that end it early, ``after`` the
    earlier sweeps that it learns from.
    ``own_folder`` names what is copied into the working folder of each trial's own; None where they share one.
    ``metrics`` tells how they stand in what the program prints, None where it logs them.
    ``queue`` is the Kueue queue in which each waits, None where none does.
    ``claims`` are the ResourceClaimTemplates of what each claims, by the names of the claims.
    """

    sweep: str
    flags: Mapping[str, Flag]
    objective: Objective
    aims: Aims
    policy: str | None
    retries: int
    grace: int
    workers: Workers
    state_root: str
    state_store: str | None
    experiment: str
    mlflow_tracking_uri: str
    goals: SweepGoals
    params: str
    own_security: bool = False
    weight: float | None = None
    priority: int | None = None
    means: Means = NO_MEANS
    stops: StopRules = NO_RULES
    after: tuple[str, ...] = ()
    search: str | None = None
    own_folder: Ordered[str] | None = None
    queue: str | None = None
    metrics: PrintedMetrics | None = None
    keep: labels.Keep = labels.Keep.ALL
    claims: Mapping[str, str] = field(default_factory=dict)

    @property
    def hyperparameters(self) -> tuple[str, ...]:
        """Names of the hyperparameters."""
        return tuple(self.flags)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the input parameters that hold them."""
        return tuple(map(input_name, self.flags))


def sweep_id(sweep: str) -> str:
    """Return the identity of the sweep in a running workflow, for Argo to fill in."""
    return f"{SWEEP_UID}.{sweep}"


def placeholder(name: str) -> str:
    """Return what Argo replaces by the template's input parameter ``name``."""
    return f"{{{{inputs.parameters.{name}}}}}"


def params_text(points: Ordered[Point]) -> str:
    """Return the JSON of a trial's hyperparameters, in which Argo fills in its inputs.

    Where a hyperparameter is text in some of ``points`` and none in others, an input of its own holds the JSON.
    """
    kinds = {name: {isinstance(point[name], str) for point in points} for name in points[0]}
    if any(len(kind) > 1 for kind in kinds.values()):
        return placeholder(labels.INPUT_PARAMS)
    values = {name: placeholder(input_name(name)) for name in kinds}
    # A string of a choice() has no quotes and no backslashes, so it stands in JSON as it is.
    members = (f'"{name}": ' + (f'"{value}"' if True in kinds[name] else value) for name, value in values.items())
    return f"{{{', '.join(members)}}}"


def trial_template(pod: Template, settings: TrialSettings) -> Template:
    """Return ``pod`` with the inputs, names, environment and retries of a trial, or of one of its workers.

    Raises:
        SweepError: ``pod`` sets what the sweep sets, asks for no such devices, or says nothing to run.
    """
    gang = settings.workers.most > 1
    pod.name = settings.sweep + (labels.SUFFIX_WORKER if gang else labels.SUFFIX_TRIAL)
    whole = (labels.INPUT_PARAMS,) if settings.params == placeholder(labels.INPUT_PARAMS) else ()
    params = (*whole, *settings.inputs) if settings.search is None else ()
    ours = (labels.INPUT_TRIAL, *params, *settings.goals.inputs, *(_OF_WORKERS if gang else ()))
    added = own_inputs(pod.inputs, settings.inputs)
    parameters = [*(Parameter(name=name) for name in ours), *(added.parameters or [])]
    pod.inputs = Inputs(parameters=parameters, artifacts=added.artifacts)
    pod.retry_strategy = None if gang else trial_retries(settings.sweep, settings.retries, settings.policy)
    program = pod.container or pod.script
    if program is None or not program.command:
        # Argo's controller would look the image's entrypoint up in a registry.
        problem = "a sweep needs command=, such as ['python', '-m', 'jobs.vae']"
        raise SweepError(problem)
    program.env = _environment(program.env, settings)
    reader = settings.metrics.reader if settings.metrics else None
    pod.volumes = [*(pod.volumes or []), leave_volume(), *([python_volume()] if reader else [])]
    program.volume_mounts = [*(program.volume_mounts or []), leave_mount(), *([python_mount()] if reader else [])]
    check_distinct([volume.name for volume in pod.volumes], "volumes= sets what the sweep sets, or sets it twice")
    places = [mount.mount_path for mount in program.volume_mounts]
    check_distinct(places, "volumes= are mounted where the sweep mounts its own, or two in one place")
    resources = _with_cpu(program.resources)
    asked = resources.model_dump(mode="json", exclude_none=True)
    for wrong in device_problems(asked, parts=True):
        problem = f"resources= {wrong}"
        raise SweepError(problem)
    pod.metadata = _metadata(pod.metadata, settings, names_cpu=_names_cpu(program.resources))
    resources.claims = [ResourceClaim(name=name) for name in settings.claims] or None
    program.resources = resources
    pod.tolerations = tolerations(pod.tolerations, asked)
    program.security_context = program.security_context or container_security()
    # Where a program writes no message of its own, its last lines say in Argo's UI, and to a controller, how it failed.
    program.termination_message_policy = program.termination_message_policy or "FallbackToLogsOnError"
    if pod.security_context is None and not settings.own_security:
        pod.security_context = pod_security()
    searched = settings.search is not None
    pod.pod_spec_patch = pod_patch(
        pod.pod_spec_patch,
        settings.sweep,
        settings.grace,
        searched=searched,
        gang=gang,
        reader=reader,
        claims=settings.claims,
    )
    if pod.container is not None:
        _pass_hyperparameters(pod.container, settings)
    if settings.metrics is not None:
        program.command = read_by(carried.interpreter() if reader else ["python3"], program.command or [])
    return pod


def _pass_hyperparameters(program: Container, settings: TrialSettings) -> None:
    """Add the hyperparameters to the command line of ``program``."""
    args, lines = list(program.args or []), list[str]()
    for name, passed in settings.flags.items():
        variable = contract.ENV_PARAM + input_name(name)
        if passed.fixed:
            value = placeholder(input_name(name)) if settings.search is None else f"$({variable})"
            args += passed.arguments(value)
        else:
            lines.append(passed.line(variable))
    program.args = args
    if lines:
        program.command = wrap(program.command or [], lines)


def _names_cpu(given: ResourceRequirements | None) -> bool:
    """Return whether an author says how many cores a trial needs: the limit is the request, as in Kubernetes."""
    return given is not None and "cpu" in {**(given.limits or {}), **(given.requests or {})}


def _with_cpu(given: ResourceRequirements | None) -> ResourceRequirements:
    """Return ``given`` with a request of CPU, the share that a policy starts from.

    Where its author names none it is the limit, as in Kubernetes, and without one a core.
    """
    resources = given or ResourceRequirements()
    if "cpu" in (resources.requests or {}):
        return resources
    limit = (resources.limits or {}).get("cpu")
    cpu = DEFAULT_CPU if limit is None else limit.root
    requests = {name: amount.root for name, amount in (resources.requests or {}).items()}
    return ResourceRequirements.model_validate(
        resources.model_dump(mode="json", exclude_none=True) | {"requests": {**requests, "cpu": cpu}}
    )


def gang_template(worker: Template, settings: TrialSettings) -> Template:
    """Return the template of a trial of several workers: one step, which runs ``worker`` for each.

    An attempt of the trial is an attempt of this template. Its workers start together, and it waits for all of them.
    """
    given = worker.inputs or Inputs()
    passed = [p.name for p in given.parameters or [] if p.name not in _OF_WORKERS]
    # Where each attempt waits for a controller, that adds pods as it needs them; none can be taken away again.
    count = workers(settings.sweep, settings.workers.most if settings.search is None else settings.workers.least)
    values = {name: placeholder(name) for name in passed}
    values |= dict(zip(_OF_WORKERS, ("{{retries}}", "{{item}}", count), strict=True))
    artifacts = [a.name for a in given.artifacts or []]
    step = WorkflowStep(
        name=labels.STEP_WORKER,
        template=worker.name,
        arguments=Arguments(
            parameters=[Parameter(name=name, value=value) for name, value in values.items()],
            artifacts=[Artifact(name=name, from_=f"{{{{inputs.artifacts.{name}}}}}") for name in artifacts] or None,
        ),
        with_sequence=Sequence(count=IntOrString(root=count)),
    )
    declared = [Parameter(name=name) for name in passed]
    return Template(
        name=settings.sweep + labels.SUFFIX_TRIAL,
        inputs=Inputs(parameters=declared, artifacts=[Artifact(name=name) for name in artifacts] or None),
        retry_strategy=gang_trial_retries(settings.sweep, settings.retries),
        steps=[ParallelSteps(root=[step])],
    )


def own_inputs(inputs: Inputs | None, hyperparameters: tuple[str, ...]) -> Inputs:
    """Return those of a template's inputs that its author added to the trial's."""
    known = {labels.INPUT_TRIAL, labels.INPUT_PARAMS, *_OF_WORKERS, *hyperparameters}
    given = inputs or Inputs()
    return Inputs(parameters=[p for p in given.parameters or [] if p.name not in known], artifacts=given.artifacts)


def _metadata(given: Metadata | None, settings: TrialSettings, *, names_cpu: bool) -> Metadata:
    ours = {labels.LABEL_SWEEP: settings.sweep, labels.LABEL_TRIAL: placeholder(labels.INPUT_TRIAL)}
    notes = {
        labels.ANNOTATION_OBJECTIVE: settings.objective.metric,
        labels.ANNOTATION_DIRECTION: settings.objective.direction.value,
        **aims_notes(settings.aims),
    }
    if settings.workers.most == 1:
        notes[labels.ANNOTATION_RETRIES] = str(settings.retries)
    else:
        notes[labels.ANNOTATION_WORKERS] = str(settings.workers.most)
        # The controller that opens the gates of a gang writes both again.
        notes[labels.ANNOTATION_WORLD_SIZE] = placeholder(labels.INPUT_WORKERS)
        notes[labels.ANNOTATION_ATTEMPT] = f"{{{{workflow.uid}}}}.{placeholder(labels.INPUT_ATTEMPT)}"
    if settings.workers.least < settings.workers.most:
        notes[labels.ANNOTATION_MIN_WORKERS] = str(settings.workers.least)
    if settings.policy is not None:
        notes[labels.ANNOTATION_POLICY] = settings.policy
    if settings.weight is not None:
        notes[labels.ANNOTATION_WEIGHT] = f"{settings.weight:g}"
    if settings.priority is not None:
        notes[labels.ANNOTATION_PRIORITY] = str(settings.priority)
    notes.update(means_notes(settings.means))
    notes.update(rules_notes(settings.stops))
    notes.update(after_notes(settings.after))
    if settings.search is not None:
        notes[labels.ANNOTATION_SEARCH] = settings.search
    if settings.own_folder is not None:
        notes[labels.ANNOTATION_OWN_FOLDER] = json.dumps(settings.own_folder)
    if settings.keep is not labels.Keep.ALL:
        notes[labels.ANNOTATION_KEEP] = settings.keep.value
    if not names_cpu:
        notes[labels.ANNOTATION_DEFAULT_CPU] = "true"
    notes |= settings.goals.annotations(placeholder)
    written, annotated = (given and given.labels) or {}, (given and given.annotations) or {}
    if settings.queue is not None:
        grouped = as_groups_of_one(settings.queue, written)
        ours, notes = ours | grouped.labels, notes | grouped.annotations
    check_distinct([*written, *ours], "labels= sets what the sweep sets")
    check_distinct([*annotated, *notes], "annotations= sets what the sweep sets")
    # Nothing makes an Argo step's pod again but Argo, so cluster-autoscaler would never remove the node of one.
    notes = {labels.ANNOTATION_SAFE_TO_EVICT: "true", **annotated, **notes}
    return Metadata(labels={**written, **ours}, annotations=notes)


def _environment(given: list[EnvVar] | None, settings: TrialSettings) -> list[EnvVar]:
    ours = {
        contract.ENV_SWEEP_ID: sweep_id(settings.sweep),
        contract.ENV_TRIAL_ID: f"{sweep_id(settings.sweep)}.{placeholder(labels.INPUT_TRIAL)}",
        contract.ENV_OBJECTIVE: settings.objective.metric,
        contract.ENV_DIRECTION: settings.objective.direction.value,
        contract.ENV_STATE_ROOT: settings.state_root,
        contract.ENV_FLUSH: FLUSH_S,
        contract.ENV_LEAVE_FILE: LEAVE_FILE,
        contract.ENV_GRACE: str(settings.grace),
        "MLFLOW_EXPERIMENT_NAME": settings.experiment,
        "MLFLOW_TRACKING_URI": settings.mlflow_tracking_uri,
        # Whatever the script tells MLflow. It is told by reference, so that there is one place to change the address.
        contract.ENV_TRACKING: "$(MLFLOW_TRACKING_URI)",
    }
    if settings.metrics is not None:
        ours[contract.ENV_PRINTED] = settings.metrics.form.encode()
    if settings.state_store is not None:
        ours[contract.ENV_STATE_STORE] = settings.state_store
    if settings.workers.most > 1:
        ours[contract.ENV_WORKERS_MAX] = str(settings.workers.most)
        ours[contract.ENV_RANK] = placeholder(labels.INPUT_RANK)
    # A pod's name comes again after Argo's Retry; its uid never does.
    of_the_pod = {contract.ENV_ATTEMPT: "metadata.uid", contract.ENV_NODE: "spec.nodeName"}
    # The controller writes these before the container starts, when the kubelet reads them; without one they are empty.
    notes = {contract.ENV_RUN: labels.ANNOTATION_RUN}
    if settings.workers.most > 1:
        notes |= {
            contract.ENV_ATTEMPT: labels.ANNOTATION_ATTEMPT,
            contract.ENV_WORLD_SIZE: labels.ANNOTATION_WORLD_SIZE,
        }
        of_the_pod[contract.ENV_POD_IP] = "status.podIP"
    if settings.search is None:
        ours[contract.ENV_PARAMS] = settings.params
        chosen = [input_name(name) for name, passed in settings.flags.items() if not passed.fixed]
        ours |= {contract.ENV_PARAM + name: placeholder(name) for name in chosen}
    else:
        notes[contract.ENV_PARAMS] = labels.ANNOTATION_PARAMS
        if settings.workers.most == 1:
            notes[contract.ENV_LINEAGE] = labels.ANNOTATION_LINEAGE
        notes |= {contract.ENV_PARAM + input_name(name): labels.ANNOTATION_PARAM + name for name in settings.flags}
    of_the_pod |= {name: f"metadata.annotations['{note}']" for name, note in notes.items()}
    given, tags = _own_tags(given or [])
    variables = [
        *given,
        *(EnvVar(name=name, value=value) for name, value in ours.items()),
        *(
            EnvVar(name=name, value_from=EnvVarSource(field_ref=ObjectFieldSelector(field_path=path)))
            for name, path in of_the_pod.items()
        ),
        # The last one: Kubernetes fills in variables that stand before.
        EnvVar(name=contract.ENV_RUN_CONTEXT, value=_run_context(tags)),
    ]
    check_distinct([variable.name for variable in variables], "env= sets what the sweep sets, or sets it twice")
    return variables


def _own_tags(given: list[EnvVar]) -> tuple[list[EnvVar], dict[str, Any]]:
    """Return the variables but that with the tags of MLflow runs, and these tags."""
    rest = [variable for variable in given if variable.name != contract.ENV_RUN_CONTEXT]
    tags: dict[str, Any] = {}
    for variable in given:
        if variable.name == contract.ENV_RUN_CONTEXT:
            try:
                tags |= parsed(variable.value or "{}")
            except (ValueError, TypeError) as error:
                message = f"env: {contract.ENV_RUN_CONTEXT} is {variable.value!r:.200}, and no JSON object of tags"
                raise SweepError(message) from error
    return rest, tags


def _run_context(tags: Mapping[str, Any]) -> str:
    """Return the tags, as JSON, by which the runs that a trial's program makes are found."""
    ours = {
        contract.TAG_TRIAL_ID: f"$({contract.ENV_TRIAL_ID})",
        contract.TAG_SWEEP_ID: f"$({contract.ENV_SWEEP_ID})",
        contract.TAG_ATTEMPT: f"$({contract.ENV_ATTEMPT})",
        "mlflow.runName": placeholder(labels.INPUT_TRIAL),
    }
    return json.dumps({**tags, **ours})
