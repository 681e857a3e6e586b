"""Looks at what the cluster can do: before anything is steered, and seldom afterwards, since it may be upgraded."""

import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from controllers.cluster.instruments import Instruments
from controllers.worlds.argo.calls.api import Json
from controllers.worlds.argo.calls.errors import ApiError
from controllers.worlds.argo.meaning.abilities import Abilities, abilities_of
from controllers.worlds.argo.reading.nodes import NodeRecord
from controllers.worlds.argo.reading.pods import PodRecord
from controllers.worlds.argo.reading.versions import has_resize, server_version

_LOG = logging.getLogger(__name__)
LOOK_EVERY_S: Final = 600.0
_AGAIN_S: Final = 60.0
"""Seconds between two looks while the API server does not answer, or no pod has told Argo's version yet."""


class AskedApi(Protocol):
    """The part of an API server that is asked. It must not keep the loop waiting for long."""

    def get(self, path: str) -> Json:
        """Return what is at ``path``."""
        ...


class Inventory(Protocol):
    """What is known of a cluster's objects."""

    def nodes(self) -> Sequence[NodeRecord]:
        """Return every node."""
        ...

    def trial_pods(self) -> Sequence[PodRecord]:
        """Return the pods of all trials."""
        ...


class AbilityWatch:
    """Knows what the cluster can do.

    Args:
        api: of the cluster.
        inventory: what is known of it, complete.
        instruments: where it is shown.
        clock: seconds that never go back.

    Attributes:
        found: what it can do, by the newest look; before the first, everything.
    """

    def __init__(
        self, api: AskedApi, inventory: Inventory, instruments: Instruments, clock: Callable[[], float]
    ) -> None:
        self._api = api
        self._inventory = inventory
        self._instruments = instruments
        self._clock = clock
        self._due_at = 0.0
        self._told = ""
        self._failing = False
        self.found = Abilities()

    def look(self) -> None:
        """Look again if it is time; say what was found where that is news."""
        now = self._clock()
        if now < self._due_at:
            return
        try:
            self.found = self._looked()
        except ApiError as error:
            self._due_at = now + _AGAIN_S
            if not self._failing:
                _LOG.warning("cannot find out what the cluster can do: %s", error)
            self._failing = True
            return
        self._failing = False
        self._due_at = now + (LOOK_EVERY_S if self.found.argo else _AGAIN_S)
        self._instruments.show_abilities(self.found)
        if self.found.line != self._told:
            self._told = self.found.line
            level = logging.WARNING if self.found.why_no_shares else logging.INFO
            _LOG.log(level, "the cluster: %s", self._told)

    def _looked(self) -> Abilities:
        kubernetes = server_version(self._api.get("/version"))
        subresource = has_resize(self._api.get("/api/v1"))
        # Those of an ended sweep may be gone by now, and what they told still holds.
        argo = [pod.argo for pod in self._inventory.trial_pods()] or [self.found.argo]
        return abilities_of(kubernetes, self._inventory.nodes(), argo, subresource=subresource)
