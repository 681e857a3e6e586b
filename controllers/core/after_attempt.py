"""How an attempt ended and what follows, in every world: one rule, the table of ``after_attempt``. Pure."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Protocol

from mlflow_hooks.contract import EXIT_MIGRATE

AT_ONCE_S: Final = 60.0
"""An attempt that fails in fewer seconds, as the one before did and with the same last words, would fail again."""
MOST_BARREN: Final = 3
"""The attempt in a row that leaves unasked and has come no further counts as a failure from this one on."""
FIRST_PAUSE_S: Final = 1.0
MOST_PAUSE_S: Final = 60.0
EXIT_TERMINATED: Final = 128 + 15
"""Exit code of a program that SIGTERM ended: asked to leave before the hooks listened, or after they had ended."""
EXIT_KILLED: Final = 128 + 9
_FAILED: Final = 1
_BY_OTHERS: Final = frozenset({EXIT_TERMINATED, EXIT_KILLED})
"""Exit codes of programs that somebody else may have ended; the other signals are those of a program that crashes."""
LEFT: Final = frozenset({EXIT_MIGRATE, EXIT_TERMINATED})
"""Exit codes of an attempt that was asked to leave; none of them says anything about the trial itself."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The end of an attempt that was no success.

    ``code`` is its exit code, 128 plus the number where a signal ended it. ``words`` is the last line that it printed,
    of a Python program its exception. It ran for ``lasted_s`` seconds.
    """

    code: int
    words: str
    lasted_s: float

    @property
    def at_once(self) -> str:
        """Exit code and last words where it failed at once and by itself; empty where it did not, or said nothing."""
        by_itself = self.code > 0 and self.code not in _BY_OTHERS
        return f"{self.code}: {self.words}" if self.words and by_itself and self.lasted_s < AT_ONCE_S else ""


def pause_s(in_vain: int) -> float:
    """Return the seconds before the next attempt after so many that failed, or that left unasked for nothing.

    They grow, from a second to a minute.
    """
    return min(MOST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(in_vain - 1, 10)) if in_vain else 0.0


def last_line(printed: str) -> str:
    """Return the last line of ``printed`` that says something, empty where none does."""
    return next((line.strip() for line in reversed(printed.splitlines()) if line.strip()), "")


class EndedBy(StrEnum):
    """What made an attempt end."""

    ITSELF = "itself"
    """Nobody asked it to."""
    MOVE = "move"
    """It was asked to save and leave, so that it goes on elsewhere."""
    PAUSE = "pause"
    """It was asked to save and leave, so that it waits."""
    STOP = "stop"
    """It was asked to save and leave, so that it is over."""
    LOSS = "loss"
    """What ran it has ended: a node, or the driver of the sweep."""
    MEMORY = "memory"
    """It was killed, since its machine had no memory left."""


class RetryPolicy(Protocol):
    """How many failures of a trial, or of a step, are forgiven."""

    def allows(self, failures: int, exit_code: int, /, *, duration_s: float = ...) -> bool:
        """Return whether another attempt follows the latest of so many that failed, which lasted ``duration_s``."""
        ...

    def wait_s(self, failures: int, /) -> float:
        """Return the seconds from the end of that one to the next."""
        ...


@dataclass(frozen=True, slots=True)
class TrialRetries:
    """The rule of a trial: so many ``failures`` are forgiven, whatever they are, with pauses that grow."""

    failures: int

    def allows(self, failures: int, exit_code: int, /, *, duration_s: float = 0.0) -> bool:
        """Return whether another attempt follows; see ``RetryPolicy``."""
        del exit_code, duration_s
        return failures <= self.failures

    def wait_s(self, failures: int, /) -> float:
        """Return the seconds before the next attempt after so many failures."""
        return pause_s(failures)


@dataclass(frozen=True, slots=True)
class AttemptHistory:
    """What counts of the attempts of a trial.

    Attributes:
        failures: how many failed.
        barren: how many in a row have left although nobody asked them to, and had come no further.
        gained: the step that the trial had come to when it last left.
        failure: how the newest failed, where it did at once; see ``Failure.at_once``.
        alone: whether the newest ran alone, since one before was killed for memory.
    """

    failures: int = 0
    barren: int = 0
    gained: int = 0
    failure: str = ""
    alone: bool = False

    def after_leaving(self, gained: int, *, asked: bool) -> "AttemptHistory":
        """Return it after an attempt that left; the trial has come to the step ``gained``."""
        barren = 0 if gained > self.gained else self.barren + (not asked)
        return replace(self, barren=barren, gained=max(gained, self.gained))

    @property
    def leaves_in_vain(self) -> bool:
        """Whether an attempt that leaves unasked and comes no further counts as a failure by now."""
        return self.barren >= MOST_BARREN


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """The end of an attempt.

    Attributes:
        how: its exit code, its last words, and how long it lasted.
        at: when it ended, in seconds of any clock.
        by: what made it end.
        through: whether an attempt that was asked to leave and ended with 0 is known to have come to its end.
        gained: the step that the trial has come to.
        leaves: whether exit code 75 may tell that it left unasked: not of a step that is no trial, nor of a gang, whose
            workers leave unasked only where they waited in vain for one another.
    """

    how: Failure
    at: float = 0.0
    by: EndedBy = EndedBy.ITSELF
    through: bool = False
    gained: int = 0
    leaves: bool = True


class Then(StrEnum):
    """What becomes of a trial whose attempt has ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    AGAIN = "again"
    """Another attempt follows, and goes on where the trial has saved itself."""
    WAITS = "waits"
    """Another attempt follows once somebody lets the trial go on."""


