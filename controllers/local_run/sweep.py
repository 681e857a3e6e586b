"""One sweep under one policy on this machine: what it needs around it, the loop that drives it, and its result."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controllers.core import labels
from controllers.core.earlier import NOTHING_EARLIER, Earlier
from controllers.core.errors import MissingObjectiveError, SpeconError, SweepInterrupted
from controllers.core.goals import aims_in
from controllers.core.model import Phase, TrialId
from controllers.core.objectives import ObjectiveWatch
from controllers.core.policy import Policy
from controllers.core.results import RunResult
from controllers.core.stop_rules import StopRules
from controllers.driving.assembly import RESIZES_FREELY_S, guard_policy
from controllers.driving.clock import SweepClock
from controllers.driving.driver import Driver, RealBeats
from controllers.driving.drivers import SweepPorts, make_drivers
from controllers.driving.policy_change import PolicyChange
from controllers.local_run.answers import Answers
from controllers.local_run.begun_again import BegunAgain
from controllers.local_run.failed_attempts import FailedAttempts
from controllers.local_run.finishing import courier_for, wait_for
from controllers.local_run.full_disk import PatientStore, once_there_is_room
from controllers.local_run.journals import JournalReader, OverJournals
from controllers.local_run.late_mlflow import LateMlflow, SweepInMlflow
from controllers.local_run.objective_check import ObjectiveCheck, note_missing
from controllers.local_run.printed_objectives import PrintedObjectives, WithPrinted, keep_printed
from controllers.local_run.run_folder import write_result
from controllers.local_run.services import GRACE_S, RunServices
from controllers.local_run.shared_files import SharedFilesWatch, written_by_us
from controllers.local_run.short_of_memory import ShortOfMemory
from controllers.local_run.trial_notices import Notices
from controllers.local_run.trial_runs import KnownRuns, TrialRuns
from controllers.policies import Pinned
from controllers.policies.registry import spec_or_name
from controllers.record.actions import ActionFile
from controllers.record.forecasts import FORECASTS_FILE, ForecastFile
from controllers.record.others_load import OthersLoad
from controllers.record.timeline import TimelineFile
from controllers.worlds.local.attempts import Attempts, Surroundings, end_leftovers
from controllers.worlds.local.engine_files import AskedFile, PolicyFile, StateFile, elapsed_before
from controllers.worlds.local.jobs import JobLedger, LedgerFile, LocalJob, load_ledger
from controllers.worlds.local.room import Machine
from controllers.worlds.local.shares import Shares, choose_shares
from controllers.worlds.local.standing import said, told_at_stake
from controllers.worlds.local.workflow import Program
from controllers.worlds.local.world import LocalWorld
from mlflow_hooks import contract
from mlflow_hooks.delivery import end_untold
from mlflow_hooks.journal import POINTS

if TYPE_CHECKING:
    from controllers.local_run.closing import Closing
    from controllers.local_run.opened_mlflow import OpenedMlflow

_HEARTBEAT_S = 1.0
_STEP_S = 0.2
_LAST_TAGS_S = 15.0
_OPENING_S = 10.0


@dataclass(frozen=True)
class Plan:
    """All that one run under one policy needs to know.

    ``uid`` stands for the workflow's uid: different for each policy and run, wherever they share an
    MLflow; ``sweeps`` gives the MLflow experiment of each sweep id. ``continued`` tells that it was begun elsewhere,
    with that uid. ``stops`` are the rules that end each sweep early, by its name; ``earlier`` is what was learnt
    before. ``trains_anyway`` has all trials train though the objective does not show.
    """

    program: Program
    uid: str
    title: str
    policy: Policy[Any]
    machine: Machine
    folder: Path
    sweeps: Mapping[str, str]
    tracking_uri: str
    continued: bool = False
    stops: Mapping[str, StopRules] = field(default_factory=dict)
    earlier: Earlier = NOTHING_EARLIER
    trains_anyway: bool = False

    @property
    def several(self) -> bool:
        """Whether one of its sweeps has several objectives."""
        return any(aims_in(trial.step.annotations).further for trial in self.program.trials())


class LocalSweep:
    """Drives a plan to its end; may be built again for the same folder after any interruption."""

    def __init__(self, plan: Plan, services: RunServices) -> None:
        self._plan = plan
        self._services = services
        self._ledger_path = plan.folder / "ledger.json"
        self._ledger = LedgerFile(self._ledger_path)
        name, spec = plan.policy.name, spec_or_name(plan.policy)
        self._state = plan.folder / "state"
        self._state_dir = plan.folder.resolve().parents[2]
        told = SweepInMlflow(plan.tracking_uri, plan.uid, plan.sweeps, plan.title, name, spec)
        self._mlflow = LateMlflow(told, services.stop.is_set)
        self._printed = PrintedObjectives(plan.folder, services.screen.say)
        self._others = OthersLoad()

    def run(self) -> tuple[RunResult, str]:
        """Run to the end and return what it came to, and what MLflow lacks of it, empty for nothing.

        Raises:
            SweepInterrupted: it was told to stop; everything is kept for going on.
            MissingObjectiveError: trials have ended without the objective, and the others must not begin.
            SpeconError: this machine cannot start a trial, or there is none.
        """
        interrupted = load_ledger(self._ledger_path)
        self._end_leftovers(interrupted)
        with ExitStack() as stack:
            shares = self._shares(stack)
            attempts = Attempts(shares, self._services.launcher, self._surroundings())
            self._services.launcher.wait_ready(self._services.stop.is_set)
            clock = SweepClock(elapsed_before(self._plan.folder))
            world = self._open_world(stack, attempts, interrupted, clock)
            journals = JournalReader(self._state, world.jobs, clock.from_epoch, self._services.screen.say)
            samples = OverJournals(
                WithPrinted(self._mlflow, self._printed, world.jobs, self._mlflow.run_ids, clock.from_epoch),
                journals.samples,
                clock.now,
            )
            world.newest = samples.poll
            store = StateFile(self._plan.folder, clock.now)
            self._objective = self._objective_check(stack, world, samples)
            self._drive(world, make_drivers(self._ports(world, samples, store, clock)), clock, samples)
            self._read_the_rest(world, journals)
            trials = tuple(world.results(samples.poll()))
            if not trials:
                message = "the workflow ended without having run a trial"
                raise SpeconError(message)
            self._save(world)
            # A controller killed from here on comes back to deliver at most, and would leave its control groups.
            shares.close()
            interrupted_s, others = round(store.interrupted_s, 1), round(self._others.cores, 2)
            result = RunResult(self._plan.policy.name, trials, interrupted_s, cores_of_others=others)
            return self._conclude(result, world)

    def _read_the_rest(self, world: LocalWorld, journals: JournalReader) -> None:
        """Read what the trials have written since the last look, which is bounded: all of them have ended."""
        stopped = self._services.stop.is_set
        journals.read_all(stopped)
        self._printed.read_all(world.jobs(), stopped)
        if stopped():
            raise SweepInterrupted(self._interrupted(world))

    def _open_world(
        self, stack: ExitStack, attempts: Attempts, interrupted: JobLedger, clock: SweepClock
    ) -> LocalWorld:
        """Return the world as it was left, and look for MLflow beside; both end with ``stack``."""
        world = LocalWorld(self._plan.program, self._plan.uid, self._plan.machine, attempts, interrupted)
        self._answers = Answers(self._mlflow, self._plan.folder, self._printed.look, self._keep_what_was_printed)
        stack.callback(self._answers.close)
        begun = world.standings()
        if begun:
            self._services.screen.say(f"going on: {said(begun)}")
        stack.push(lambda kind, *_: self._keep(world, cut=kind is not None))
        stack.callback(self._mlflow.close)
        # What began again may have runs where its script said.
        self._mlflow.open(lambda side: side.follow(world, clock, self._state), looks_elsewhere=bool(begun))
        if self._services.server is None:
            # The user's own server is up. Several scripts that find no experiment there would all make it.
            self._mlflow.within(_OPENING_S)
        return world

    def _objective_check(self, stack: ExitStack, world: LocalWorld, samples: OverJournals) -> ObjectiveCheck:
        """Return what holds back trials while the objective does not show, asked with what else they wait for."""

        def logged(jobs: Sequence[LocalJob]) -> Mapping[str, Collection[str]]:
            return self._mlflow.needed().names_logged(self._state, jobs)

        holding = not self._plan.trains_anyway
        check = ObjectiveCheck(self._plan.folder, world, samples.poll, logged, holding=holding)
        stack.callback(check.close)
        world.waits_for_others = lambda job: self._answers.wait(job.step, world.jobs) or check.holds(job)
        return check

    def _conclude(self, result: RunResult, world: LocalWorld) -> tuple[RunResult, str]:
        """Keep the result, give MLflow what it lacks, and return both as ``run`` does."""
        once_there_is_room(lambda: write_result(self._plan.folder, result, delivered=False), self._services)
        self._mlflow.stop_sending()
        result, lacking = self.deliver(result, world.ledger.jobs)
        if not lacking:
            self._mlflow.settle(_LAST_TAGS_S)
        return result, lacking

    def deliver(self, result: RunResult, jobs: Mapping[str, LocalJob]) -> tuple[RunResult, str]:
        """Give MLflow what it lacks of a sweep that has ended, and end its runs.

        Args:
            result: what the sweep came to, as far as the disk knows.
            jobs: its jobs; all have ended.

        Returns:
            The result, also with what MLflow alone knows, and what MLflow still lacks, empty for nothing.

        Raises:
            SweepInterrupted: it was told to stop; the same command sends the rest.
        """
        of_trials = [job for job in jobs.values() if job.trial]
        self._printed.read_all(of_trials, self._services.stop.is_set)
        if self._services.stop.is_set():
            message = "interrupted: all trials have ended, but MLflow may lack some of it: run the same command again"
            raise SweepInterrupted(message)
        # Through the link that a program made of its folder nothing is written: it may lead anywhere.
        of_trials = [job for job in of_trials if not (self._state / job.trial).is_symlink()]
        for job in of_trials:
            if job.phase.ended and (self._state / job.trial).is_dir():
                # Of one that was stopped, killed or knows no hooks, nobody else tells MLflow that it is over.
                end = partial(end_untold, self._state / job.trial, succeeded=job.exit_code == 0)
                once_there_is_room(end, self._services)
        self._mlflow.open()
        closings: list[Closing] = []

        def parents() -> Mapping[str, str]:
            side = self._mlflow.needed()
            self._keep_what_was_printed(side, of_trials)
            return side.parents

        def conclude() -> None:
            closing = self._mlflow.needed().closing(self._plan.folder, of_trials, result)
            closing.conclude()
            closings.append(closing)

        folders = [self._state / job.trial for job in of_trials]
        courier = courier_for(folders, parents, conclude)
        courier.start()
        lack = wait_for(courier, self._services)
        for line in courier.deleted:
            self._services.screen.say(line)
        if lack is None:
            whole = closings[-1].result
            note_missing(self._plan.folder, whole)
            once_there_is_room(lambda: write_result(self._plan.folder, whole, delivered=True), self._services)
            return whole, ""
        return result, f"{lack} (the last try: {courier.problem or 'MLflow does not answer'})"

    def _shares(self, stack: ExitStack) -> Shares:
        """Return what enforces CPU shares, and say what it cannot; it ends with ``stack``, after all attempts."""
        shares = choose_shares(self._plan.uid)
        self._services.screen.say(f"CPU shares: {shares.description}")
        stack.callback(shares.close)
        limited = any(trial.step.memory_limit is not None for trial in self._plan.program.trials())
        if limited and not shares.limits_memory:
            self._services.screen.say("memory limits are not enforced: there is no control group for memory")
        # Pushed after the shares, so that it runs before them: attempts save before their control groups go.
        stack.push(self._end_attempts_of_a_cut_sweep)
        return shares

    def _ports(self, world: LocalWorld, samples: OverJournals, store: StateFile, clock: SweepClock) -> SweepPorts:
        """Return what steers the sweep, whichever policy does."""
        folder, screen = self._plan.folder, self._services.screen
        return SweepPorts(
            world=world,
            source=samples,
            store=PatientStore(store, self._services),
            clock=clock,
            beats=RealBeats(_HEARTBEAT_S),
            # Under a policy that places no trial, those that a search gives their hyperparameters start too.
            guard=lambda policy: Pinned(
                policy=guard_policy(policy, resize_cooldown=RESIZES_FREELY_S), short=world.short
            ),
            requests=AskedFile(folder),
            stops=lambda: self._plan.stops,
            earlier=lambda: self._plan.earlier,
            logs=(ActionFile(folder),),
            observers=(self._mlflow, self._others),
            screens=(screen,),
            cores_used=world.cores_used,
            keep_events=TimelineFile(folder / "timeline.jsonl").append,
            keep_forecasts=ForecastFile(folder / FORECASTS_FILE).append,
            show_forecast=(screen.foresee, self._mlflow.tell),
            tell_silence=lambda _, line: screen.say(line),
        )

    def _keep_what_was_printed(self, side: "OpenedMlflow", jobs: Iterable[LocalJob]) -> None:
        """Have MLflow get the objective of trials that only printed it, once it is known to have no run of theirs."""
        printed = {TrialId(job.trial): job for job in jobs if self._printed.points(job)}
        only = {trial: job for trial, job in printed.items() if not (self._state / trial / POINTS).exists()}
        objectives = {trial: job.step.annotations[labels.ANNOTATION_OBJECTIVE] for trial, job in only.items()}
        for trial in side.without_runs(objectives):
            job, sweep = only[trial], only[trial].step.env.get(contract.ENV_SWEEP_ID, "")
            if sweep in side.parents:
                points, home = self._printed.points(job), self._plan.sweeps[sweep]
                keep_printed(self._state / trial, job, points, home, side.parents[sweep])

    def _end_attempts_of_a_cut_sweep(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._services.launcher.close(GRACE_S)

    def _keep(self, world: LocalWorld, *, cut: bool) -> None:
        """Keep the ledger; of a sweep that was cut short, with the CPU seconds of the attempts that end with it."""
        if not cut:
            self._save(world)
            return
        try:
            self._ledger.save(world.ledger)
            self._services.launcher.close(GRACE_S)
            world.count_cut()
            self._ledger.save(world.ledger)
        except OSError as error:
            # What ended the sweep counts, and the ledger is as it was before: what it does not know of is done again.
            self._services.screen.say(f"Warning: the newest state of the trials is not kept: {error}")

    def _save(self, world: LocalWorld) -> None:
        once_there_is_room(lambda: self._ledger.save(world.ledger), self._services)

    def _drive(
        self,
        world: LocalWorld,
        steered_by: Callable[[Policy[Any]], Driver],
        clock: SweepClock,
        samples: OverJournals,
    ) -> None:
        watch, asked = ObjectiveWatch(), PolicyFile(self._plan.folder)
        say = self._services.screen.say
        change = PolicyChange(self._plan.policy, world.can, "local", say, several=lambda: self._plan.several)
        change.take(asked.read())
        driver = steered_by(change.policy)
        left_out = written_by_us([self._state_dir])
        shared = SharedFilesWatch(Path.cwd(), world.short, clock.to_epoch(clock.now()), left_out)
        begun_again = BegunAgain(world.short)
        failed = FailedAttempts(world.jobs(), world.short)
        notices = Notices(self._state, world.short)
        short_of_memory = ShortOfMemory(world.jobs(), world.short)
        while not world.finished:
            if change.take(asked.read()):
                driver = steered_by(change.policy)
            if self._services.stop.is_set():
                raise SweepInterrupted(self._interrupted(world))
            self._advance(driver, world, clock)
            now = clock.now()
            self._warn(shared.look(now, world.jobs(), clock.to_epoch))
            self._say(failed.look(world.jobs(), world.standings))
            self._say(short_of_memory.look(world.jobs(), world.memory))
            if now >= driver.due_at:
                driver.tick(now)
                self._advance(driver, world, clock)  # what it has placed starts now, not at the next look
                self._mlflow.note(world.jobs())
                self._warn(watch.look(now, world, self._mlflow.logged()).values())
                self._services.keep_alive()
                told = (
                    *self._mlflow.news(),
                    *self._answers.news(),
                    *notices.look(world.jobs()),
                    *self._objective.news(),
                )
                self._say(told)
                if why := self._objective.why_over():
                    raise MissingObjectiveError(why)
                self._note_begun_again(world, samples)
                self._say(begun_again.look(world.jobs()))
            # The end of an attempt wakes the loop at once, so that the next trial starts without delay.
            self._services.launcher.wait(_STEP_S)
        self._warn(shared.look(clock.now(), world.jobs(), clock.to_epoch, last=True))
        self._say(short_of_memory.look(world.jobs(), world.memory))
        if world.failed and not any(job.phase is Phase.FAILED for job in world.jobs()):
            self._warn([f"the workflow failed: {world.message}"])
        # Once more, for the last phases and reports to get into the record and onto the runs.
        driver.tick(clock.now())

    def _note_begun_again(self, world: LocalWorld, samples: OverJournals) -> None:
        before = world.changes
        world.note_begun_again(samples.newest)
        if world.changes != before:
            self._save(world)

    def _advance(self, driver: Driver, world: LocalWorld, clock: SweepClock) -> None:
        before = world.changes
        once_there_is_room(lambda: driver.advance(clock.now()), self._services)
        if world.changes != before:
            # A controller killed from here on finds what runs by now, and can end it.
            self._save(world)

    def _warn(self, warnings: Iterable[str]) -> None:
        self._say(f"Warning: {warning}" for warning in warnings)

    def _say(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._services.screen.say(line)

    def _interrupted(self, world: LocalWorld) -> str:
        """Say what is at stake, end the attempts, and say where the trials go on."""
        self._say(told_at_stake(world.at_stake()))
        self._services.launcher.close(GRACE_S)
        world.count_cut()
        standings = world.standings()
        told = f" ({said(standings)})" if standings else ""
        return f"interrupted{told}; run the same command again to go on"

    def _surroundings(self) -> Surroundings:
        given = os.environ.get(contract.ENV_RUN_CONTEXT, "")
        return Surroundings(
            folder=self._plan.folder.resolve(),
            cwd=Path.cwd(),
            inherited=self._services.inherited,
            imposed=self._services.imposed,
            node_cpu=self._plan.machine.nodes,
            gives_gpus=any(self._plan.machine.gpus.values()),
            # Where the sweep was started in the very folder that keeps runs, what it keeps beside them is copied too.
            leave_out=self._state_dir / "runs" if Path.cwd().is_relative_to(self._state_dir) else self._state_dir,
            tracking=TrialRuns(
                self._known,
                self._plan.folder.resolve() / "state",
                self._plan.sweeps,
                given,
                begun_elsewhere=self._plan.continued,
            ),
        )

    def _known(self, within_s: float) -> KnownRuns | None:
        side = self._mlflow.within(within_s)
        return side.known if side else None

    @staticmethod
    def _end_leftovers(ledger: JobLedger) -> None:
        """End what a killed controller left running, before the next attempt of the same trial starts."""
        end_leftovers((process for job in ledger.jobs.values() if job.placed for process in job.processes), GRACE_S)
