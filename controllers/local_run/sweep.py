"""One sweep under one policy on this machine: what it needs around it, the loop that drives it, and its result."""

import os
import select
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlflow.exceptions import MlflowException

from controllers.core.errors import SpeconError, SweepInterrupted
from controllers.core.objectives import ObjectiveWatch
from controllers.core.policy import Policy
from controllers.core.results import RunResult
from controllers.driving.assembly import assemble, guarded
from controllers.driving.clock import SweepClock
from controllers.driving.driver import Driver, RealBeats
from controllers.driving.policy_change import PolicyChange
from controllers.forecast.forecaster import Forecaster
from controllers.local_run.closing import Closing
from controllers.local_run.failed_attempts import FailedAttempts
from controllers.local_run.finishing import courier_for, wait_for
from controllers.local_run.journals import LastWord, journalled_samples
from controllers.local_run.run_folder import write_result
from controllers.local_run.services import GRACE_S, RunServices
from controllers.local_run.shared_files import SharedFilesWatch, written_by_us
from controllers.local_run.short_of_memory import ShortOfMemory
from controllers.local_run.trial_runs import TrialRuns
from controllers.policies import Pinned
from controllers.policies.registry import spec_or_name
from controllers.record.actions import ActionFile
from controllers.record.forecasts import FORECASTS_FILE, ForecastFile, ForecastRecorder
from controllers.record.recorder import Recorder
from controllers.record.silence import SilenceWatch
from controllers.record.timeline import TimelineFile
from controllers.tracking.access import MlflowAwayError, shown
from controllers.tracking.background import BackgroundReader
from controllers.tracking.client import CarefulClient
from controllers.tracking.mlflow_source import MlflowSource, Scope
from controllers.tracking.script_runs import Whereabouts
from controllers.tracking.sweep_runs import Steering, SweepRun, open_sweep
from controllers.tracking.tags import TagWriter, trial_tags
from controllers.worlds.local.attempts import Attempts, Surroundings, end_leftovers
from controllers.worlds.local.engine_files import AskedFile, PolicyFile, StateFile, elapsed_before
from controllers.worlds.local.jobs import JobLedger, LocalJob, load_ledger, save_ledger
from controllers.worlds.local.room import Machine
from controllers.worlds.local.shares import choose_shares
from controllers.worlds.local.standing import said
from controllers.worlds.local.workflow import Program
from controllers.worlds.local.world import LocalWorld
from mlflow_hooks import contract
from mlflow_hooks.delivery import end_untold

_HEARTBEAT_S = 1.0
_STEP_S = 0.2
_LAST_TAGS_S = 15.0
_MOST_BEGINNINGS = 5


@dataclass(frozen=True)
class Plan:
    """All that one run under one policy needs to know.

    ``uid`` stands for the workflow's uid: different for each policy and run, wherever they share an
    MLflow; ``sweeps`` gives the MLflow experiment of each sweep id.
    """

    program: Program
    uid: str
    title: str
    policy: Policy[Any]
    machine: Machine
    folder: Path
    sweeps: Mapping[str, str]
    tracking_uri: str


