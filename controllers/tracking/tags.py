"""Live tags on each trial's MLflow run, written by one thread for all sweeps, no faster than MLflow can bear."""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Self

from mlflow.entities import RunTag
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.core.errors import SpeconError
from controllers.core.model import TrialId
from controllers.tracking.access import shown
from controllers.tracking.cost_board import CostBoard
from controllers.tracking.tag_boards import STOPPED, Compose, ForecastBoard, TagBoard
from mlflow_hooks import contract

_LOG = logging.getLogger(__name__)
REST: Final = 3.0
"""After each write, the writer rests so many times as long as it took: a quarter of one connection at most."""
_MOST_REST_S: Final = 15.0
"""It rests no longer after a write that hung, so that the last tags are there before the record closes."""
_STOP_S: Final = 15.0
_SERVER_ERROR: Final = 500
_ASIDE: Final = 3.0
"""A run that failed waits so many times as long as until the next round: another run has its turn before."""
_OWNER_S: Final = 2.0
"""Seconds that the tags of one owner's sweeps may take until the others' get their turn."""
_MOST_AGAIN_S: Final = 600.0
"""Seconds for which a run that takes no tags is left alone at most."""
_MOST_REFUSED: Final = 10_000
"""Such runs that are remembered at most."""


class _RefusedError(SpeconError):
    """MLflow answers, and takes nothing for this run."""


Board = TagBoard | ForecastBoard | CostBoard
"""Tags of some runs that are to be kept up to date."""


@dataclass(slots=True, eq=False)
class _Turn:
    """A board, whose it is, and when it last had its turn."""

    board: Board
    owner: str
    at: float = -math.inf


class TagWriter:
    """Writes the tags of its boards, one call at a time: first what was decided, then how the trials grow.

    A context manager. A tracking server that is slow never holds up a decision, and the sweeps of one owner, or one run
    that takes no tags, hold up no others.

    Args:
        client: where the tags are written to.
        round_s: seconds between two looks at what changed; a look at thousands of trials takes a while itself.
        again_s: seconds until MLflow is tried again after it refused a tag.
        rest: times as long as each write took that the writer rests after it.
    """

    def __init__(self, client: MlflowClient, *, round_s: float = 1.0, again_s: float = 5.0, rest: float = REST) -> None:
        self._client = client
        self._rest = rest
        self._round_s = round_s
        self._refused: dict[str, tuple[float, int]] = {}
        self._again_s = again_s
        self._turns: list[_Turn] = []
        self._changed = threading.Event()
        self._stop = threading.Event()
        self._hurried = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mlflow-tags", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def hurry(self) -> None:
        """Rest no more from now on, as nothing trains any longer that this could take CPU from."""
        self._hurried.set()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._hurried.set()
        self._changed.set()
        self._thread.join(timeout=_STOP_S)

    @contextmanager
    def board(
        self, run_ids: Callable[[], Mapping[TrialId, str]], compose: Compose, owner: str = ""
    ) -> Iterator[TagBoard]:
        """Write the tags of a sweep of ``owner`` while the context lasts."""
        board = TagBoard(run_ids, compose)
        with self.showing(board, owner):
            yield board

    @contextmanager
    def showing(self, board: TagBoard, owner: str = "") -> Iterator[None]:
        """Write what is on a board already and what comes to it while the context lasts."""
        board.call(self._changed.set)
        self._changed.set()
        with self._writing(board, owner):
            yield

    @contextmanager
    def forecasts(
        self,
        trials: Callable[[], Mapping[TrialId, str]],
        sweeps: Callable[[], Mapping[str, str]],
        to_epoch: Callable[[float], float],
        owner: str = "",
    ) -> Iterator[ForecastBoard]:
        """Write the forecasts of trials and sweeps of ``owner`` while the context lasts."""
        board = ForecastBoard(trials, sweeps, to_epoch)
        with self._writing(board, owner):
            yield board

    @contextmanager
    def costs(self, board: CostBoard, owner: str = "") -> Iterator[None]:
        """Write the costs of trials and sweeps of ``owner`` while the context lasts."""
        with self._writing(board, owner):
            yield

    @contextmanager
    def _writing(self, board: Board, owner: str) -> Iterator[None]:
        turn = _Turn(board, owner)
        self._turns.append(turn)
        try:
            yield
        finally:
            self._turns.remove(turn)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._changed.wait(timeout=self._again_s)
            self._changed.clear()
            taken = self._write(also_minor=False) and self._write(also_minor=True)
            if taken:
                self._hurried.wait(self._round_s)
            else:
                self._stop.wait(self._again_s)

    def _write(self, *, also_minor: bool) -> bool:
        """Write what is due, minor changes for a round at most; return whether MLflow answered."""
        round_ends = time.monotonic() + self._round_s
        left: dict[str, float] = {}
        # Whose turn is longest ago goes first, and of each owner's time no other's is taken.
        for turn in sorted(self._turns, key=lambda turn: turn.at):
            if left.setdefault(turn.owner, _OWNER_S) <= 0:
                self._changed.set()
                continue
            began = turn.at = time.monotonic()
            ends = began + left[turn.owner]
            for name, run_id, news in turn.board.due(also_minor=also_minor):
                now = time.monotonic()
                if self._stop.is_set() or (also_minor and now > round_ends):
                    self._changed.set()
                    return True
                if now > ends:
                    self._changed.set()
                    break
                if now >= self._refused.get(run_id, (0.0, 0))[0] and not self._wrote(turn.board, name, run_id, news):
                    return False
            left[turn.owner] -= time.monotonic() - began
        return True

    def _wrote(self, board: Board, name: str, run_id: str, news: Mapping[str, str]) -> bool:
        """Write the tags of one run, and set it aside where that fails; return whether MLflow answered."""
        # Where this fails, only the answer may be lost.
        board.writes(name, news)
        try:
            self._send(run_id, news)
        except _RefusedError:
            self._set_aside(run_id, self._refused.get(run_id, (0.0, 0))[1])
        except (MlflowException, OSError) as error:
            _LOG.debug("tags not written yet: %s", shown(str(error))[:200])
            # Mostly MLflow is away; but where this run alone makes it fail, the next time another one is tried.
            self._set_aside(run_id, 0)
            return False
        else:
            self._refused.pop(run_id, None)
            board.wrote(name, news)
        return True

    def _set_aside(self, run_id: str, failures: int) -> None:
        """Leave a run alone for a while that MLflow takes nothing for: it was deleted, or is somebody else's."""
        wait = min(_MOST_AGAIN_S, _ASIDE * self._again_s * 2.0 ** min(failures, 16))
        self._refused.pop(run_id, None)
        if len(self._refused) >= _MOST_REFUSED:
            self._refused.pop(next(iter(self._refused)))
        self._refused[run_id] = time.monotonic() + wait, failures + 1

    def _send(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Write tags, and rest.

        Raises:
            _RefusedError: MLflow answers, but not well of this run.
            MlflowException: MLflow is away.
            OSError: likewise.
        """
        began = time.monotonic()
        try:
            self._client.log_batch(run_id, tags=[RunTag(key, value) for key, value in tags.items()])
            if tags.get(contract.TAG_OUTCOME) == STOPPED:
                # Its program left as for a move, and expects another attempt to end the run.
                self._client.set_terminated(run_id, "FINISHED")
        except MlflowException as error:
            if error.get_http_status_code() < _SERVER_ERROR:  # type: ignore[no-untyped-call]
                raise _RefusedError(str(error)[:200]) from error
            raise
        self._hurried.wait(min(_MOST_REST_S, self._rest * (time.monotonic() - began)))
