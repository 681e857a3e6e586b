"""A reflector: it lists and watches a collection, and keeps a small record of each object through every failure."""

import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import urllib3
from urllib3.exceptions import HTTPError

from controllers.worlds.argo.calls.api import Json, KubeApi
from controllers.worlds.argo.calls.errors import (
    ApiError,
    ForbiddenError,
    GoneError,
    NotFoundError,
    TooLargeError,
    UnavailableError,
)
from controllers.worlds.argo.calls.untrusted import TooManyPartsError, at, parsed, text, whole
from controllers.worlds.argo.reading.definitions import warn_once
from mlflow_hooks.foreign_json import TooDeepError

R = TypeVar("R")
_LOG = logging.getLogger(__name__)
_MOST_LINE = 8 * 2**20
"""Bytes of an event: etcd keeps no object of more than two megabytes."""
_GONE = 410
_MOST_PARTS = 1_000_000
_SHOWN = 200
_TOO_SHORT_S = 0.3


@dataclass(frozen=True, slots=True)
class Collection:
    """What to watch: the path of a collection and a selection of it. ``page`` objects are asked for at once.

    ``expendable`` tells that nobody is warned where it is not allowed, or not served. ``most`` bounds the weight of the
    records of one namespace: what is beyond is left out, so that one tenant's objects leave room for the others'.
    """

    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    page: int = 500
    expendable: bool = False
    most: int = 100_000


@dataclass(frozen=True, slots=True)
class WatchTiming:
    """How often a watch does what, in seconds.

    A watch is opened again every ``watch_s``, which tells a quiet one from a dead one. What the server does not serve
    is asked for again after ``absent_s``: it may be upgraded.
    """

    watch_s: float = 20.0
    relist_s: float = 1800.0
    first_wait_s: float = 0.2
    most_wait_s: float = 10.0
    absent_s: float = 300.0


