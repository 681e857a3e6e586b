"""A hyperparameter sweep as a Hera template."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hera.workflows import Container, Script

from hera_specon.hera_internals import open_blocks
from hera_specon.sweep_templates import SweepTemplates
from hera_specon.training_function import TrainingFunctionConstructor, check_signature


@dataclass(kw_only=True)
class Sweep(SweepTemplates, Container):
    """Runs a container once for each point of a search space, the points side by side.

    A sweep is used as any Hera template: named as a workflow's entrypoint, or called as a step of Steps or a task of
    a DAG. It takes everything that Hera's Container takes, for its trials: image, command, args, env, resources,
    volumes, node_selector and so on. Each trial gets its hyperparameters as arguments ``--name=value``, and the
    environment of ``mlflow_hooks.contract``.

    Args:
        name: Name of the sweep and of its template; ``<name>-trial`` is the template of its trials.
        space: Hyperparameters by name: ``choice()``, ``uniform()``, ``log_uniform()``, ``integer()``; ``when()`` for
            one that matters only where another has a certain value.
        objective: ``minimize("loss")`` or ``maximize("accuracy")``: a metric that the trials log.
        objectives: Several in place of ``objective``, at most 4: ``[minimize("loss"), minimize("latency")]``. What the
            sweep comes to is its Pareto front, by the newest value of each. Policies and goals go by the first alone.
        constraints: What models must keep: ``[subject_to("memory_mb", "<=", 512)]``, at most 8. A trial that breaks one
            is never the best.
        search: ``random()`` or ``grid()``, whose points the workflow holds; or ``tpe()``, ``cmaes()`` or
            ``sampler(...)`` for any of Optuna's, which give each trial its hyperparameters when it starts, by how the
            others went: that takes a controller on a cluster.
        trials: Number of trials. A grid needs none; given one, it may not be larger.
        seed: Draws the same trials again, whatever the order of ``space``.
        policy: What moves trials and shares out CPU: a policy, several stacked, or a spec string. None leaves the
            choice to the user who runs the sweep.
        pruner: A pruner of Optuna's, such as ``optuna.pruners.MedianPruner()``, that ends trials early beside the
            policy. ``promote``, a policy of ours, pauses them instead.
        arrivals: ``every(50)`` or ``at_random(within=300)`` seconds; by default all trials come at once.
        retries: Real failures of a trial to forgive; moves and lost pods do not count (see ``trial_retries``).
        grace: Seconds a trial has for its checkpoint between SIGTERM and SIGKILL.
        workers: Processes that train one trial together, each with ``resources``: ``4``, or ``(1, 4)`` for the least
            and the most where a policy may let the trial grow and shrink. All of them start together, or none.
        weight: What the sweep counts among those of its namespace that share a cluster with it: with 2, twice as much
            as with 1, which is the default (0.01 to 100). With a weight or a priority, submitted trials wait for the
            controller, which starts as many as are the sweep's part; see ``specon queue``. On one machine both mean
            nothing.
        priority: A whole number from -100 to 100, by default 0: of the sweeps of its namespace, those of a higher one
            come first.
        by: Time from the workflow's start by which the whole sweep should end: seconds, or such as ``"3h"``. Where
            nodes come and go, it then takes as few of them as end it in time. On one machine it means nothing.
        budget: What the sweep may cost, in the currency of the nodes' prices that the controller was given: it takes as
            many nodes as that pays, or with ``by`` the fewest that end it in time. A plan, not a limit: a sweep that
            turns out longer is not ended. ``stop`` ends one.
        stop: When the sweep ends though not all of its trials have: ``value(0.01)``, ``plateau(trials=20, by=0.001)``,
            ``terminator()``, ``after("3h")`` or ``budget(cpu_hours=40)``, or several joined by ``|``: any of them ends
            it. Trials that run then are stopped as successes that were cut short, and the others never start. On a
            cluster that takes a controller.
        after: Earlier sweeps to learn from, by their ids, or ``"same experiment"`` for all of the MLflow experiment: a
            search begins with what their trials came to, and lengths are foreseen from the first second. Only what had
            ended when this sweep began counts. On a cluster that takes a controller.
        deadline: Time from a trial's submission by which it should end: seconds, ``"90m"``, one for each trial in a
            list, or a ``choice()`` or ``uniform()`` that each draws its own from. The policy ``deadline`` keeps it.
        target: Value of the objective that is good enough, likewise; the policy ``tradl`` uses it.
        seconds_per_step: Time that a step of training should take, likewise; the policy ``dqoes`` uses it.
        state: Store of objects for checkpoints, such as ``"s3://bucket/prefix"``, ``"gs://..."``, ``"az://..."``, or
            ``"mlflow"`` for the artifacts of each trial's run: no volume is needed then. Trials get its credentials as
            any pod does: by ``env=``, ``env_from=``, or their service account. The trainer's image needs
            ``hera-specon-hooks[stores]`` for buckets.
        state_root: Folder for checkpoints, on a volume that every node mounts, or of the pod alone with ``state=``.
        state_claim: Name of the PersistentVolumeClaim (ReadWriteMany) to mount there.
        state_volume: Any other volume of Hera's to mount there, such as ``NFSVolume(server=..., path=...)``.
        keep: Which checkpoints stay once the sweep is over on one machine: ``"all"``, which are the newest two of each
            trial; ``"newest"`` of each; ``"best"``, the newest of the best trial, or of those on the front; or
            ``"none"``. The newest of a trial that failed or was ended early always stays. In a cluster all stay until
            ``specon clean``.
        experiment: MLflow experiment; by default the sweep's name.
        mlflow_tracking_uri: Where the trials find MLflow.
        flags: How a hyperparameter stands on the command line where that is not ``--name=value``: ``"--optim.lr={}"``
            with ``{}`` for the value; ``["--hidden", "{*}"]`` for an option that takes the words of the value, such as
            ``"64 64"``, one by one; ``"--amp"`` for a truth value, passed where it is true and left out where not; or
            words for each value, None for nothing: ``{True: "--amp", False: "--no-amp"}``. None alone passes nothing:
            the command says ``{{inputs.parameters.lr}}``, or the program reads ``t.params``.
        own_folder: On one machine (``specon run``), run each trial in a working folder of its own, so that no trial
            overwrites another's files: a copy of the folder that the sweep is started in, with links to its large
            files and folders. A list of paths, such as ``["checkpoints"]``, has these copied too, however large.
        queue: Name of the Kueue queue in which each trial waits, a LocalQueue of the sweep's namespace. Its pods are
            written as groups of one, which Kueue leaves alone when their shares change.
        metrics: ``printed(...)`` or ``printed_json(...)`` where the program prints its metrics instead of logging them;
            in a list also those of Hera's that Argo tells Prometheus.
        answer: Tell what the sweep came to as outputs of its template, by a last step that reads MLflow. Without it,
            that step is there where ``best``, ``top()``, ``front`` or ``register=`` is used.
        answer_image: Image of that step, any with Python; by default that of the trials.
        register: Name of a model in MLflow's registry, which gets the best trial's as a new version with the alias
            ``best``, or with another one: ``"digits@champion"``.
        parallelism: Greatest number of trials at a time.
        resources: The CPU that it requests is the share a policy starts from; by default the limit, else one core
            without a limit. On one machine (``specon run``), a request that you name is a reservation. Where you name
            none, as many trials run at a time as keep the cores busy. With ``Resources(gpus=1)`` each trial holds a GPU
            of its own, with ``gpus=0.5`` a half of one, which takes MPS and one machine; ``gpu_flag`` names another
            kind of device.
        resource_claims: ResourceClaimTemplates (dynamic resource allocation) of the sweep's namespace, by names of your
            own: ``{"gpu": "one-gpu"}``. Each trial, or each of its workers, gets claims made by them, and holds
            their devices while it runs.
        pod_security_context: Who trials run as; by default user and group 65532, unless the workflow says otherwise.
        security_context: What their container may do: no more than any process without.
        inputs: Further inputs, which every trial gets as they are given to the sweep.

    Raises:
        SpaceError: The search space is empty, contradictory, or endless in a grid.
        SweepError: Any other setting is wrong; the message carries it.
    """

    @staticmethod
    def script(**settings: Any) -> Callable[[Callable[..., object]], "FunctionSweep"]:  # noqa: ANN401 - see below
        """Decorate a training function to make it a sweep, as Hera's ``script`` makes one a template.

        The function's source becomes the trials' script, so it imports what it uses. Its arguments are the
        hyperparameters, with their types; any others become inputs of the sweep.

        Args:
            **settings: Those of ``Sweep`` and of Hera's Script; ``name`` is the function's without.

        Raises:
            SpaceError: The search space is empty, contradictory, or endless in a grid.
            SweepError: The function lacks a hyperparameter, or another setting is wrong.
        """

        def decorate(function: Callable[..., object]) -> FunctionSweep:
            return FunctionSweep(**{"name": function.__name__.replace("_", "-"), **settings, "source": function})

        return decorate


@dataclass(kw_only=True)
class FunctionSweep(SweepTemplates, Script):
    """Runs a training function once for each point of a search space; made by ``Sweep.script``.

    Outside a workflow it is still the function.
    """

    source: Callable[..., object] = field()

    def __post_init__(self) -> None:
        check_signature(self.source, self.space)
        self.constructor = self.constructor or TrainingFunctionConstructor(hyperparameters=tuple(self.space))
        super().__post_init__()
        functools.update_wrapper(self, self.source, updated=())
        self.wrapped_function = self.source

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the function's own, outside a workflow
        """Call the function, or under a Workflow, Steps or DAG make the sweep part of it."""
        return super().__call__(*args, **kwargs) if open_blocks() else self.source(*args, **kwargs)
