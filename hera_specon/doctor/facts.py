"""What is known of a cluster before anything is judged. Objects are as the API server sent them, and untrusted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Json = Mapping[str, Any]


class Why(StrEnum):
    """Why something could not be read."""

    FORBIDDEN = "forbidden"
    MISSING = "missing"
    UNANSWERED = "unanswered"


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that could not be read, and the API server's words for it."""

    why: Why
    words: str

    @property
    def told(self) -> str:
        """What to say of it to people."""
        return "you may not read it" if self.why is Why.FORBIDDEN else self.words


Answer = Json | Unread
Listing = Sequence[Json] | Unread


@dataclass(frozen=True, slots=True)
class Permission:
    """What a role may allow: a verb on a resource of an API group, such as ``patch`` on ``pods/resize``."""

    verb: str
    resource: str
    group: str = ""

    @property
    def whole_name(self) -> str:
        """The resource as kubectl takes it, such as ``workflows.argoproj.io``."""
        return f"{self.resource}.{self.group}" if self.group else self.resource


Allowed = Mapping[Permission, bool | None]
"""Whether each is allowed; None where that could not be asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """The API server at ``host`` and the namespace there; ``core`` are the resources that it serves of core v1."""

    host: str
    version: Answer
    name: str
    namespace: Answer
    core: Answer
    nodes: Listing


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgoFacts:
    """What there is of Argo.

    ``resources`` are those of its API, ``deployments`` those of its controller, ``pods`` those of workflows in the
    namespace, ``workflows`` some of the namespace. ``lease`` is its controller's, and ``now`` the API server's time in
    Unix seconds.
    """

    resources: Answer
    deployments: Listing
    lease: Answer
    pods: Listing
    workflows: Listing
    now: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionFacts:
    """What the user may do in the namespace ``name``, and the service account of a sweep's pods there."""

    name: str
    user: Allowed
    account: str
    account_object: Answer
    executor: Allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerFacts:
    """Our controller: its Deployments, its settings by variable, and what its account may do in the namespace ``name``.

    ``everywhere`` tells that Deployments of all namespaces could be listed; ``adopted`` are workflows of the namespace
    that it has marked and that are not over.
    """

    name: str
    deployments: Listing
    everywhere: bool
    settings: Mapping[str, str] | Unread
    allowed: Allowed
    adopted: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitFacts:
    """What bounds pods of the namespace ``name``."""

    name: str
    quotas: Listing
    ranges: Listing


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFacts:
    """Kueue's queues of the namespace ``name``; MISSING where there is no Kueue."""

    name: str
    queues: Listing


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeFacts:
    """For each claim of a sweep in the namespace ``name``: why it cannot be used, empty where it can, and what to know.

    ``too_large`` tells of trials that no node holds, ``claimed`` what to know of the devices that they claim.
    """

    name: str
    claims: Mapping[str, tuple[str, Sequence[str]]] = field(default_factory=dict)
    too_large: Sequence[str] = ()
    claimed: Sequence[str] = ()
