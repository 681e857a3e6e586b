"""The steps of a workflow as they come due: which exist follows from how those before them ended."""

from collections.abc import Mapping, Sequence
from typing import Final

from controllers.core.model import Phase, TrialId
from controllers.core.ports import ComingTrial
from controllers.worlds.local.admission import Admission
from controllers.worlds.local.gpus import devices_of
from controllers.worlds.local.job_book import JobBook
from controllers.worlds.local.jobs import LocalJob
from controllers.worlds.local.room import Machine
from controllers.worlds.local.workflow import Expansion, Program, StepOutcome, StepStatus
from mlflow_hooks import contract

_ENDED_WELL: Final = frozenset({Phase.SUCCEEDED, Phase.STOPPED})


class DueSteps:
    """Takes up each step of ``program`` as a job once it is due.

    Args:
        program: The workflow.
        machine: Where it runs.
        jobs: All jobs as they are at any time; those that come are added.
        admission: Is told of each step before it may start.
        delays: When each suspended step ends that has begun to wait, in seconds of the sweep's clock.

    Attributes:
        expansion: Which steps exist, and whether the workflow is over, as of the last look.
    """

    def __init__(
        self, program: Program, machine: Machine, jobs: JobBook, admission: Admission, delays: Mapping[str, float]
    ) -> None:
        self._program, self._machine, self._jobs, self._admission = program, machine, jobs, admission
        self._delays = dict(delays)
        planned = program.trials()
        self._arrives = any(trial.delay for trial in planned)
        self._planned = [
            ComingTrial(
                TrialId(step.env.get(contract.ENV_TRIAL_ID, "")),
                trial.delay,
                step.cpu * step.workers,
                devices=devices_of(step.gpus * step.workers),
            )
            for trial in planned
            for step in (trial.step,)
        ]
        for trial in planned:
            admission.expect(trial.step)
        self._submitted: Expansion | None = None
        self._expanded_at = self._moment(over=0)
        self.expansion = self._expanded(over=frozenset())

    @property
    def delays(self) -> dict[str, float]:
        """When each suspended step ends that has begun to wait, in seconds of the sweep's clock."""
        return dict(self._delays)

    @property
    def to_run(self) -> int:
        """How many trials run or wait; those that will arrive count, but not those that others keep from coming."""
        arriving = len(self._planned) - self._jobs.submitted if self._arrives else 0
        return self._jobs.to_end + max(0, arriving)

    def to_come(self) -> Sequence[ComingTrial]:
        """Return every trial that is known before running and has not been submitted yet."""
        return [trial for trial in self._planned if self._jobs.of_trial(trial.id) is None]

    def take_up(self, now: float) -> None:
        """Submit the steps that have come due by ``now``: they are worked out again only where more have ended."""
        over = frozenset(name for name, ends in self._delays.items() if ends <= now)
        moment = self._moment(over=len(over))
        if moment != self._expanded_at:
            self._expanded_at = moment
            self.expansion = self._expanded(over=over)
        if self.expansion is not self._submitted:
            self._submitted = self.expansion
            self._submit(now)

    def _moment(self, over: int) -> tuple[int, int, int]:
        return self._jobs.ends, len(self._delays), over

    def _expanded(self, over: frozenset[str]) -> Expansion:
        """Return which steps should exist, by how those before them ended; ``over`` are delays that have passed."""
        outcomes = {
            job.id: StepOutcome(
                StepStatus.SUCCEEDED if job.phase in _ENDED_WELL else StepStatus.FAILED,
                job.result,
                job.exit_code,
                job.outputs,
            )
            for job in self._jobs.values()
            if job.phase.ended
        }
        outcomes |= {name: StepOutcome(StepStatus.SUCCEEDED) for name in over}
        running = [job.id for job in self._jobs.values() if not job.phase.ended]
        running += [name for name in self._delays if name not in over]
        return self._program.expand(outcomes, running)

    def _submit(self, now: float) -> None:
        """Take up the steps and delays that should exist and are new."""
        for delay in self.expansion.delays:
            self._delays.setdefault(delay.id, now + delay.seconds)
        for step in self.expansion.pods:
            if step.id not in self._jobs:
                # A gang starts with as many workers as it may have, or as ever fit here.
                most = max(min(step.workers, self._machine.most_workers(step)), step.min_workers)
                self._admission.expect(step)
                self._jobs[step.id] = LocalJob(step, now, step.cpu, workers=most)
