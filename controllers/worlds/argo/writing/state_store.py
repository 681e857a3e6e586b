"""The engine's state in a ConfigMap beside its workflow, which takes it along when it is deleted."""

import base64
import hashlib
import logging
import threading
from collections.abc import Callable

from controllers.core import labels
from controllers.worlds.argo.calls.api import CONFIG_MAPS, WORKFLOWS, Json, KubeApi
from controllers.worlds.argo.calls.errors import ApiError, ConflictError, NotFoundError
from controllers.worlds.argo.calls.untrusted import (
    PackedError,
    at,
    gunzipped,
    gzipped,
    in_memory,
    parts_of,
    text,
)
from controllers.worlds.argo.meaning.view import Campaign
from mlflow_hooks.foreign_json import parsed

_LOG = logging.getLogger(__name__)
_KEY = "state"
_MOST_BYTES = 900 * 1024
_MOST_STATE = 16 * 2**20
_MOST_STATE_PARTS = 1_000_000
"""What any policy keeps of so many values takes more bytes than fit."""
_EVERY_S = 10.0
_TRIES = 4


class ConfigMapStore:
    """Keeps the newest state of one campaign's engine.

    Args:
        api: access to the API server.
        campaign: whose engine it is.
        now: seconds of any steady clock; tells when a state that is not urgent is due (every ten seconds).
    """

    def __init__(self, api: KubeApi, campaign: Campaign, now: Callable[[], float]) -> None:
        self._api = api
        self._campaign = campaign
        self._now = now
        policy = hashlib.sha256(campaign.policy.encode()).hexdigest()[:8]
        self.name = f"specon-{campaign.uid}-{policy}"
        self._path = CONFIG_MAPS.path(campaign.namespace, self.name)
        self._version = ""
        self._kept: str | None = None
        self._mark = f"{labels.ANNOTATION_UNSAVED}{policy}"
        self._told = self._mark in campaign.annotations
        self.too_large = ""
        """Why the newest state is not kept, in words; empty where it is."""
        self._waiting: Callable[[], str] | None = None
        self._saved_at: float | None = None
        self._lock = threading.Lock()

    def load(self) -> str | None:
        """Return the state saved last, None where there is none that can be read.

        Raises:
            ApiError: the API server did not answer, or does not allow it.
        """
        try:
            stored = self._api.get(self._path)
        except NotFoundError:
            return None
        self._version = text(stored, "metadata", "resourceVersion")
        self._kept = _unpacked(at(stored, "binaryData", _KEY), self.name)
        return self._kept

    def save(self, state: Callable[[], str], *, urgent: bool) -> None:
        """Keep what ``state`` returns: at once when ``urgent``, otherwise when ten seconds have gone since then.

        One that could not be read again is not written: the one before it stays, and the workflow's annotation says so.

        Raises:
            ApiError: an urgent one could not be kept.
        """
        with self._lock:
            self._waiting = state
            due = self._saved_at is None or self._now() - self._saved_at >= _EVERY_S
            if urgent and not self.too_large:
                self._flush()
            elif due:
                try:
                    self._flush()
                except ApiError as error:
                    _LOG.warning("the state is not saved yet: %s", error)

    def flush(self) -> None:
        """Keep what is waiting, now.

        Raises:
            ApiError: it could not be kept.
        """
        with self._lock:
            self._flush()

    def _flush(self) -> None:
        if self._waiting is None:
            return
        state = self._waiting()
        if state == self._kept:  # a tick that changed nothing costs no write
            self.too_large = ""
        else:
            packed = gzipped(state)
            self.too_large = _why_too_large(state, packed) or ""
            if not self.too_large:
                self._write(base64.b64encode(packed).decode())
                self._kept = state
        self._waiting, self._saved_at = None, self._now()
        self._tell()

    def _tell(self) -> None:
        """Say on the workflow that the state is not kept, or no more that it is not; where that fails, later."""
        if bool(self.too_large) is self._told:
            return
        if self.too_large:
            _LOG.warning("ConfigMap %s: %s", self.name, self.too_large)
        body = {"metadata": {"uid": self._campaign.uid, "annotations": {self._mark: self.too_large or None}}}
        try:
            self._api.patch(WORKFLOWS.path(self._campaign.namespace, self._campaign.workflow), body)
        except ApiError as error:
            _LOG.debug("cannot say on the workflow whether its state is kept: %s", error)
        else:
            self._told = bool(self.too_large)

    def _write(self, content: str) -> None:
        for _ in range(_TRIES):
            try:
                stored = self._put(content)
            except (ConflictError, NotFoundError):
                # Somebody made, changed or deleted it. What is in it now is of no use: this state is the newest.
                try:
                    self._version = text(self._api.get(self._path), "metadata", "resourceVersion")
                except NotFoundError:
                    self._version = ""
            else:
                self._version = text(stored, "metadata", "resourceVersion")
                return
        message = f"ConfigMap {self._path} changes faster than it can be written: does another controller run?"
        raise ConflictError(message)

    def _put(self, content: str) -> Json:
        body = self._body(content)
        if not self._version:
            return self._api.create(CONFIG_MAPS.path(self._campaign.namespace), body)
        body["metadata"]["resourceVersion"] = self._version
        return self._api.replace(self._path, body)

    def _body(self, content: str) -> Json:
        campaign = self._campaign
        owner = {
            "apiVersion": WORKFLOWS.group.removeprefix("apis/"),
            "kind": "Workflow",
            "name": campaign.workflow,
            "uid": campaign.uid,
        }
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": self.name,
                "namespace": campaign.namespace,
                "labels": {labels.LABEL_STATE: campaign.workflow[:63].rstrip("-._")},
                "annotations": {labels.ANNOTATION_POLICY: campaign.policy},
                "ownerReferences": [owner],
            },
            "binaryData": {_KEY: content},
        }


def _why_too_large(state: str, packed: bytes) -> str | None:
    """Return why a state could not be kept and read again, None where it can: the one check for who writes and reads.

    Args:
        state: as the engine gave it.
        packed: the same as gzip packs it.
    """
    sizes = (
        (len(packed), _MOST_BYTES, "bytes when packed"),
        (in_memory(state.encode()), _MOST_STATE, "bytes"),
        (parts_of(state), _MOST_STATE_PARTS, "values"),
    )
    over = next(((size, most, what) for size, most, what in sizes if size > most), None)
    if over is None:
        return None
    size, most, what = over
    return (
        f"the controller's state has {size} {what}, more than the {most} that are kept: a controller that starts again "
        "has forgotten what its policy learnt of the sweep since; split the sweep into several workflows"
    )


def _unpacked(content: object, name: str) -> str | None:
    """Return the state. A broken one counts as none: the engine can start again without harm."""
    try:
        state = gunzipped(content, _MOST_STATE)
        why = _why_too_large(state, b"")
        if why is None:
            parsed(state)
    except (ValueError, PackedError) as error:
        why = str(error)[:200]
    if why is not None:
        _LOG.warning("cannot read the state in ConfigMap %s; it is dropped: %s", name, why)
        return None
    return state
