"""Parts of a controller that are broken on purpose: the exploration must find each of them out."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from controllers.driving import assembly
from controllers.tracking import tags
from controllers.tracking.tag_boards import TagBoard
from controllers.worlds.argo.calls.errors import ApiError
from controllers.worlds.argo.calls.write_queue import WriteQueue
from controllers.worlds.argo.deciding.commands import Leave
from controllers.worlds.argo.meaning import view
from controllers.worlds.argo.writing import executor
from controllers.worlds.argo.writing.writer import CommandWriter
from tests.fault_search.mutants import ActsBeforeSaving

Spoil = Callable[[pytest.MonkeyPatch], None]


class AsksBeforeMarking(CommandWriter):
    """Lets a pod leave first, and writes down why afterwards: a crash in between forgets the move."""

    def _leave(self, command: Leave) -> None:
        if command.asks:
            self._ask_to_leave(command.attempt, signals=command.signals)
        self._annotate(command)


class NobodyIsBusy(WriteQueue):
    """Makes calls for the same pod side by side."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = count()

    def busy(self, key: str) -> bool:
        del key
        return False

    def submit(
        self,
        key: str,
        call: Callable[[], None],
        done: Callable[[ApiError | None], None],
        **more: Any,  # noqa: ANN401 - passed on as they are
    ) -> bool:
        return super().submit(f"{key} {next(self._numbers)}", call, done, **more)


class TakesItAsWritten(TagBoard):
    """Takes tags for written as soon as they are about to be: what MLflow did not take is never sent again."""

    def due(self, *, also_minor: bool) -> Iterator[tuple[str, str, dict[str, str]]]:
        for name, run_id, news in super().due(also_minor=also_minor):
            self.wrote(name, news)
            yield name, run_id, news


def acts_before_saving(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(assembly, "Engine", ActsBeforeSaving)


def asks_before_marking(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(executor, "CommandWriter", AsksBeforeMarking)


def nobody_is_busy(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(view, "WriteQueue", NobodyIsBusy)


def takes_it_as_written(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tags, "TagBoard", TakesItAsWritten)
