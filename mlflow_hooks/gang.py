"""The workers that train one trial together: which of them this is, how they meet, what they agree on after a step.

Nothing here knows a framework. The framework's adapter lends a ``Group``, which adds numbers up over all workers.
"""

import json
import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn, Protocol

from mlflow_hooks.errors import GangError
from mlflow_hooks.foreign_json import parsed
from mlflow_hooks.interruption import MigrationExit
from mlflow_hooks.meeting import GANG, MeetingPlace
from mlflow_hooks.objects import StoreError
from mlflow_hooks.settings import AttemptSettings
from mlflow_hooks.state_folder import report

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MEET_S: Final = 300.0
"""How long a worker waits for the others: on a tenth of a core the import of a framework takes more than a minute."""
SILENCE_S: Final = 60.0
"""How long a worker waits for the others in the middle of training before it counts one of them as lost."""
CLOSE_S: Final = 10.0
"""How long a worker that is done waits for the others to be so."""
_START: Final = "start.json"
_LEFT: Final = "left-"
_DONE: Final = "done-"
_AWAY: Final = (OSError, StoreError)


class Group(Protocol):
    """The connection between the workers of one attempt."""

    def add(self, numbers: Sequence[float]) -> list[float]:
        """Return the sums over all workers, the same ones on each."""
        ...

    def blames_others(self, error: BaseException) -> bool:
        """Return whether ``error`` tells that another worker has gone."""
        ...

    def close(self) -> None:
        """Give the connection up."""
        ...


