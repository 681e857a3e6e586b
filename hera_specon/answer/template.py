"""The last step of a sweep that tells its answer, and how the sweep's own template hands that on."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Final

from hera.workflows.models import (
    ContinueOn,
    EmptyDirVolumeSource,
    EnvVar,
    IntOrString,
    Metadata,
    Outputs,
    ParallelSteps,
    Parameter,
    Quantity,
    ResourceRequirements,
    RetryStrategy,
    ScriptTemplate,
    Template,
    ValueFrom,
    Volume,
    VolumeMount,
    WorkflowStep,
)

from controllers.core import labels
from controllers.core.aims import Aims
from hera_specon.answer.outputs import output_names
from hera_specon.errors import SweepError
from hera_specon.pod_spec import helpers_patch
from hera_specon.settings import Objective, check_distinct
from hera_specon.space import Point
from mlflow_hooks import contract

STEP: Final = "best"
"""The last step of the sweep."""
FOLDER: Final = "/var/run/hera-specon-outputs"
"""Where it writes each output into a file of its own, in a volume of its pod alone."""
_VOLUME: Final = "specon-outputs"
_MOST_POINTS: Final = 64 * 2**10
"""Bytes of hyperparameters that the step is told; those of larger sweeps it reads out of MLflow."""
_OF_RUNS: Final = frozenset({contract.ENV_RUN, contract.ENV_RUN_CONTEXT})
_AMOUNTS: Final = {"cpu": "50m", "memory": "64Mi"}, {"cpu": "500m", "memory": "256Mi"}
"""Requested, and at most: a namespace with a quota takes no pod without either."""


@dataclass(frozen=True, slots=True)
class AnswerSettings:
    """What a sweep tells, and the trials that it is told of.

    ``points`` are their hyperparameters, empty ones where a search gives them. ``aims`` are what the sweep wants beside
    its first ``objective``. ``tops`` are how many of the best are
    asked for as lists, ``register`` is the model's name and alias. ``image`` is that of the step, None for that of the
    trials. With ``tolerant`` the answer is that of the trials that did not fail. ``store`` is where checkpoints are
    kept, None for the folder ``root``.
    """

    sweep: str
    sweep_id: str
    names: tuple[str, ...]
    points: tuple[Point, ...]
    numbers: tuple[str, ...]
    objective: Objective
    aims: Aims
    tops: tuple[int, ...]
    register: str | None
    image: str | None
    tolerant: bool
    root: str
    store: str | None

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return output_names(self.names, self.tops, registers=self.register is not None, several=bool(self.aims.further))


def add_answer(template: Template, settings: AnswerSettings) -> Template:
    """Return a sweep's template with the last step, and with the outputs of that as its own.

    Where the answer is to come in spite of trials that failed, these fail the sweep no more.
    """
    groups = list(template.steps or [])
    if settings.tolerant:
        for group in groups:
            for step in group.root:
                step.continue_on = ContinueOn(failed=True, error=True)
    groups.append(ParallelSteps(root=[WorkflowStep(name=STEP, template=f"{settings.sweep}{labels.SUFFIX_BEST}")]))
    template.steps = groups
    given = [
        Parameter(name=name, value_from=ValueFrom(parameter=f"{{{{steps.{STEP}.outputs.parameters.{name}}}}}"))
        for name in settings.outputs
    ]
    template.outputs = Outputs(parameters=given)
    return template


def answer_template(trial: Template, settings: AnswerSettings) -> Template:
    """Return the template of the last step, whose pod stands where those of ``trial`` may.

    Raises:
        SweepError: ``trial`` names no image, and neither does the sweep.
    """
    program = trial.container or trial.script
    image = settings.image or (program.image if program else None)
    if program is None or not image:
        problem = "the step that reads the best trial needs image=, as the trials do, or outputs_image="
        raise SweepError(problem)
    env = [*_given(program.env or []), *(EnvVar(name=name, value=value) for name, value in _told(settings).items())]
    check_distinct([variable.name for variable in env], "env= sets what the sweep's last step sets")
    named = _named_mounts(program.volume_mounts or [], env)
    volumes = [volume for volume in trial.volumes or [] if volume.name in {mount.name for mount in named}]
    requests, limits = ({name: Quantity(root=amount) for name, amount in given.items()} for given in _AMOUNTS)
    return Template(
        name=f"{settings.sweep}{labels.SUFFIX_BEST}",
        metadata=Metadata(annotations={labels.ANNOTATION_ANSWER: settings.sweep}),
        script=ScriptTemplate(
            image=image,
            image_pull_policy=program.image_pull_policy,
            command=[_python(program.command or [])],
            source=program_source(),
            env=env,
            env_from=program.env_from,
            resources=ResourceRequirements(requests=requests, limits=limits),
            security_context=program.security_context,
            termination_message_policy="FallbackToLogsOnError",
            volume_mounts=[*named, VolumeMount(name=_VOLUME, mount_path=FOLDER)],
        ),
        outputs=Outputs(
            parameters=[
                Parameter(name=name, value_from=ValueFrom(path=f"{FOLDER}/{name}")) for name in settings.outputs
            ]
        ),
        # A pod that is lost is an error. What it says itself would be said again.
        retry_strategy=RetryStrategy(limit=IntOrString(root="3"), retry_policy="OnError"),
        pod_spec_patch=helpers_patch(),
        volumes=[*volumes, Volume(name=_VOLUME, empty_dir=EmptyDirVolumeSource())],
        service_account_name=trial.service_account_name,
        security_context=trial.security_context,
        node_selector=trial.node_selector,
        affinity=trial.affinity,
        tolerations=trial.tolerations,
        priority_class_name=trial.priority_class_name,
    )


def program_source() -> str:
    """Return the program of the last step."""
    return resources.files("hera_specon.answer").joinpath("program.py").read_text(encoding="utf-8")


def _python(command: Sequence[str]) -> str:
    """Return the interpreter: that of the trials where their command names one."""
    first = command[0] if command else ""
    return first if first.rpartition("/")[2].startswith("python") else "python"


def _given(env: Sequence[EnvVar]) -> list[EnvVar]:
    """Return the variables of trials that tell how to reach MLflow, or are their author's, without a trial's inputs."""
    return [
        variable
        for variable in env
        if not variable.name.startswith("SPECON_")
        and variable.name not in _OF_RUNS
        and "{{inputs." not in (variable.value or "")
    ]


def _named_mounts(mounts: Sequence[VolumeMount], env: Sequence[EnvVar]) -> list[VolumeMount]:
    """Return the mounts in which a variable names a file, such as a certificate."""
    values = [variable.value or "" for variable in env if variable.name.startswith("MLFLOW_")]
    return [mount for mount in mounts if any(value.startswith(f"{mount.mount_path}/") for value in values)]


def _told(settings: AnswerSettings) -> dict[str, str]:
    rows = [
        [number, *(point[name] for name in settings.names)]
        for number, point in zip(settings.numbers, settings.points, strict=True)
        if point
    ]
    points = json.dumps(rows)
    told = {
        contract.ENV_SWEEP_ID: settings.sweep_id,
        contract.ENV_OBJECTIVE: settings.objective.metric,
        contract.ENV_DIRECTION: settings.objective.direction.value,
        contract.ENV_STATE_ROOT: settings.root,
        contract.ENV_STATE_STORE: settings.store or "",
        "SPECON_NAMES": json.dumps(settings.names),
        # Kubernetes would put variables in for what looks like one.
        "SPECON_POINTS": points.replace("$", "$$") if len(points) <= _MOST_POINTS else "[]",
        "SPECON_TRIALS": str(len(settings.points)),
        "SPECON_ALL_SUCCEEDED": json.dumps(not settings.tolerant),
        "SPECON_OUTPUTS": FOLDER,
    }
    tops = " ".join(map(str, settings.tops))
    further, constraints = settings.aims.written
    also = {
        "SPECON_TOP": tops,
        "SPECON_REGISTER": settings.register or "",
        "SPECON_FURTHER": further,
        "SPECON_CONSTRAINTS": constraints,
    }
    return told | {name: value for name, value in also.items() if value}