class Reason(StrEnum):
    """Why that becomes of it."""

    ENDED = "it came to its end"
    ASKED = "it was asked to leave"
    LOST = "what ran it has ended"
    LEFT = "it left so that its trial goes on"
    MEMORY = "its machine had no memory left"
    FAILED = "it failed"
    FAILED_TOO_OFTEN = "it failed, and its rule forgives no more"
    FAILED_ALIKE = "it failed at once, as the attempt before"


@dataclass(frozen=True, slots=True)
class Following:
    """What follows an attempt.

    Attributes:
        then: what becomes of its trial.
        why: the reason.
        history: what counts from now on.
        at: when the next attempt may begin, by the clock of the end.
    """

    then: Then
    why: Reason
    history: AttemptHistory
    at: float = 0.0

    @property
    def left(self) -> bool:
        """Whether the attempt has left so that its trial goes on, which is no failure."""
        return self.why in {Reason.ASKED, Reason.LOST, Reason.LEFT}

    @property
    def given_up(self) -> bool:
        """Whether its trial is over although its rule would allow another attempt."""
        return self.why is Reason.FAILED_ALIKE


def after_attempt(history: AttemptHistory, end: AttemptEnd, rule: RetryPolicy | None) -> Following:
    """Return what follows the end of an attempt.

    The first row that holds counts. Where no exit code is named, any but 0 is meant, and 0 of a program that did not
    come to its end. "Asked" is by a move, a pause, a stop or a loss.

    | row | ended by | how                                       | the trial                      | failure |
    |-----|----------|-------------------------------------------|--------------------------------|---------|
    | 1   | itself   | 0                                         | has succeeded                  |         |
    | 2   | asked    | 0, and it came to its end                 | has succeeded                  |         |
    | 3   | stop     |                                           | is stopped                     |         |
    | 4   | pause    |                                           | waits                          |         |
    | 5   | move     |                                           | goes on at once                |         |
    | 6   | loss     | further than before, or not in vain yet   | goes on after a growing pause  |         |
    | 7   | memory   | beside others                             | goes on at once, alone         |         |
    | 8   | memory   | alone                                     | has failed                     | yes     |
    | 9   | itself   | 75, further, or not in vain yet           | goes on after a growing pause  |         |
    | 10  | itself   | the rule allows no other                  | has failed                     | yes     |
    | 11  | itself   | at once, and as the attempt before        | has failed, and is given up    | yes     |
    | 12  | itself   | the rule allows another                   | goes on after the rule's pause | yes     |

    An attempt leaves in vain where it is the third in a row that left unasked and came no further. Rows 10 to 12 hold
    for that too. The growing pause is a second after the first that came no further, and then twice the one before.

    Args:
        history: what counted before.
        end: how the attempt ended.
        rule: how many failures are forgiven; None for none.
    """
    if end.how.code == 0 and (end.through or end.by in {EndedBy.ITSELF, EndedBy.MEMORY}):
        return Following(Then.SUCCEEDED, Reason.ENDED, history)
    if end.by is EndedBy.MEMORY:
        return _killed_for_memory(history, end)
    asked = end.by in {EndedBy.MOVE, EndedBy.PAUSE, EndedBy.STOP}
    left = asked or end.by is EndedBy.LOSS or (end.how.code == EXIT_MIGRATE and end.leaves)
    if not left:
        return _failed(history, end, rule, pause=0.0)
    history = history.after_leaving(end.gained, asked=asked)
    pause = 0.0 if asked else pause_s(history.barren)
    if not asked and history.leaves_in_vain:
        return _failed(history, end, rule, pause)
    then = {EndedBy.STOP: Then.STOPPED, EndedBy.PAUSE: Then.WAITS}.get(end.by, Then.AGAIN)
    why = Reason.ASKED if asked else Reason.LOST if end.by is EndedBy.LOSS else Reason.LEFT
    return Following(then, why, replace(history, failure=""), end.at + pause)


def _killed_for_memory(history: AttemptHistory, end: AttemptEnd) -> Following:
    if history.alone:
        return Following(Then.FAILED, Reason.MEMORY, replace(history, failures=history.failures + 1))
    return Following(Then.AGAIN, Reason.MEMORY, replace(history, alone=True), end.at)


def _failed(history: AttemptHistory, end: AttemptEnd, rule: RetryPolicy | None, pause: float) -> Following:
    """Return what follows a failure; a next attempt begins ``pause`` seconds later at the earliest."""
    failures, failure = history.failures + 1, end.how.at_once
    failed = replace(history, failures=failures, failure=failure)
    # To the rule of a trial, the exit code of one that leaves would tell of a move, and a move is no failure.
    code = _FAILED if end.leaves and end.how.code in LEFT else end.how.code or _FAILED
    if rule is None or not rule.allows(failures, code, duration_s=end.how.lasted_s):
        return Following(Then.FAILED, Reason.FAILED_TOO_OFTEN, failed)
    if failure and failure == history.failure:
        return Following(Then.FAILED, Reason.FAILED_ALIKE, failed)
    return Following(Then.AGAIN, Reason.FAILED, failed, end.at + max(rule.wait_s(failures), pause))
