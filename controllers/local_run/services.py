"""What a run on this machine needs around it: somebody who shows it, processes to run trials in, and MLflow."""

import os
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from controllers.core import labels
from controllers.core.forecast import Forecast
from controllers.core.ports import Observer
from controllers.core.results import RunResult
from controllers.core.word_script import unwrap
from controllers.driving.stop_signals import stop_on_signals
from controllers.local_run.order import Order
from controllers.local_run.run_folder import RunFolder
from controllers.tracking.access import absolute, environment_as_given, shown
from controllers.worlds.local import environment
from controllers.worlds.local.attempts import cores_at_most
from controllers.worlds.local.environment import compose_environment
from controllers.worlds.local.mlflow_server import HUNG_AFTER_S, LocalMlflow
from controllers.worlds.local.processes import Launcher
from controllers.worlds.local.processes.preload import Plans
from controllers.worlds.local.processes.warmth import Warmth, most_wanted, warmth_of
from controllers.worlds.local.workflow import PlannedTrial, PodStep
from mlflow_hooks import contract

TRACKING_URI: Final = "MLFLOW_TRACKING_URI"
GRACE_S: Final = 30.0
"""Seconds between SIGTERM and SIGKILL for attempts whose sweep is interrupted."""


class Screen(Observer, Protocol):
    """What shows a run to a person: an observer that also takes words."""

    def say(self, text: str) -> None:
        """Show a message."""
        ...

    def locate(self, folder: Path) -> None:
        """Take note of the folder that the run is kept in."""
        ...

    def begin(self, policy: str, trials: int, position: int, of: int) -> None:
        """Take note that the ``position``-th of ``of`` policies begins (from 1) with ``trials`` known trials."""
        ...

    def foresee(self, forecast: Forecast) -> None:
        """Take note of when the trials and the sweep will end."""
        ...

    def end(self, result: RunResult) -> None:
        """Take note of what a policy's run came to."""
        ...


@dataclass(frozen=True)
class RunServices:
    """What a run is given by its starter: a screen, a request to stop, a launcher, and where MLflow is.

    ``server`` is the MLflow that was started for the run, None where the user has one. ``inherited`` and ``imposed``
    are what trials find in their environment, below and above that of their step.
    """

    screen: Screen
    stop: threading.Event
    launcher: Launcher
    tracking_uri: str
    server: LocalMlflow | None
    inherited: Mapping[str, str]
    imposed: Mapping[str, str]

    def keep_alive(self, hung_after_s: float = HUNG_AFTER_S) -> None:
        """Start the run's own MLflow again if it has died, or has not answered for ``hung_after_s`` seconds."""
        if self.server is not None:
            self.server.keep_alive(hung_after_s)
            for line in self.server.news():
                self.screen.say(line)

    @property
    def start_up_s(self) -> float:
        """CPU seconds that the run's own MLflow has used so far for a start that goes on, else 0."""
        return 0.0 if self.server is None else self.server.start_up_s

    def tell_of_mlflow(self) -> None:
        """Say where MLflow is; it may not answer yet."""
        if self.server is None:
            self.screen.say(f"MLflow: {shown(self.tracking_uri)} (from {TRACKING_URI})")
        else:
            self.screen.say(f"MLflow: {self.tracking_uri} (watch it there while the run lasts)")


def start_services(
    order: Order, folder: RunFolder, planned: Sequence[PlannedTrial], screen: Screen, stack: ExitStack
) -> RunServices:
    """Start what a run needs around it, to be ended with ``stack``; MLflow may not answer yet."""
    stack.enter_context(folder.lock())
    stop = stack.enter_context(stop_on_signals())
    inherited = environment.inherit_environment(environment_as_given(), order.settings.inherit)
    imposed = {"PYTHONUNBUFFERED": "1", **environment.without_proxy(os.environ)}
    stack.enter_context(_set_here(environment.without_proxy(os.environ)))
    uri, server = os.environ.get(TRACKING_URI), None
    if not uri:
        server = LocalMlflow(order.settings.state_dir / "mlflow", own_experiments(order, planned))
        stack.callback(server.close)
        uri = server.uri
        # The hooks' deliver_leftovers looks there, as every MLflow client does.
        stack.enter_context(_set_here({TRACKING_URI: uri}))
    # Trials may run in other folders than this process.
    imposed |= dict.fromkeys((TRACKING_URI, contract.ENV_TRACKING), absolute(uri, Path.cwd()))
    # Its imports may take seconds. They come first, as trials wait for them.
    launcher = Launcher(_warmths(order, planned, inherited, imposed), GRACE_S, folder.path / "launcher.log")
    stack.callback(launcher.close, GRACE_S)
    if server is not None:
        server.start()
    return RunServices(screen, stop, launcher, uri, server, inherited, imposed)


def experiments_of(steps: Iterable[PodStep], fallback: str) -> dict[str, str]:
    """Return the MLflow experiment of each sweep id among ``steps``."""
    return {
        step.env[contract.ENV_SWEEP_ID]: step.env.get("MLFLOW_EXPERIMENT_NAME", fallback)
        for step in steps
        if labels.LABEL_SWEEP in step.labels and contract.ENV_SWEEP_ID in step.env
    }


def own_experiments(order: Order, planned: Sequence[PlannedTrial]) -> Collection[str]:
    """Return the names of the MLflow experiments of an order, each once."""
    return dict.fromkeys(experiments_of((trial.step for trial in planned), order.sweep).values())


@contextmanager
def _set_here(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables of this process for a while."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _warmths(
    order: Order, planned: Sequence[PlannedTrial], inherited: Mapping[str, str], imposed: Mapping[str, str]
) -> tuple[Warmth, ...]:
    """Return what is worth doing once for the trials that are known, on nodes of any size that there is."""
    plans, machine, trials = Plans(), order.settings.machine({}), _at_first(order, planned)
    return most_wanted(
        warmth_of(
            plans,
            unwrap(trial.step.command + trial.step.args),
            compose_environment(
                inherited,
                trial.step.environment,
                imposed,
                cores_at_most(trial.step, cpu),
                cpu / machine.at_once(node, trial.step, trials),
            ),
            Path.cwd(),
            trial.step.source,
        )
        for trial in planned
        for node, cpu in {cpu: (node, cpu) for node, cpu in machine.nodes.items()}.values()
    )


def _at_first(order: Order, planned: Sequence[PlannedTrial]) -> int:
    """Return how many trials there are to run as the sweep begins: ``parallelism`` keeps others from coming."""
    spec = order.workflow.get("spec") or {}
    bounded = any(part.get("parallelism") for part in (spec, *(spec.get("templates") or [])))
    if not bounded or any(trial.delay for trial in planned):
        return len(planned)
    first = order.program("check").expand({}, ()).pods
    return sum(labels.LABEL_SWEEP in pod.labels for pod in first) or len(planned)
