"""What each part of a look costs, in CPU seconds: by thread, by what the loop calls, and of MLflow's server."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from controllers.core.engine import Engine
from controllers.core.objectives import ObjectiveWatch
from controllers.core.sight import Sight
from controllers.forecast.forecaster import Forecaster
from controllers.local_run.services import RunServices
from controllers.policies.wrappers.managed import Managed
from controllers.record.recorder import Recorder
from controllers.record.silence import SilenceWatch
from controllers.tracking.tag_boards import TagBoard
from controllers.worlds.local.engine_files import StateFile
from controllers.worlds.local.processes import proctree
from controllers.worlds.local.world import LocalWorld
from hera_specon.display.screens import LiveScreen

_PARTS: Final[Mapping[str, tuple[type[Any], str]]] = {
    "the world goes on": (LocalWorld, "advance"),
    "the world shows its trials": (LocalWorld, "trials"),
    "with what their metrics tell": (Sight, "look"),
    "the policy decides": (Managed, "decide"),
    "the engine's memory": (Engine, "_save"),
    "its file": (StateFile, "save"),
    "tags": (TagBoard, "observe"),
    "timeline": (Recorder, "observe"),
    "forecast": (Forecaster, "observe"),
    "silence": (SilenceWatch, "observe"),
    "screen": (LiveScreen, "observe"),
    "objectives": (LocalWorld, "objectives"),
    "complaints": (ObjectiveWatch, "look"),
}
_THREADS: Final = {
    "metrics": "thread that reads MLflow",
    "mlflow-tags": "thread that writes tags",
    "_RefreshThread": "thread that draws",
}
ALL: Final = "this process"
SERVER: Final = "MLflow's server"
LOOP: Final = "the loop"


class Meter:
    """Counts the CPU seconds that each part has used so far."""

    def __init__(self, services: RunServices) -> None:
        self._server = services.server
        self._used: dict[str, float] = defaultdict(float)

    def read(self) -> dict[str, float]:
        """Return the CPU seconds of each part until now."""
        found = {ALL: time.process_time(), LOOP: time.thread_time(), **self._used}
        for thread in threading.enumerate():
            name = _THREADS.get(thread.name) or _THREADS.get(type(thread).__name__)
            if name is not None and thread.ident is not None:
                found[name] = time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
        if self._server is not None:
            found[SERVER] = proctree.cpu_seconds(proctree.tree(self._server.pid))
        return found

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count the parts of the loop while the context lasts."""
        kept = {name: (owner, method, getattr(owner, method)) for name, (owner, method) in _PARTS.items()}
        for name, (owner, method, function) in kept.items():
            setattr(owner, method, self._counted(name, function))
        try:
            yield
        finally:
            for owner, method, function in kept.values():
                setattr(owner, method, function)

    def _counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever the part takes and returns
            began = time.thread_time()
            try:
                return function(*args, **named)
            finally:
                self._used[name] += time.thread_time() - began

        return counted
