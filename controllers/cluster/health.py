"""Whether this process is alive (worth keeping) and ready (able to lead), and the server that tells a kubelet."""

import logging
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, Self

from controllers.core.errors import SpeconError

Check = Callable[[], str | None]
RESTART_AFTER_STALE: Final = 4
"""Restart the process when its view of the cluster is this many times older than the stale limit."""
_LEAST_BOUND_S = 60.0
_UNASKED = "it has not been asked yet"
_LOG = logging.getLogger(__name__)


class Health:
    """Tells whether the controller is alive and ready, by what it last did and saw.

    Args:
        clock: seconds that never go back.
        stale_after: age in seconds at which the view of the cluster is too old to act on.
        synced: whether the cluster has been seen whole.
        age: seconds since the API server was last heard.
        mlflow_problem: why MLflow does not answer, None where it does.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        stale_after: float,
        synced: Callable[[], bool],
        age: Callable[[], float],
        mlflow_problem: Callable[[], str | None],
    ) -> None:
        self._clock = clock
        # A restart helps only if this process is stuck; while the API server is away, it would not.
        self._bound = max(_LEAST_BOUND_S, RESTART_AFTER_STALE * stale_after)
        self._synced = synced
        self._age = age
        self._mlflow_problem = mlflow_problem
        self._looped_at = clock()

    def looped(self) -> None:
        """Note that the loop came round."""
        self._looped_at = self._clock()

    def why_dead(self) -> str | None:
        """Return why this process should be restarted, None if it should not."""
        idle = self._clock() - self._looped_at
        if idle > self._bound:
            return f"the loop last ran {idle:.0f} s ago, more than {self._bound:g} s"
        return None

    def why_unready(self) -> str | None:
        """Return what is missing before this process could lead, None if nothing is."""
        if not self._synced():
            return "the cluster has not been seen whole yet"
        if (age := self._age()) > self._bound:
            # Not a reason to restart: while the API server is away, no other process would hear it either.
            return f"the API server was last heard {age:.0f} s ago, more than {self._bound:g} s"
        problem = self._mlflow_problem()
        return f"MLflow does not answer: {problem}" if problem else self.why_dead()


class MlflowProbe:
    """Asks MLflow from time to time whether it answers, on a thread of its own.

    Args:
        ask: returns why it does not answer, None where it does.
        told: called with whether it is up, after every question.
        period_s: seconds between two questions.
    """

    def __init__(self, ask: Callable[[], str | None], told: Callable[[bool], None], period_s: float) -> None:
        self._ask = ask
        self._told = told
        self._period_s = period_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mlflow-probe", daemon=True)
        self.problem: str | None = _UNASKED

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=6)  # a question to MLflow takes 5 s at most

    def ask_once(self) -> None:
        """Ask now."""
        before, self.problem = self.problem, self._ask()
        if self.problem is not None and before in {None, _UNASKED}:
            _LOG.warning("MLflow does not answer; decisions wait for metrics: %s", self.problem)
        elif self.problem is None and before is not None:
            _LOG.info("MLflow answers")
        self._told(self.problem is None)

    def _run(self) -> None:
        while not self._stop.is_set():
            self.ask_once()
            self._stop.wait(self._period_s)


class PortError(SpeconError):
    """The controller cannot listen on a port that it should."""


class HealthServer:
    """Answers each path of ``checks`` with 200, or with 503 and why.

    Raises:
        PortError: the port is taken, or not allowed.
    """

    def __init__(self, port: int, checks: Mapping[str, Check]) -> None:
        try:
            self._server = ThreadingHTTPServer(("", port), _handler(checks))
        except OSError as error:
            raise PortError(port_problem("health", port, error)) from error
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="health", daemon=True)

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def port_problem(what: str, port: int, error: OSError) -> str:
    """Return what to tell people of a port that is taken, or not allowed."""
    return f"cannot listen on --{what}-port {port}: {error.strerror or error}; give another, or stop what uses it"


def _handler(checks: Mapping[str, Check]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            check = checks.get(self.path.partition("?")[0])
            problem = check() if check else None
            code = 404 if check is None else 503 if problem else 200
            text = (problem or ("ok" if check else "no such page")).encode()
            self.send_response(code)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Log nothing: a kubelet asks every few seconds."""

    return Handler