class Gang:
    """This worker among those of its trial. A trial of one worker is a gang of one, which has nothing to wait for.

    Args:
        settings: of the attempt.
        meeting: where the workers leave words for each other until they are connected.
        asked: whether this worker is to leave.
        cpu_seconds: what this worker has used and rank 0 does not know of.
        cpu_wait: the seconds that it waited for a CPU, likewise; None where nothing counts them.

    Attributes:
        rank: number of this worker, from 0; rank 0 saves and logs.
        workers: how many there are in this attempt.
        workers_max: how many there may be in any attempt.
        meeting: where they leave words for each other until they are connected.
        local_folder: a folder of this attempt on this machine.
        leaving: whether some worker was asked to leave, as of the last exchange: the same on all of them.
        others_cpu_s: CPU seconds of the others in this attempt, as of the last exchange.
        others_wait_s: seconds that they waited for CPUs, not a number where that is not known of all of them.
    """

    def __init__(
        self,
        settings: AttemptSettings,
        meeting: MeetingPlace,
        asked: Callable[[], bool],
        cpu_seconds: Callable[[], float],
        cpu_wait: Callable[[], float | None],
    ) -> None:
        self.rank = settings.rank
        self.workers = settings.workers
        self.workers_max = settings.workers_max
        self.meeting = meeting
        self.local_folder = settings.folder / GANG / settings.attempt
        self.leaving = False
        self.others_cpu_s = self.others_wait_s = 0.0
        self._asked = asked
        self._cpu_seconds = cpu_seconds
        self._cpu_wait = cpu_wait
        self._group: Group | None = None
        self._exchanged = False

    @property
    def joined(self) -> bool:
        """Whether the workers are connected, or there is nobody to be connected to."""
        return self._group is not None or self.workers == 1

    def lead(self, step: int) -> None:
        """Tell the other workers which step to go on with; rank 0 does, once it owns the trial.

        Raises:
            MigrationExit: there are others, and the disk does not take what they wait for.
        """
        if self.workers_max > 1:
            with suppress(*_AWAY):
                self.meeting.forget_others()
        if self.workers > 1:
            self._tell(_START, json.dumps({"step": step}))

    def follow(self) -> int:
        """Return the step that rank 0 goes on with; its checkpoint is there, but for step 0.

        Raises:
            MigrationExit: this worker was asked to leave, or rank 0 did not come in time.
        """
        self._wait_for({_START: 0})
        return int(parsed(self._word(_START))["step"])

    def roll_call(self, name: str, word: str = "") -> list[str]:
        """Tell the others ``word``, wait until each has told its own, and return them by rank.

        Args:
            name: what is agreed on; once in an attempt.
            word: what they shall know.

        Raises:
            MigrationExit: a worker was asked to leave, one did not come in time, or the disk does not take the word;
                which, is in the log.
        """
        self._tell(f"{name}-{self.rank}", word)
        files = self._files(f"{name}-")
        self._wait_for(files)
        return [self._word(file) for file in files]

    def say_leaving(self) -> None:
        """Tell the others that this worker leaves before training begins, so that they need not wait for it."""
        if self.workers == 1:
            return
        with suppress(*_AWAY):  # then they wait until their time is up
            self.meeting.tell(f"{_LEFT}{self.rank}", "")

    def join(self, group: Group) -> None:
        """Exchange over ``group`` from now on."""
        self._group = group

    def share(self, rows: "npt.NDArray[np.int64]") -> "npt.NDArray[np.int64]":
        """Return those of the global batch's rows that this worker computes: a consecutive part, maybe an empty one."""
        import numpy as np  # noqa: PLC0415 - only scripts that use NumPy pay for it

        return np.array_split(rows, self.workers)[self.rank]

    def exchange(self, numbers: Sequence[float] = ()) -> list[float]:
        """Return the sums of ``numbers`` over all workers, and learn by the way whether one was asked to leave."""
        if self._group is None:
            return list(numbers)
        waited = self._cpu_wait()
        use = [self._cpu_seconds(), math.nan if waited is None else waited]
        asked, self.others_cpu_s, self.others_wait_s, *sums = self._group.add([float(self._asked()), *use, *numbers])
        self.leaving = self.leaving or asked > 0
        self._exchanged = True
        return sums

    def begin(self) -> None:
        """Wait until all are ready to train, however long each took, and learn whether one was asked to leave.

        Raises:
            GangError: the script did not join.
            MigrationExit: a worker did not come in time.
        """
        if not self.joined:
            message = (
                f"this is one of {self.workers} workers, which must train together: call data_parallel(t, ...), "
                "torch_gang(t) or tensorflow_gang(t) before the first step"
            )
            raise GangError(message)
        if self._group:
            self.roll_call("ready")
            self.exchange()
            self._exchanged = False

    def settle(self) -> None:
        """Exchange after a step in which nothing else was exchanged, so that all know of it after the same step."""
        if not self._exchanged:
            self.exchange()
        self._exchanged = False

    def lost_another(self, error: BaseException | None) -> bool:
        """Return whether another worker has gone, if this one ends by ``error``."""
        return self._group is not None and error is not None and self._group.blames_others(error)

    def close(self, *, together: bool) -> None:
        """Give the connection up, if there is one.

        Where all workers do so ``together``, none leaves while another still waits for the last thing it sent.
        """
        if self._group is None:
            return
        if together:
            with suppress(*_AWAY):
                self.meeting.tell(f"{_DONE}{self.rank}", "")
            give_up = time.monotonic() + CLOSE_S
            while self._missing(self._files(_DONE)) and time.monotonic() < give_up:
                time.sleep(self.meeting.look_again_s)
        self._group.close()
        self._group = None

    def _tell(self, name: str, word: str) -> None:
        try:
            self.meeting.tell(name, word)
        except _AWAY as error:
            report(f"cannot tell the other workers in {self.meeting.where} ({error}); leaving it to the next attempt")
            self._leave()

    def _word(self, name: str) -> str:
        try:
            return self.meeting.word(name)
        except _AWAY as error:
            report(f"cannot read {name} in {self.meeting.where} ({error}); leaving it to the next attempt")
            self._leave()

    def _files(self, name: str) -> dict[str, int]:
        """Return the ranks of all workers by the file that each writes."""
        return {f"{name}{rank}": rank for rank in range(self.workers)}

    def _there(self) -> set[str]:
        try:
            return self.meeting.names()
        except _AWAY:
            return set()  # whether it comes back in time, the one who waits finds out

    def _missing(self, files: dict[str, int]) -> list[int]:
        """Return the ranks whose file is not there."""
        there = self._there()
        return [rank for file, rank in files.items() if file not in there]

    def _wait_for(self, files: dict[str, int]) -> None:
        give_up = time.monotonic() + MEET_S
        while missing := self._missing(files):
            left = self._there() & self._files(_LEFT).keys()
            if left:
                which = min(left).removeprefix(_LEFT)
                report(f"worker {which} of 0 to {self.workers - 1} left before training began, so this one does too")
                raise MigrationExit
            if self._asked():
                self._leave()
            if time.monotonic() > give_up:
                report(
                    f"waited {MEET_S:g} s for worker {', '.join(map(str, missing))} of 0 to {self.workers - 1}: was it"
                    f" started, and does it see {self.meeting.where}? This attempt ends; the next one tries again"
                )
                self._leave()
            time.sleep(self.meeting.look_again_s)

    def _leave(self) -> NoReturn:
        self.say_leaving()
        raise MigrationExit