class LocalSweep:
    """Drives a plan to its end; may be built again for the same folder after any interruption."""

    def __init__(self, plan: Plan, services: RunServices) -> None:
        self._plan = plan
        self._services = services
        self._client = CarefulClient(plan.tracking_uri)
        self._ledger_path = plan.folder / "ledger.json"
        name, spec = plan.policy.name, spec_or_name(plan.policy)
        self._state = plan.folder / "state"
        self._state_dir = plan.folder.resolve().parents[2]
        self._runs = self._opened(Steering(f"{plan.title} · {name}", name, plan.uid, spec=spec))
        home = sorted({run.experiment_id for run in self._runs})
        self._begun: dict[str, int] = {}
        self._where = Whereabouts(self._client, lambda: Scope(home, f"{plan.uid}."))

    def _opened(self, steering: Steering) -> Sequence[SweepRun]:
        try:
            return [open_sweep(self._client, sweep, name, steering) for sweep, name in self._plan.sweeps.items()]
        except (MlflowException, OSError) as error:
            where, why = shown(self._plan.tracking_uri), shown(str(error))[:200]
            message = f"MLflow at {where} does not answer ({why}); nothing is lost, run the same command again"
            raise MlflowAwayError(message) from error

    def run(self) -> tuple[RunResult, str]:
        """Run to the end and return what it came to, and what MLflow lacks of it, empty for nothing.

        Raises:
            SweepInterrupted: it was told to stop; everything is kept for going on.
            SpeconError: this machine cannot start a trial, or there is none.
        """
        interrupted = load_ledger(self._ledger_path)
        self._end_leftovers(interrupted)
        with ExitStack() as stack:
            shares = choose_shares(self._plan.uid)
            self._services.screen.say(f"CPU shares: {shares.description}")
            stack.callback(shares.close)
            limited = any(trial.step.memory_limit is not None for trial in self._plan.program.trials())
            if limited and not shares.limits_memory:
                self._services.screen.say("memory limits are not enforced: there is no control group for memory")
            # Pushed after the shares, so that it runs before them: attempts save before their control groups go.
            stack.push(self._end_attempts_of_a_cut_sweep)
            around = self._surroundings()
            attempts = Attempts(shares, self._services.launcher, around)
            self._services.launcher.wait_ready()
            clock = SweepClock(elapsed_before(self._plan.folder))
            world = LocalWorld(self._plan.program, self._plan.uid, self._plan.machine, attempts, interrupted)
            if begun := world.standings():
                self._services.screen.say(f"going on: {said(begun)}")
                with suppress(MlflowException, OSError):
                    self._where.look()  # what began again may have runs where its script said
            stack.push(lambda kind, *_: self._keep(world, cut=kind is not None))
            source = MlflowSource(
                self._client,
                lambda: self._where.scope(lacking=len(source.run_ids) < len(world.objectives())),
                world.objectives,
                clock.from_epoch,
                epoch=clock.epoch,
            )
            reader = stack.enter_context(BackgroundReader(_HEARTBEAT_S))
            background = stack.enter_context(reader.follow(source))
            samples = LastWord(
                background, lambda: journalled_samples(self._state, world.jobs(), clock.from_epoch), clock.now
            )
            writer = stack.enter_context(TagWriter(self._client))
            tags = stack.enter_context(writer.board(lambda: source.run_ids, trial_tags))
            timeline = TimelineFile(self._plan.folder / "timeline.jsonl")
            recorder = Recorder(timeline.append, world.cores_used, world.short)
            sweeps = {run.sweep_id: run.run_id for run in self._runs}
            foreseen = stack.enter_context(writer.forecasts(lambda: source.run_ids, lambda: sweeps, clock.to_epoch))
            forecasts = ForecastRecorder(ForecastFile(self._plan.folder / FORECASTS_FILE).append, world.short)
            told = (self._services.screen.foresee, foreseen.tell, forecasts.tell)
            silence = SilenceWatch(lambda _, line: self._services.screen.say(line))
            store = StateFile(self._plan.folder, clock.now)

            def steered_by(policy: Policy[Any]) -> Driver:
                forecaster = Forecaster(policy, world.to_come, told)
                engine = assemble(
                    policy,
                    world,
                    samples,
                    store,
                    logs=(ActionFile(self._plan.folder),),
                    observers=(tags, recorder, forecaster, silence, self._services.screen),
                    # Under a policy that places no trial, those that a search gives their hyperparameters start too.
                    guard=lambda policy: Pinned(policy=guarded(policy), short=world.short),
                    requests=AskedFile(self._plan.folder),
                )
                return Driver(engine, world, RealBeats(_HEARTBEAT_S), clock.now())

            self._drive(world, steered_by, source, clock, samples)
            trials = tuple(world.results(samples.poll()))
            if not trials:
                message = "the workflow ended without having run a trial"
                raise SpeconError(message)
            result = RunResult(self._plan.policy.name, trials, round(store.interrupted_s, 1))
            save_ledger(self._ledger_path, world.ledger)
            # A controller killed from here on comes back to deliver at most, and would leave its control groups.
            shares.close()
            write_result(self._plan.folder, result, delivered=False)
            result, lacking = self.deliver(result, world.ledger.jobs)
            if not lacking:
                tags.settle(_LAST_TAGS_S)
            return result, lacking

    def deliver(self, result: RunResult, jobs: Mapping[str, LocalJob]) -> tuple[RunResult, str]:
        """Give MLflow what it lacks of a sweep that has ended, and end its runs.

        Args:
            result: what the sweep came to, as far as the disk knows.
            jobs: its jobs, all of which have ended.

        Returns:
            The result, also with what MLflow alone knows, and what MLflow still lacks, empty for nothing.

        Raises:
            SweepInterrupted: it was told to stop; the same command sends the rest.
        """
        of_trials = [job for job in jobs.values() if job.trial]
        for job in of_trials:
            if job.phase.ended and (self._state / job.trial).is_dir():
                # Of one that was stopped, killed or knows no hooks, nobody else tells MLflow that it is over.
                end_untold(self._state / job.trial, succeeded=job.exit_code == 0)
        closing = Closing(self._client, self._runs, self._where, self._plan.folder, self._plan.uid, of_trials, result)
        courier = courier_for([self._state / job.trial for job in of_trials], closing.conclude)
        courier.start()
        lack = wait_for(courier, self._services)
        for line in courier.deleted:
            self._services.screen.say(line)
        if lack is None:
            write_result(self._plan.folder, closing.result, delivered=True)
            return closing.result, ""
        return result, f"{lack} (the last try: {courier.problem or 'MLflow does not answer'})"

    def _end_attempts_of_a_cut_sweep(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._services.launcher.close(GRACE_S)

    def _keep(self, world: LocalWorld, *, cut: bool) -> None:
        """Keep the ledger; of a sweep that was cut short, with the CPU seconds of the attempts that end with it."""
        save_ledger(self._ledger_path, world.ledger)
        if cut:
            self._services.launcher.close(GRACE_S)
            world.count_cut()
            save_ledger(self._ledger_path, world.ledger)

    def _drive(
        self,
        world: LocalWorld,
        steered_by: Callable[[Policy[Any]], Driver],
        source: MlflowSource,
        clock: SweepClock,
        samples: LastWord,
    ) -> None:
        watch, asked = ObjectiveWatch(), PolicyFile(self._plan.folder)
        change = PolicyChange(self._plan.policy, world.can, "local", self._services.screen.say)
        change.take(asked.read())
        driver = steered_by(change.policy)
        left_out = written_by_us([self._state_dir])
        shared = SharedFilesWatch(Path.cwd(), world.short, clock.to_epoch(clock.now()), left_out)
        failed = FailedAttempts(world.jobs(), world.short)
        short_of_memory = ShortOfMemory(world.jobs(), world.short)
        while not world.finished:
            if change.take(asked.read()):
                driver = steered_by(change.policy)
            if self._services.stop.is_set():
                raise SweepInterrupted(self._interrupted(world))
            if driver.advance(clock.now()):
                # A controller killed from here on finds what runs by now, and can end it.
                save_ledger(self._ledger_path, world.ledger)
            now = clock.now()
            self._warn(shared.look(now, world.jobs(), clock.to_epoch))
            self._say(failed.look(world.jobs(), world.standings))
            self._say(short_of_memory.look(world.jobs(), world.memory))
            if now >= driver.due_at:
                driver.tick(now)
                self._warn(watch.look(now, world, source.logged).values())
                self._services.keep_alive()
                self._tell_of_other_experiments()
                self._tell_of_beginnings(world)
            # The end of an attempt wakes the loop at once, so that the next trial starts without delay.
            select.select([self._services.launcher.fileno()], [], [], _STEP_S)
        self._warn(shared.look(clock.now(), world.jobs(), clock.to_epoch, last=True))
        self._say(short_of_memory.look(world.jobs(), world.memory))
        # Once more, for the last phases and reports to get into the record and onto the runs.
        samples.ended = True
        driver.tick(clock.now())

    def _warn(self, warnings: Iterable[str]) -> None:
        self._say(f"Warning: {warning}" for warning in warnings)

    def _say(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._services.screen.say(line)

    def _interrupted(self, world: LocalWorld) -> str:
        """End the attempts, and say where the trials go on."""
        self._services.launcher.close(GRACE_S)
        world.count_cut()
        standings = world.standings()
        told = f" ({said(standings)})" if standings else ""
        return f"interrupted{told}; run the same command again to go on"

    def _tell_of_other_experiments(self) -> None:
        for line in self._where.news(self._plan.sweeps.values()):
            self._services.screen.say(line)

    def _tell_of_beginnings(self, world: LocalWorld) -> None:
        """Say of each trial that it began again from nothing, when it does; of the first few, where there are many."""
        for job in world.jobs():
            before, self._begun[job.id] = self._begun.get(job.id, 0), job.begun_again
            if job.begun_again > before and sum(map(bool, self._begun.values())) <= _MOST_BEGINNINGS:
                self._services.screen.say(
                    f"{world.short(job.trial)} began again from nothing, as it keeps no checkpoint; what it logged "
                    "before does not count. A script with hooks goes on (docs/how-to/instrument-a-training-script.md)"
                )

    def _surroundings(self) -> Surroundings:
        sweeps = {run.sweep_id: run for run in self._runs}
        state_root = self._plan.folder.resolve() / "state"
        return Surroundings(
            folder=self._plan.folder.resolve(),
            cwd=Path.cwd(),
            inherited=self._services.inherited,
            imposed=self._services.imposed,
            node_cpu=self._plan.machine.nodes,
            parents={run.sweep_id: run.run_id for run in self._runs},
            gives_gpus=any(self._plan.machine.gpus.values()),
            # Where the sweep was started in the very folder that keeps runs, what it keeps beside them is copied too.
            leave_out=self._state_dir / "runs" if Path.cwd().is_relative_to(self._state_dir) else self._state_dir,
            tracking=TrialRuns(
                self._client,
                state_root,
                sweeps,
                self._plan.sweeps,
                self._where.experiments,
                os.environ.get(contract.ENV_RUN_CONTEXT, ""),
            ),
        )

    @staticmethod
    def _end_leftovers(ledger: JobLedger) -> None:
        """End what a killed controller left running, before the next attempt of the same trial starts."""
        end_leftovers((one for job in ledger.jobs.values() if job.placed for one in job.processes), GRACE_S)
