"""The templates that every sweep is made of, built when its workflow is, and what it checks before."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hera.workflows import Workflow
from hera.workflows.models import Template

from controllers.core import labels
from controllers.core.aims import Aims, Constraint
from controllers.core.annotations import why_unnameable
from controllers.core.stop_rules import StopRules
from controllers.policies.kit.settings import DEFAULT_POLICY
from hera_specon.answer.asked import AskedAnswer
from hera_specon.answer.outputs import BestTrial, registered_model
from hera_specon.answer.template import AnswerSettings, add_answer, answer_template
from hera_specon.continuing import let_continue
from hera_specon.devices import check_claims, check_custom_resources
from hera_specon.earlier_sweeps import sweep_after
from hera_specon.errors import SweepError
from hera_specon.fan_out import FanOut, arrival_template, delay_template, sweep_template
from hera_specon.flags import FlagForm, flag
from hera_specon.goals import Goal, SweepGoals, check_served, sweep_goals
from hera_specon.hera_internals import HeraVolume, PartTemplate, SweepTemplateBase, open_blocks
from hera_specon.manifest import check_templates
from hera_specon.pod_spec import state_volume
from hera_specon.points import Search, points
from hera_specon.populations import check_population
from hera_specon.printed_metrics import MetricsChoice, check_printed
from hera_specon.pruners import pruner_policy
from hera_specon.queues import check_pod_names, queue_name
from hera_specon.search import Sampler, search_text
from hera_specon.settings import (
    Arrivals,
    Objective,
    PolicyChoice,
    WorkersChoice,
    check_distinct,
    check_place_among_others,
    check_sweep_name,
    input_name,
    is_whole,
    kept_checkpoints,
    own_paths,
    policy_text,
    sweep_means,
    workers_range,
)
from hera_specon.several_objectives import (
    check_amount,
    check_objectives,
    check_policy_of_several,
    check_searched,
)
from hera_specon.space import Point, Space, check_space
from hera_specon.stops import check_terminator, sweep_stops
from hera_specon.trial_template import (
    TrialSettings,
    gang_template,
    own_inputs,
    params_text,
    sweep_id,
    trial_template,
)


@dataclass(kw_only=True)
class SweepTemplates(SweepTemplateBase):
    """What every sweep is made of, however its trials are written."""

    space: Space
    objective: Objective | None = None
    objectives: Sequence[Objective] = ()
    constraints: Sequence[Constraint] = ()
    search: Search | Sampler = "random"
    trials: int | None = None
    seed: int = 0
    policy: PolicyChoice | None = None
    pruner: object = None
    arrivals: Arrivals | None = None
    retries: int = 3
    grace: int = 60
    workers: WorkersChoice = 1
    weight: float | None = None
    priority: int | None = None
    by: float | str | None = None
    budget: float | None = None
    stop: StopRules | None = None
    after: str | Sequence[str] | None = None
    deadline: Goal | None = None
    target: Goal | None = None
    seconds_per_step: Goal | None = None
    state: str | None = None
    state_root: str = "/mnt/specon"
    state_claim: str | None = None
    state_volume: HeraVolume | None = None
    keep: str = "all"
    experiment: str | None = None
    mlflow_tracking_uri: str = "http://mlflow:5000"
    flags: Mapping[str, FlagForm] | None = None
    own_folder: bool | Sequence[str] = False
    queue: str | None = None
    resource_claims: Mapping[str, str] | None = None
    metrics: MetricsChoice | None = None  # type: ignore[assignment]  # wider than Hera's, which leaves ours out
    answer: bool = False
    answer_image: str | None = None
    register: str | None = None

    def __post_init__(self) -> None:
        self._workflow: Workflow | None = None
        self._called = False
        self._asked = AskedAnswer()
        self._answering: PartTemplate | None = None
        self._drawn_from = ""
        self._drawn: tuple[Point, ...] = ()
        super().__post_init__()
        if (state := state_volume(self.state, self.state_claim, self.state_volume, self.state_root)) is not None:
            given = self.volumes or []
            self.volumes = [*(given if isinstance(given, list) else [given]), state]
        self._check()
        if blocks := open_blocks():
            self._join(blocks[0])

    @property
    def sweep_id(self) -> str:
        """Identity of the sweep, which Argo fills in: an argument for a step that reads its results."""
        return sweep_id(check_sweep_name(self.name))

    @property
    def best(self) -> BestTrial:
        """The best trial, for arguments of the steps after the sweep: ``search.best.params["lr"]``, ``.value``, ...

        A last step of the sweep reads it out of MLflow then. It is there once a Steps or a DAG runs the sweep. Of
        several objectives, it is the best by the first; ``front`` has the others.

        Raises:
            SweepError: Nothing runs the sweep yet.
        """
        best = self._asked.best(str(self.name), tuple(self.space), registers=self.register is not None)
        self._tell_answer()
        return best

    def top(self, count: int) -> str:
        """Return the ``count`` best trials as a list for ``with_param=``, the best first; fewer if fewer have a value.

        An item has ``trial``, ``value``, ``run_id``, ``checkpoint``, ``params`` and, for each hyperparameter,
        ``param-<name>``.

        Raises:
            SweepError: Nothing runs the sweep yet, or ``count`` is no whole number from 1 to 100.
        """
        top = self._asked.top(str(self.name), count)
        self._tell_answer()
        return top

    @property
    def front(self) -> str:
        """The trials on the Pareto front as a JSON list, also for ``with_param=``, in order by the first objective.

        An item is as one of ``top()``, with ``values`` of all objectives besides.

        Raises:
            SweepError: Nothing runs the sweep yet, or it has one objective.
        """
        front = self._asked.front(str(self.name), several=bool(self._objectives()[1].further))
        self._tell_answer()
        return front

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - Hera's unions make >> fail under type checkers
        """Return the sweep as a step or task of the Steps or DAG around the call.

        Directly under a Workflow, add it to the workflow and return None.

        Raises:
            SweepError: The workflow runs the sweep already, or the call would run it several times over:
                its trials would have the same identity twice.
        """
        blocks = open_blocks()
        if not blocks:
            problem = f"sweep {self.name!r} is called outside a Workflow"
            raise SweepError(problem)
        self._join(blocks[0])
        if isinstance(blocks[-1], Workflow):
            return None
        if self._called or {"with_items", "with_param", "with_sequence"} & kwargs.keys():
            problem = f"sweep {self.name!r} runs once in a workflow; make another sweep with another name"
            raise SweepError(problem)
        self._called = True
        self._asked.node = super().__call__(*args, **kwargs)  # type: ignore[misc]  # CallableTemplateMixin's
        return self._asked.node

    def _build_template(self) -> Template:
        if (
            self._workflow is not None
            and self._workflow.workflow_template_ref is None
            and (self._workflow.kind == "Workflow" or self._workflow.entrypoint is not None)
        ):
            check_templates([template.name or "" for template in self._workflow.templates], self._workflow.entrypoint)
        template = sweep_template(self._fan_out())
        return add_answer(template, self._answer_settings()) if self._tells else template

    @property
    def _tells(self) -> bool:
        """Whether the sweep has a last step that tells its answer."""
        return self._asked.used or self.answer or self.register is not None

    def _tell_answer(self) -> None:
        """Add the template of the last step to the workflow, unless it is there."""
        name, workflow = f"{self.name}{labels.SUFFIX_BEST}", self._workflow
        if workflow is not None and not any(template is self._answering for template in workflow.templates):
            self._answering = PartTemplate(
                name=name, build=lambda: answer_template(self._build_trial(), self._answer_settings())
            )
            if not any(template is self._answering for template in workflow.templates):
                workflow.templates.append(self._answering)

    def _answer_settings(self) -> AnswerSettings:
        name, fan_out, (objective, aims) = check_sweep_name(self.name), self._fan_out(), self._objectives()
        return AnswerSettings(
            sweep=name,
            sweep_id=sweep_id(name),
            names=tuple(self.space),
            points=fan_out.points,
            numbers=tuple(map(fan_out.number, range(len(fan_out.points)))),
            objective=objective,
            aims=aims,
            tops=tuple(sorted(self._asked.tops)),
            register=registered_model(self.register),
            image=self.answer_image,
            tolerant=self._asked.tolerant,
            root=self.state_root,
            store=self.state,
        )

    def _build_trial(self) -> Template:
        """Return the template of a trial, or of one worker where trials have several."""
        if (
            self._workflow is not None
            and self._workflow.parallelism is not None
            and workers_range(self.workers).most > 1
        ):
            # Argo counts pods: it would start a part of a gang, which waits for the others for nothing.
            problem = (
                f"Workflow(parallelism={self._workflow.parallelism}) limits pods, and would cut a trial of "
                f"workers={self.workers!r} in parts; limit trials by the sweep's own parallelism="
            )
            raise SweepError(problem)
        if self._queue() is not None and self._workflow is not None:
            check_pod_names(self._workflow.name, self._workflow.generate_name, f"{self.name}{labels.SUFFIX_TRIAL}")
        pod = super()._build_template()  # type: ignore[misc]  # Container's or Script's, by the order of bases
        return trial_template(pod, self._trial_settings())

    def _trial_settings(self) -> TrialSettings:
        name, (objective, aims) = check_sweep_name(self.name), self._objectives()
        return TrialSettings(
            sweep=name,
            flags={name: flag(name, values, self.flags) for name, values in self.space.items()},
            objective=objective,
            aims=aims,
            policy=self._policy(),
            retries=self.retries,
            grace=self.grace,
            workers=workers_range(self.workers),
            weight=self.weight,
            priority=self.priority,
            means=sweep_means(self.by, self.budget),
            stops=sweep_stops(self.stop, self.budget),
            after=sweep_after(self.after),
            goals=self._goals(len(self._points())),
            params=params_text(self._points()),
            search=self._search(),
            state_root=self.state_root,
            state_store=self.state,
            experiment=self.experiment or name,
            mlflow_tracking_uri=self.mlflow_tracking_uri,
            own_folder=own_paths(self.own_folder),
            queue=self._queue(),
            claims=check_claims(self.resource_claims),
            metrics=check_printed(self.metrics, objective, workers_range(self.workers)),
            keep=kept_checkpoints(self.keep),
            own_security=self._workflow is not None and self._workflow.security_context is not None,
        )

    def _join(self, workflow: object) -> None:
        if not isinstance(workflow, Workflow):
            problem = f"sweep {self.name!r} belongs in a Workflow, not in {type(workflow).__name__} alone"
            raise SweepError(problem)
        if workflow is self._workflow:
            return
        self._workflow, self._called, self._asked = workflow, False, AskedAnswer()
        if not any(template is self for template in workflow.templates):
            workflow.templates.append(self)
        let_continue(workflow)
        parts: dict[str, Callable[[], Template]] = {labels.SUFFIX_TRIAL: self._build_trial}
        if workers_range(self.workers).most > 1:
            parts = {
                labels.SUFFIX_TRIAL: lambda: gang_template(self._build_trial(), self._trial_settings()),
                labels.SUFFIX_WORKER: self._build_trial,
            }
        if self.arrivals is not None:
            parts |= {
                labels.SUFFIX_ARRIVAL: lambda: arrival_template(self._fan_out()),
                labels.SUFFIX_DELAY: lambda: delay_template(self._fan_out()),
            }
        for suffix, build in parts.items():
            PartTemplate(name=f"{self.name}{suffix}", build=build)
        if self._tells:
            self._tell_answer()

    def _check(self) -> None:
        if self.retry_strategy is not None:
            problem = "a sweep has its own retry_strategy, which tells moves from failures; use retries="
            raise SweepError(problem)
        if self.arrivals is not None and self.parallelism is not None:
            # Argo counts a trial that still waits to arrive.
            problem = "with arrivals=, limit the pods by Workflow(parallelism=...), not the sweep's parallelism="
            raise SweepError(problem)
        if not is_whole(self.grace) or self.grace <= 0:
            problem = f"grace= is a whole number of seconds above 0, not {self.grace!r}"
            raise SweepError(problem)
        workers_range(self.workers)
        check_place_among_others(self.weight, self.priority)
        stops = sweep_stops(self.stop, self.budget)
        sweep_after(self.after)
        sweep_means(self.by, self.budget)
        own_paths(self.own_folder)
        self._queue()
        registered_model(self.register)
        if self.policy is not None:
            check_served(self.policy, self._goal_settings())
        check_custom_resources(self.resources)
        check_claims(self.resource_claims)
        if unknown := sorted((self.flags or {}).keys() - self.space.keys()):
            problem = f"flags= names {unknown[0]!r}, which is no hyperparameter of space="
            raise SweepError(problem)
        _, aims = self._objectives()
        check_searched(aims, self._search())
        check_terminator(stops, self._search(), aims)
        check_policy_of_several(aims, self._policy(), self.pruner)
        gang, printed = workers_range(self.workers).most > 1, self.metrics is not None
        check_population(self._policy(), self._search(), gang=gang, store=self.state, printed=printed)
        fan_out, _ = self._fan_out(), self._build_trial()
        check_amount(aims, len(fan_out.points))
        if wrong := why_unnameable(fan_out.sweep, fan_out.last_number):
            problem = f"a sweep of {len(fan_out.points)} trials cannot have this name: {wrong}"
            raise SweepError(problem)
        added = [parameter.name for parameter in fan_out.added.parameters or []]
        check_distinct([*fan_out.names, *added], "inputs= declares an input twice, or one that every trial already has")

    def _objectives(self) -> tuple[Objective, Aims]:
        return check_objectives(self.objective, self.objectives, self.constraints)

    def _fan_out(self) -> FanOut:
        name, trials = check_sweep_name(self.name), self._points()
        delays = None if self.arrivals is None else self.arrivals.delays(len(trials))
        added = own_inputs(self._build_inputs(), tuple(map(input_name, self.space)))
        return FanOut(name, trials, delays, added, self.parallelism, self._goals(len(trials)).inputs)

    def _policy(self) -> str | None:
        """Return the spec string of the policy, the pruner's part first; None leaves the choice to the user."""
        policy = None if self.policy is None else policy_text(self.policy)
        if self.pruner is None:
            return policy
        return policy_text(f"{pruner_policy(self.pruner)}+{policy or DEFAULT_POLICY}")

    def _queue(self) -> str | None:
        return queue_name(self.queue, self.labels, workers_range(self.workers))

    def _points(self) -> tuple[Point, ...]:
        """Return the hyperparameters of each trial: none where a search gives them later."""
        if isinstance(self.search, Sampler):
            return ({},) * (self.trials or 0)
        # Each template asks for them, and tens of thousands take seconds to draw. A sweep may still be changed.
        drawn_from = repr((check_space(self.space), self.search, self.trials, self.seed))
        if self._drawn_from != drawn_from:
            self._drawn = points(self.space, self.search, self.trials, self.seed)
            self._drawn_from = drawn_from
        return self._drawn

    def _search(self) -> str | None:
        """Return the search that gives trials their hyperparameters as they start, None where they have them."""
        if not isinstance(self.search, Sampler):
            return None
        return search_text(self.search, self.space, self.trials, self.seed)

    def _goals(self, trials: int) -> SweepGoals:
        return sweep_goals(self._goal_settings(), trials, self.seed)

    def _goal_settings(self) -> dict[str, Goal | None]:
        return {"deadline": self.deadline, "target": self.target, "seconds_per_step": self.seconds_per_step}
