"""From the journal to MLflow: one trial's run is found or made, and gets what it lacks.

Everything here may fail with MLflow's errors at any point and be called again: what was
acknowledged is counted, and MLflow drops a point that is identical to one it has.
"""

import os
import threading
import time
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from mlflow_hooks import contract
from mlflow_hooks.journal import count_unsent, mark_sent, read_unsent, sent_bytes
from mlflow_hooks.points import Point
from mlflow_hooks.state_folder import (
    Ending,
    Identity,
    Run,
    forget_run,
    has_asked_for_run,
    note_run_asked_for,
    read_ending,
    read_identity,
    read_run,
    report,
    sendable,
    write_ending,
    write_run,
)
from mlflow_hooks.tracking_server import (
    EXISTS,
    NOT_FOUND,
    REFUSED,
    LibraryServer,
    NotMlflowError,
    TrackingError,
    TrackingServer,
    tracking_server,
    tracking_uri,
)

BATCH: Final = 1000
"""MLflow takes at most this many entities in one call."""
_PARAMS_PER_CALL: Final = 100
_LONGEST_PARAM: Final = 6000
_MOST_DUPLICATES: Final = 20


class DeletedRunError(TrackingError):
    """Somebody deleted the run in MLflow. What it lacks is kept for the case that it is restored."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"run {run_id} is deleted in MLflow; restore it there, and it gets the rest")


@dataclass(slots=True)
class Delivery:
    """Sends one trial's points. ``allowed`` is asked before each request; once it says no, all ends.

    ``server`` is that which ``MLFLOW_TRACKING_URI`` names, where nobody hands over another. ``parent`` is the run that
    the trial's is nested under, where the trial itself does not know it. ``alone`` tells that nobody else makes a run
    for this trial, so that none need be looked for. Until ``over`` is set, MLflow is not told how the trial ended:
    another attempt may come. ``experiments`` remembers the ids of experiments by their names.
    """

    folder: Path
    allowed: Callable[[], bool] = field(default=lambda: True)
    server: TrackingServer | None = None
    parent: str | None = None
    alone: bool = False
    over: bool = True
    experiments: MutableMapping[str, str] = field(default_factory=dict)
    run_id: str | None = field(default=None, init=False)

    def deliver(self) -> None:
        """Send all that MLflow has not acknowledged, and how the trial ended where it has.

        Raises:
            DeletedRunError: somebody deleted the trial's run in MLflow.
            TrackingError: MLflow is away or refuses; call again later.
        """
        self.server = self.server or tracking_server()
        try:
            self._deliver(self.server)
        except NotMlflowError as error:
            if not self.allowed():
                raise
            # The library knows more ways to reach a server than the plain client.
            report(f"{error}; trying MLflow's own library")
            self.server = LibraryServer()
            self._deliver(self.server)

    def _deliver(self, server: TrackingServer) -> None:
        while self.allowed():
            run_id = self.run_id = self.run_id or self._opened(server)
            points, offset = read_unsent(self.folder, BATCH)
            if not points and offset > sent_bytes(self.folder):
                mark_sent(self.folder, offset)  # nothing there that MLflow could have
                continue
            if not points:
                ending = read_ending(self.folder) if self.over else None
                if ending is not None and not ending.told:
                    self._tell(server, run_id, ending)
                return
            self._send(server, run_id, points)
            if self.allowed():
                mark_sent(self.folder, offset)

    def _tell(self, server: TrackingServer, run_id: str, ending: Ending) -> None:
        try:
            server.set_status(run_id, ending.status, ending.timestamp)
        except TrackingError as error:
            if error.code == NOT_FOUND:
                _start_over(self.folder)
                self.run_id = None
            elif error.code == REFUSED and not server.is_active(run_id):
                raise DeletedRunError(run_id) from error
            raise
        write_ending(self.folder, ending.as_told())

    def _opened(self, server: TrackingServer) -> str:
        identity = read_identity(self.folder)
        if identity is None:
            message = f"no trial has started in {self.folder}"
            raise FileNotFoundError(message)
        if self.parent and not identity.parent_run_id:
            identity = replace(identity, parent_run_id=self.parent)
        try:
            return open_run(server, self.folder, identity, self.experiments, alone=self.alone)
        except TrackingError:
            self.experiments.clear()  # one that was remembered may be gone, as after a fresh database
            raise

    def _send(self, server: TrackingServer, run_id: str, points: list[Point]) -> None:
        try:
            server.log_metrics(run_id, points)
        except TrackingError as error:
            if error.code == NOT_FOUND:
                _start_over(self.folder)
                self.run_id = None
            if error.code != REFUSED:
                raise
            if not server.is_active(run_id):
                # What a deleted run is not given would be lost where somebody restores it.
                raise DeletedRunError(run_id) from error
            if len(points) == 1:
                report(f"MLflow refuses {points[0]}: {error}")
                return
            # Halve the batch until the point that MLflow will never take stands alone.
            middle = len(points) // 2
            self._send(server, run_id, points[:middle])
            self._send(server, run_id, points[middle:])


def end_untold(folder: Path, *, succeeded: bool) -> None:
    """Note how a trial ended whose last attempt told nothing: it was stopped, killed, or knows no hooks.

    Args:
        folder: the trial's state folder.
        succeeded: whether it came to a good end; so does one that was stopped early.
    """
    if read_ending(folder) is None:
        write_ending(folder, Ending.now("FINISHED" if succeeded else "FAILED"))


def sends_itself() -> bool:
    """Return whether a trial is to send its points: the user said where MLflow is, and the sweep does not send them."""
    return sending_wanted() and os.environ.get(contract.ENV_SENDER) != contract.SENDER_SWEEP


def sending_wanted() -> bool:
    """Return whether the user said where MLflow is (``mlflow.set_tracking_uri`` sets the variable too)."""
    return bool(tracking_uri())


def deliver_leftovers(folder: Path, *, deadline_s: float) -> int:
    """Send what a trial that is not running any more left unsent, and how it ended.

    The process that ran the trial calls it. MLflow is where ``MLFLOW_TRACKING_URI`` says, and without that nothing is
    sent.

    Args:
        folder: the trial's state folder, ``$SPECON_STATE_ROOT/<trial id>``.
        deadline_s: give up after this many seconds, MLflow away or not.

    Returns:
        How many points are still unsent; a later call may send them.
    """
    if not sending_wanted() or read_identity(folder) is None:
        return count_unsent(folder)
    give_up = time.monotonic() + deadline_s
    delivery = Delivery(folder, allowed=lambda: time.monotonic() < give_up)
    sending = threading.Thread(target=_try_until, args=(delivery, give_up), daemon=True)
    sending.start()  # a thread, since a request may take longer than the time there is
    sending.join(deadline_s)
    return count_unsent(folder)


def _try_until(delivery: Delivery, give_up: float) -> None:
    pause = 0.2
    while time.monotonic() < give_up:
        rest_s = 0.0
        try:
            delivery.deliver()
        except Exception as error:  # noqa: BLE001 - whatever MLflow's client raises, the next try may work
            rest_s = error.rest_s if isinstance(error, TrackingError) else 0.0
            report(f"{delivery.folder.name}: MLflow has not taken the rest yet ({error})")
        else:
            return
        time.sleep(max(0.0, min(max(pause, rest_s), give_up - time.monotonic())))
        pause *= 2


def open_run(
    server: TrackingServer,
    folder: Path,
    identity: Identity,
    experiments: MutableMapping[str, str] | None = None,
    *,
    alone: bool = False,
) -> str:
    """Find or create the trial's run, give it its parameters once, and return its id.

    A run that goes on is set to RUNNING again, unless the trial has ended. ``experiments`` and ``alone`` are as in
    ``Delivery``.

    Raises:
        TrackingError: MLflow is away or refuses; nothing is half done, call again.
    """
    run = _remembered(server, folder)
    if run is None:
        known = {} if experiments is None else experiments
        experiment = known.get(identity.experiment) or _experiment_id(server, identity.experiment)
        known[identity.experiment] = experiment
        first = alone and not has_asked_for_run(folder)
        if alone:
            note_run_asked_for(folder)
        run = None if first else _found(server, experiment, identity)
        run = run or _created(server, experiment, identity, first=first)
    write_run(folder, run)
    if not run.has_params:
        params = [(sendable(key), sendable(value)[:_LONGEST_PARAM]) for key, value in identity.params.items()]
        for start in range(0, len(params), _PARAMS_PER_CALL):
            try:
                server.log_params(run.run_id, dict(params[start : start + _PARAMS_PER_CALL]))
            except TrackingError as error:
                if error.code != REFUSED:
                    raise
                report(f"MLflow refuses parameters of {identity.trial_id}: {error}")
        write_run(folder, Run(run.run_id, has_params=True))
    return run.run_id


def find_run(server: TrackingServer, identity: Identity) -> str | None:
    """Return the id of the trial's run; None where there is none yet.

    Raises:
        TrackingError: MLflow is away or refuses.
    """
    return next(iter(_tagged(server, _experiment_id(server, identity.experiment), identity)), None)


def _remembered(server: TrackingServer, folder: Path) -> Run | None:
    run = read_run(folder)
    try:
        if run and read_ending(folder) is None:
            server.set_status(run.run_id, "RUNNING")
    except TrackingError as error:
        if error.code != NOT_FOUND:
            raise
        report(f"MLflow has no run {run.run_id if run else None} any more; its trial gets another one")
        _start_over(folder)
        return None
    return run


def _start_over(folder: Path) -> None:
    """Forget the run, which is gone, as after a fresh database: another gets everything from the first point on."""
    forget_run(folder)
    mark_sent(folder, 0)


def _found(server: TrackingServer, experiment: str, identity: Identity) -> Run | None:
    """Return the run that MLflow has of the trial, set to RUNNING again."""
    tagged = _tagged(server, experiment, identity)
    if not tagged:
        return None
    server.set_status(tagged[0], "RUNNING")
    return Run(tagged[0])


def _tagged(server: TrackingServer, experiment: str, identity: Identity) -> list[str]:
    """Return the ids of the runs with the trial's id, that with its data first: every attempt sees the same order."""
    wanted = f"tags.`{contract.TAG_TRIAL_ID}` = '{identity.trial_id}'"
    return server.runs(experiment, wanted, _MOST_DUPLICATES)


def _created(server: TrackingServer, experiment: str, identity: Identity, *, first: bool) -> Run:
    """Make the trial's run; ``first`` tells that no request for it was ever sent before."""
    tags = {
        contract.TAG_TRIAL_ID: identity.trial_id,
        contract.TAG_SWEEP_ID: identity.sweep_id,
        "mlflow.parentRunId": identity.parent_run_id,
    }
    given = {name: sendable(value) for name, value in tags.items() if value}
    created = server.create_run(experiment, identity.run_name, given)
    if first:
        return Run(created)
    # A request that timed out is sent again, though the server may have heard the first: one run stays.
    kept, *surplus = _tagged(server, experiment, identity) or [created]
    for run_id in surplus:
        server.delete_run(run_id)
    return Run(kept)


def _experiment_id(server: TrackingServer, name: str) -> str:
    name = sendable(name)
    experiment = server.experiment(name)
    if experiment:
        return experiment
    try:
        return server.create_experiment(name)
    except TrackingError as error:
        experiment = server.experiment(name)
        if error.code == EXISTS and experiment:  # another trial was first
            return experiment
        raise