class Reflector(Generic[R]):
    """Keeps ``project(object)`` of every object of a collection; the objects themselves are dropped at once.

    Args:
        api: access to the API server.
        collection: what to watch.
        project: makes a small record of an object, or None where it is of no interest. Must accept any JSON.
        changed: called from the watching thread after every change.
        timing: how often to do what.
        weight: how much room a record takes, in any unit; by default one.
    """

    def __init__(
        self,
        api: KubeApi,
        collection: Collection,
        project: Callable[[Json], R | None],
        changed: Callable[[], None],
        timing: WatchTiming | None = None,
        weight: Callable[[R], int] = lambda _: 1,
    ) -> None:
        self._weight = weight
        self._api = api
        self._collection = collection
        self._project = project
        self._changed = changed
        self._timing = timing or WatchTiming()
        self._records = _Records[R](collection, weight)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._synced = threading.Event()
        self._response: urllib3.BaseHTTPResponse | None = None
        self._version_of_list = ""
        self._listed_at = 0.0
        self.heard_at = since_boot()
        self.version = 0
        self.refused: ForbiddenError | None = None
        self.absent = False
        self._thread = threading.Thread(target=self._run, name=f"watch{collection.path}", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """End the watch; returns when its thread has ended, or after five seconds."""
        self._stop.set()
        response = self._response
        if response is not None:
            # This wakes the thread, which may be waiting for the next line.
            try:
                response.shutdown()
            except (HTTPError, OSError, ValueError, RuntimeError):
                response.close()
        self._thread.join(timeout=5)

    @property
    def synced(self) -> bool:
        """Whether a whole list has been read."""
        return self._synced.is_set()

    def wait_synced(self, within_s: float) -> bool:
        """Wait for a whole list, at most ``within_s``; return whether there is one."""
        return self._synced.wait(within_s)

    @property
    def answered(self) -> bool:
        """Whether there is an answer: a whole list, or that there is none for this account."""
        return self.synced or self.refused is not None or self.absent

    def records(self) -> list[R]:
        """Return the records as they are now."""
        with self._lock:
            return self._records.all()

    def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                if not self._version_of_list or began - self._listed_at > self._timing.relist_s:
                    self._list()
                self._watch()
            except NotFoundError as error:
                if not self._collection.expendable:
                    failures += 1
                    self._note(error, failures)
                else:
                    self._turn(absent=True)
                    self._stop.wait(self._timing.absent_s)
            except ApiError as error:
                failures += 1
                self._note(error, failures)
            else:
                # A server that ends every watch at once must not be asked without pause.
                failures = failures + 1 if time.monotonic() - began < _TOO_SHORT_S else 0
            if failures:
                self._stop.wait(self._wait_s(failures))

    def _note(self, error: ApiError, failures: int) -> None:
        if isinstance(error, GoneError):
            # The version is too old to watch from. The next turn lists all again; until then the records stay.
            self._version_of_list = ""
            return
        if isinstance(error, ForbiddenError):
            # Until it is lifted: a server that is away now and then does not lift it.
            self._turn(refused=error)
        if failures == 1 and not (self.refused and self._collection.expendable):
            _LOG.warning("watch of %s is interrupted: %s", self._collection.path, error)

    def _turn(self, refused: ForbiddenError | None = None, *, absent: bool = False) -> None:
        """Note whether it is refused, or not served: that is a change, too."""
        changed = (refused is None, absent) != (self.refused is None, self.absent)
        self.refused, self.absent = refused, absent
        if changed:
            with self._lock:
                self.version += 1
            self._changed()

    def _wait_s(self, failures: int) -> float:
        wait = min(self._timing.most_wait_s, self._timing.first_wait_s * 2.0 ** min(failures - 1, 16))
        return wait * random.uniform(0.5, 1.0)  # noqa: S311 - spreads the load of many watchers

    def _list(self) -> None:
        try:
            self._list_by(self._collection.page)
        except TooLargeError as error:
            # Objects that are large in memory come together in a page: one by one each of them is bounded by etcd.
            _LOG.warning("%s is listed object by object: %s", self._collection.path, error)
            self._list_by(1)

    def _list_by(self, page_size: int) -> None:
        records = _Records[R](self._collection, self._weight)
        version = ""
        for page in self._api.pages(self._collection.path, self._collection.query, page_size):
            for item in page.get("items") or []:
                self._put(records, item)
            version = text(page, "metadata", "resourceVersion") or version
            # A long list takes a while, and each page of it is a sign of life.
            self.heard_at = since_boot()
        with self._lock:
            self._records = records
            # Before the version tells of it: who looks again by the version must not miss that the list is there.
            self._synced.set()
            self.version += 1
        self._version_of_list, self._listed_at = version, time.monotonic()
        self._changed()

    def _watch(self) -> None:
        query = {
            **self._collection.query,
            "resourceVersion": self._version_of_list,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(max(1, round(self._timing.watch_s * random.uniform(0.75, 1.0)))),  # noqa: S311
        }
        response = self._api.open_watch(self._collection.path, query, self._timing.watch_s + 5)
        self._response = response
        self._turn()
        self.heard_at = since_boot()
        try:
            lines = _lines(response)
            while not self._stop.is_set() and (line := next(lines, None)) is not None:
                self._take(line)
        except (HTTPError, OSError, ValueError, TooLargeError) as error:
            if not self._stop.is_set():
                message = f"watch of {self._collection.path} broke: {str(error)[:200]}"
                raise UnavailableError(message) from error
        finally:
            self._response = None
            response.close()
        # A watch that ends in good order without an event has shown that the server is there.
        self.heard_at = since_boot()

    def _take(self, line: bytes) -> None:
        self.heard_at = since_boot()
        try:
            event = parsed(line, _MOST_PARTS)
        except (TooManyPartsError, TooDeepError) as error:
            # It would come again and again: the next event that can be read goes on after it.
            warn_once(f"{self._collection.path} {line[:_SHOWN]!r}", f"an event of {self._collection.path}: {error}")
            return
        kind, item = text(event, "type"), at(event, "object")
        if kind == "ERROR":
            failed = GoneError if whole(item, "code") == _GONE else UnavailableError
            message = f"watch of {self._collection.path}: {text(item, 'message')[:200]}"
            raise failed(message)
        if kind in {"ADDED", "MODIFIED", "DELETED"} and isinstance(item, dict):
            with self._lock:
                self._put(self._records, item, deleted=kind == "DELETED")
                self.version += 1
            self._changed()
        self._version_of_list = text(item, "metadata", "resourceVersion") or self._version_of_list

    def _put(self, records: "_Records[R]", item: Json, *, deleted: bool = False) -> None:
        # What has no interest any more may have had some before it changed.
        namespace, name = text(item, "metadata", "namespace"), text(item, "metadata", "name")
        try:
            record = None if deleted else self._project(item)
        except Exception as error:  # noqa: BLE001 - one object that nobody thought of must not hide all others
            what = f"{self._collection.path}: {namespace}/{name}"
            warn_once(what, f"{what} is left out: it cannot be read: {error!r}")
            record = None
        records.put(namespace, name, record)


class _Records(Generic[R]):
    """Records by namespace and name, as many of each namespace as there is room for."""

    def __init__(self, collection: Collection, weight: Callable[[R], int]) -> None:
        self._collection = collection
        self._weight = weight
        self._records: dict[tuple[str, str], R] = {}
        self._weights: dict[tuple[str, str], int] = {}
        self._of_namespace: Counter[str] = Counter()

    def all(self) -> list[R]:
        """Return the records."""
        return list(self._records.values())

    def put(self, namespace: str, name: str, record: R | None) -> None:
        """Keep ``record`` in the place of what was known of the object; nothing of it where it is None."""
        key = namespace, name
        self._of_namespace[namespace] -= self._weights.pop(key, 0)
        weight = 0 if record is None else self._weight(record)
        if record is None or self._of_namespace[namespace] + weight > self._collection.most:
            self._records.pop(key, None)
            if record is not None:
                what = f"{self._collection.path}: {namespace}/{name}"
                warn_once(what, f"{what} is left out: the objects of its namespace would take too much room together")
            return
        self._records[key], self._weights[key] = record, weight
        self._of_namespace[namespace] += weight


def since_boot() -> float:
    """Return seconds that go on while the machine sleeps: what was seen or held before that is old afterwards."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    rest = b""
    for chunk in response.stream(2**16):
        *whole_lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > _MOST_LINE:
            message = f"one event has more than {_MOST_LINE} bytes"
            raise TooLargeError(message)
        yield from (line for line in whole_lines if line.strip())
