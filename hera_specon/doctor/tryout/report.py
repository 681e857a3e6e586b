"""What a try-out came to. What its pod says of itself is untrusted. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from controllers.worlds.argo.calls.untrusted import TooManyPartsError, parsed

_MOST_REPORT: Final = 4096
_MOST_PARTS: Final = 200


class Resized(StrEnum):
    """How the resize of the try-out's pod went."""

    NOT_TRIED = "not tried"
    DONE = "done"
    PENDING = "pending"
    INFEASIBLE = "infeasible"
    REFUSED = "refused"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class TryOut:
    """How a try-out went; texts are those of others, cut short.

    Attributes:
        namespace: where.
        account: the service account by which Argo's executor reports.
        refused: why the API server did not take the workflow; empty where it did.
        phase: Argo's word for how the workflow stands; empty where Argo took no notice of it.
        message: Argo's reason.
        waits: what the pod waited for at the end; empty where its program ran.
        pod: whether there was a pod.
        gated: whether its scheduling gate held it, and was opened; None where that was not tried.
        resized: how the resize went.
        resize_words: why.
        report: what the program in the pod found; None where it did not tell.
        last_words: what the container said instead.
        seconds: how long it took.
        left: what could not be removed.
    """

    namespace: str
    account: str
    refused: str = ""
    phase: str = ""
    message: str = ""
    waits: str = ""
    pod: bool = False
    gated: bool | None = None
    resized: Resized = Resized.NOT_TRIED
    resize_words: str = ""
    report: Mapping[str, Any] | None = field(default=None)
    last_words: str = ""
    seconds: float = 0.0
    left: str = ""


def read_report(said: str) -> Mapping[str, Any] | None:
    """Return the report in a container's last words, None where they hold none."""
    if len(said) > _MOST_REPORT:
        return None
    try:
        found = parsed(said, _MOST_PARTS)
    except (TooManyPartsError, ValueError):
        return None
    return found if isinstance(found, dict) and "self" in found else None
