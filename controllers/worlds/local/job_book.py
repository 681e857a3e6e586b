"""All jobs of a workflow, with those at hand that the world asks for again and again: no look goes through all of them.

A sweep has thousands of trials, and a few of them run. Most looks ask about these few.
"""

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, ValuesView

from controllers.core.model import Phase
from controllers.worlds.local.jobs import LocalJob


class JobBook(MutableMapping[str, LocalJob]):
    """The jobs by the id of their step, in the order of submission; none is ever taken out.

    ``changes`` counts whatever was changed, ``ends`` only what the steps that follow may depend on: jobs that came, and
    jobs that ended. A reader that has seen a number has seen all changes before it.
    """

    def __init__(self, jobs: Mapping[str, LocalJob]) -> None:
        self.changes = 0
        self.ends = 0
        self._all: dict[str, LocalJob] = {}
        self._places: dict[str, int] = {}
        self._trials: list[str] = []
        self._of_trials: dict[str, str] = {}
        self._placed: dict[str, LocalJob] = {}
        self._pending: dict[str, LocalJob] = {}
        self._holding: dict[str, LocalJob] = {}
        self._to_end: dict[str, LocalJob] = {}
        self.update(jobs)

    def __getitem__(self, name: str) -> LocalJob:
        return self._all[name]

    def __setitem__(self, name: str, job: LocalJob) -> None:
        before = self._all.get(name)
        if before == job:
            return  # the same object stays, so that a comparison sees no change
        self.changes += 1
        if before is None:
            self._places[name] = len(self._places)
            if job.trial:
                self._trials.append(name)
                self._of_trials.setdefault(job.trial, name)
        if before is None or before.phase.ended or job.phase.ended:
            self.ends += 1
        self._all[name] = job
        _keep(self._placed, job, kept=job.placed)
        _keep(self._pending, job, kept=job.phase is Phase.PENDING)
        _keep(self._to_end, job, kept=not job.phase.ended and bool(job.trial))
        _keep(self._holding, job, kept=job.placed or (bool(job.targets) and not job.phase.ended))

    def __delitem__(self, name: str) -> None:
        raise TypeError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    @property
    def placed(self) -> list[LocalJob]:
        """The jobs with an attempt that runs."""
        return self._in_order(self._placed.values())

    @property
    def pending(self) -> list[LocalJob]:
        """The jobs that wait for an attempt, those that were submitted first before the others."""
        return sorted(self._in_order(self._pending.values()), key=lambda job: job.submitted_at)

    @property
    def holding(self) -> list[LocalJob]:
        """The jobs that hold room on nodes, or for which room is held."""
        return self._in_order(self._holding.values())

    @property
    def submitted(self) -> int:
        """How many trials were submitted."""
        return len(self._trials)

    @property
    def to_end(self) -> int:
        """How many of these have not ended."""
        return len(self._to_end)

    def all(self) -> dict[str, LocalJob]:
        """Return all jobs as they are now."""
        return dict(self._all)

    def values(self) -> ValuesView[LocalJob]:
        """Return all jobs."""
        return self._all.values()

    def trials(self) -> list[LocalJob]:
        """Return the jobs that are trials."""
        return [self._all[name] for name in self._trials]

    def of_trial(self, trial: str) -> LocalJob | None:
        """Return the job of a trial, None where there is none."""
        name = self._of_trials.get(trial)
        return None if name is None else self._all[name]

    def _in_order(self, jobs: Iterable[LocalJob]) -> list[LocalJob]:
        return sorted(jobs, key=lambda job: self._places[job.id])


def _keep(among: dict[str, LocalJob], job: LocalJob, *, kept: bool) -> None:
    if kept:
        among[job.id] = job
    else:
        among.pop(job.id, None)
