"""All that is kept of a trial while an attempt lasts: points on their way to MLflow, checkpoints, and how it ended."""

from collections.abc import Iterable, Mapping
from typing import Any

from mlflow_hooks.checkpoints import CHECKPOINTS, Checkpoints
from mlflow_hooks.delivery import sends_itself
from mlflow_hooks.interruption import Ownership, leave_beside
from mlflow_hooks.journal import Journal, mark_kept
from mlflow_hooks.lineage import follow_parent
from mlflow_hooks.metrics import Metrics
from mlflow_hooks.mirror import Mirror
from mlflow_hooks.saving import Saving
from mlflow_hooks.sender import Sender
from mlflow_hooks.settings import AttemptSettings
from mlflow_hooks.state_folder import (
    Ending,
    Identity,
    forget_ending,
    read_identity,
    read_run,
    report,
    write_ending,
    write_identity,
)
from mlflow_hooks.uploads import Uploads


class Record:
    """What one attempt keeps; of several workers only rank 0 does.

    Args:
        settings: of the attempt.
        owner: the attempt's claim on the trial's folder, made here.
        checkpoint_every_s: seconds between periodic checkpoints.
        mirror: of the trial's folder in a store of objects, taken over; None where the folder outlives the attempt.

    Attributes:
        saving: the tracked states and their checkpoints.
    """

    def __init__(
        self, settings: AttemptSettings, owner: Ownership, checkpoint_every_s: float, mirror: Mirror | None = None
    ) -> None:
        self._folder = settings.folder
        self._identity = Identity.of(settings)
        self._owner = owner
        self._settled = False
        self._complained = False
        before = read_identity(self._folder)
        self._settle()
        if mirror is None:
            mark_kept(self._folder, None)
        self._journal = Journal(self._folder, owner.held)
        checkpoints = Checkpoints(self._folder / CHECKPOINTS)
        if settings.lineage:
            follow_parent(settings, checkpoints, self._journal, owner.held, before.params if before else {})
        self.saving = Saving(checkpoints, owner, checkpoint_every_s, settings.grace_s)
        checkpoint = self.saving.checkpoint
        self._journal.repeat_from(checkpoint.points if checkpoint else None)
        self._metrics = Metrics(self._journal, settings.objective, checkpoint.cpu_seconds if checkpoint else 0.0)
        self._sender = Sender(self._folder, owner.held) if sends_itself() else None
        self._uploads = (
            Uploads(mirror, owner, checkpoints.newest_folder, settings.grace_s) if mirror is not None else None
        )
        if self._uploads:
            self._uploads.start()

    def _settle(self) -> None:
        """Make the folder this attempt's own; where the disk fails, it trains without, and tries again at each save."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._owner.claim()
            if not self._owner.lost:
                forget_ending(self._folder)
                write_identity(self._folder, self._identity)
        except OSError as error:
            if not self._complained:
                report(f"cannot write to {self._folder} ({error}); the training begins without")
            self._complained = True
        else:
            self._settled = True

    @property
    def run_id(self) -> str | None:
        """The trial's MLflow run; None until it is open."""
        if self._sender:
            return self._sender.run_id
        run = read_run(self._folder)
        return run.run_id if run else None

    @property
    def opening_run(self) -> bool:
        """Whether the trial's run is still to be opened: that may import MLflow, which costs the CPU of many steps."""
        return self._sender is not None and not self._sender.run_id

    def log(self, values: Mapping[str, Any], step: int) -> None:
        """Journal metrics, unless another attempt has taken over."""
        if self._owner.held_lately():
            self._metrics.log(values, step)

    def logged_before(self, keys: Iterable[str], step: int) -> list[str]:
        """Return those of ``keys`` that were logged at ``step`` or beyond before this block began."""
        return [key for key in keys if not self._journal.is_new(key, step)]

    def others_used(self, cpu_seconds: float, waited: float) -> None:
        """Note what the other workers of this attempt have used so far, and waited for CPUs."""
        self._metrics.others_cpu_s, self._metrics.others_wait_s = cpu_seconds, waited

    def begin(self, total: int | None, step: int) -> None:
        """Journal how many steps there will be, if that is known."""
        if total is not None and self._owner.held():
            self._metrics.steps_total(total, step)

    def save(self, step: int, *, beside: bool = False) -> None:
        """Keep all states as they are before ``step``; large ones ``beside`` the training, if it goes on."""
        if not self._settled:
            self._settle()
        self._metrics.finish_steps()
        self.saving.save(step, self._journal, self._metrics, beside=beside)

    def finish(self, step: int) -> None:
        """Keep what came out before ``step``, where no other step is left."""
        if self._owner.held():
            self._metrics.log_cpu(step - 1)
        self.save(step)

    def still_ours(self) -> bool:
        """Return whether no other attempt has replaced this one, also where the owner's file is seen late."""
        self._owner.lost = self._owner.lost or not self._journal.ours()
        return self._owner.held()

    def settle(self, within_s: float) -> bool:
        """Wait for the store of objects to hold all that there is; return whether it does, true without a store."""
        if self._uploads is None or self._owner.lost:
            return True
        held = self._uploads.settle(within_s)
        if not held and not self._owner.lost:
            report(f"the store of checkpoints has not taken the newest within {within_s:.0f} s")
        return held

    def send_unkept(self) -> None:
        """Let MLflow have also what the store of objects does not hold: no other attempt will log it."""
        mark_kept(self._folder, None)

    def end(self, status: str) -> None:
        """Keep how the trial ended, as an MLflow run status; its last step is over."""
        self._metrics.finish_steps()
        try:
            write_ending(self._folder, Ending.now(status))
        except OSError as full:  # a training that is through must not fail for that
            report(f"cannot keep how the trial ended ({full}); MLflow shows it as running")

    def start_sending(self) -> None:
        """Send points from now on. Not earlier: MLflow's import would compete with the imports of the script."""
        if self._sender and not self._sender.ident:
            self._sender.start()

    def flush(self, within_s: float) -> None:
        """Wait for MLflow to take the rest."""
        self.start_sending()
        if self._sender and not self._sender.finish(within_s):
            report(f"MLflow has not taken everything; the rest is in {self._folder}")

    def leave_beside(self, code: int) -> None:
        """End the process with ``code`` even if points are still being sent, or a checkpoint is being written."""
        if writing := self.saving.leave_behind():
            leave_beside(writing, code)
        if self._sender:
            leave_beside(self._sender, code)

    def close(self) -> None:
        """Give the files back."""
        self._journal.close()
