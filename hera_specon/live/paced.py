"""Something that costs time to make, made again only when somebody asks for it, and not too often."""

import hashlib
import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from controllers.core.errors import SpeconError

MOST_BUSY: Final = 0.04
"""Part of a core that making it may take on average."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Made:
    """HTML, and a mark that changes with it; ``problem`` is why it is not newer, None where nothing speaks against."""

    html: str
    mark: str
    problem: str | None = None


class PacedPart:
    """Makes HTML when it is asked for, at most every ``least_s`` seconds and with a small part of a core.

    Where it cannot be made, what was made last stays, with the reason.

    Args:
        make: makes it.
        least_s: seconds between two, at least.
        clock: seconds that never go back.
        worked: seconds of CPU that the calling thread has used.
    """

    def __init__(
        self,
        make: Callable[[], str],
        least_s: float,
        clock: Callable[[], float] = time.monotonic,
        worked: Callable[[], float] = time.thread_time,
    ) -> None:
        self._make = make
        self._least_s = least_s
        self._clock = clock
        self._worked = worked
        self._due = -math.inf
        self._lock = threading.Lock()
        self._made = Made("", "")

    def get(self) -> Made:
        """Return the newest, made again where it is due; while another thread makes it, the one before."""
        # Who comes first waits for it; others get what there is.
        if not self._lock.acquire(blocking=not self._made.mark):
            return self._made
        try:
            if self._clock() >= self._due:
                self._make_again()
        finally:
            self._lock.release()
        return self._made

    def expire(self) -> None:
        """Have it made again as soon as it is asked for: something was changed that should show."""
        self._due = -math.inf

    def _make_again(self) -> None:
        before = self._worked()
        try:
            html, problem = self._make(), None
        except (SpeconError, OSError) as error:
            html, problem = self._made.html, str(error)
        except Exception as error:  # noqa: BLE001 - a page that fails must neither end a sweep nor stay silent
            html, problem = self._made.html, f"{type(error).__name__}: {error}"
            if problem != self._made.problem:
                _LOG.exception("the page cannot be made")
        told = hashlib.sha256(f"{problem}\n{html}".encode()).hexdigest()[:32]
        self._made = Made(html, told, problem)
        self._due = self._clock() + max(self._least_s, (self._worked() - before) / MOST_BUSY)
