"""The pages and what they ask for, as a web application: a shelf of sweeps behind a door."""

from collections.abc import Callable
from importlib.resources import files
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from controllers.core.errors import SpeconError
from hera_specon.live.door import Door
from hera_specon.live.paced import Made
from hera_specon.live.sweeps import Shelf
from hera_specon.report.environment import environment, packed_plotly
from mlflow_hooks.foreign_json import parsed

MOST_ASKED: Final = 2**20
"""Bytes of a request's body: the names of some ten thousand trials."""
_TEMPLATES: Final = "hera_specon.live"


class BadRequestError(SpeconError):
    """What a page sent is not what it should send."""


def application(
    shelf: Shelf,
    where: str,
    token: str,
    seen: Callable[[], object] = lambda: None,
    let_in: Callable[[tuple[str, int]], object] = lambda _: None,
) -> ASGIApp:
    """Return the application that shows ``shelf`` to those who know ``token``.

    Args:
        shelf: the sweeps.
        where: what the list of them is headed by.
        token: of the address.
        seen: called at each request that is let in.
        let_in: called with the address and port that each of these came from.
    """
    pages = _Pages(shelf, where, seen)
    routes = [
        Route("/", pages.sweeps),
        Route("/files/{name}", pages.file),
        Route("/sweeps/{name}", pages.sweep),
        Route("/sweeps/{name}/standing", pages.standing),
        Route("/sweeps/{name}/report", pages.report),
        Route("/sweeps/{name}/ask", pages.ask, methods=["POST"]),
        Route("/sweeps/{name}/policy", pages.policy, methods=["POST"]),
    ]
    app = Starlette(routes=routes, exception_handlers={SpeconError: _told, OSError: _told})
    app.router.redirect_slashes = False
    return Door(app, token, let_in)


async def _told(_: Request, error: Exception) -> Response:
    return PlainTextResponse(str(error), status_code=409)


class _Pages:
    """Answers each path. What reads or writes runs on threads, so that no page waits for another."""

    def __init__(self, shelf: Shelf, where: str, seen: Callable[[], object]) -> None:
        self._shelf = shelf
        self._where = where
        self._seen = seen
        self._environment = environment(_TEMPLATES)

    async def sweeps(self, _: Request) -> Response:
        self._seen()
        try:
            lines, problem = await run_in_threadpool(self._shelf.lines), ""
        except SpeconError as error:
            lines, problem = (), str(error)
        page = self._environment.get_template("sweeps.html.j2")
        return HTMLResponse(page.render(lines=lines, problem=problem, where=self._where))

    async def sweep(self, request: Request) -> Response:
        self._seen()
        name = request.path_params["name"]
        await run_in_threadpool(self._shelf.sweep, name)
        return HTMLResponse(self._environment.get_template("sweep.html.j2").render(name=name))

    async def standing(self, request: Request) -> Response:
        return await self._part(request, lambda: self._shelf.sweep(request.path_params["name"]).now())

    async def report(self, request: Request) -> Response:
        return await self._part(request, lambda: self._shelf.sweep(request.path_params["name"]).body())

    async def _part(self, request: Request, make: Callable[[], Made]) -> Response:
        self._seen()
        made = await run_in_threadpool(make)
        mark = f'"{made.mark}"'
        if request.headers.get("if-none-match") == mark:
            return Response(status_code=304, headers={"ETag": mark})
        return JSONResponse({"html": made.html, "problem": made.problem}, headers={"ETag": mark})

    async def ask(self, request: Request) -> Response:
        self._seen()
        asked = await _json(request)
        what, trials = asked.get("what"), asked.get("trials")
        names = trials if isinstance(trials, list) and all(isinstance(name, str) for name in trials) else None
        if not isinstance(what, str) or (names is None and trials is not None):
            message = 'an ask is {"what": "pause", "trials": ["vae.t007"]}, with null for all trials'
            raise BadRequestError(message)
        return await self._tell(lambda: self._shelf.sweep(request.path_params["name"]).ask(what, names))

    async def policy(self, request: Request) -> Response:
        self._seen()
        spec = (await _json(request)).get("policy")
        if not isinstance(spec, str):
            message = 'a policy is asked for by {"policy": "specon:interval=10"}'
            raise BadRequestError(message)
        return await self._tell(lambda: self._shelf.sweep(request.path_params["name"]).set_policy(spec))

    @staticmethod
    async def _tell(do: Callable[[], list[str]]) -> Response:
        return PlainTextResponse("; ".join(await run_in_threadpool(do)))

    async def file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name == "plotly.js":
            return _file(packed_plotly(), "text/javascript", {"Content-Encoding": "gzip"})
        ours, theirs = files("hera_specon.live") / "static", files("hera_specon.report") / "templates"
        if name == "page.css":
            return _file((theirs / "report.css").read_bytes() + (ours / name).read_bytes(), "text/css")
        if name == "page.js":
            return _file((ours / name).read_bytes(), "text/javascript")
        if name == "tables.js":
            return _file((theirs / name).read_bytes(), "text/javascript")
        return PlainTextResponse("no such file", status_code=404)


def _file(content: bytes, kind: str, headers: dict[str, str] | None = None) -> Response:
    return Response(content, media_type=kind, headers=headers)


async def _json(request: Request) -> dict[str, Any]:
    """Return the object that a page sent.

    Raises:
        BadRequestError: It is none, or too long.
    """
    # A page of another site cannot send this kind without being asked first whether it may.
    if request.headers.get("content-type") != "application/json":
        message = "a page asks by application/json"
        raise BadRequestError(message)
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_ASKED:
            message = f"more than {MOST_ASKED} bytes were asked at once"
            raise BadRequestError(message)
    try:
        asked = parsed(body)
    except ValueError as error:
        message = f"what was asked is no JSON: {error}"
        raise BadRequestError(message) from error
    return asked if isinstance(asked, dict) else {}
