"""Why a sweep has what it has, in words for a person."""

from controllers.policies.arbiter.demands import NOTHING
from controllers.policies.arbiter.filling import Line
from controllers.policies.arbiter.ledger import RoomLedger


def reason_of(line: Line, ledger: RoomLedger, *, lapsed: bool, gives_back: int) -> str:
    """Return why a sweep's trials wait, leave or run.

    Args:
        line: What came of its trials.
        ledger: The nodes.
        lapsed: Whether it left room to the others that it did not take.
        gives_back: How many of its trials are suspended now for others.
    """
    quota = f"namespace {line.sweep.namespace} has a quota of {line.quota}"
    told = (
        (gives_back and line.over_quota, f"{_trials(gives_back)} suspended: {quota}"),
        (gives_back, f"{_trials(gives_back)} suspended: others have less for their weight"),
        (lapsed, "it had room and started nothing, so others may have it for a while"),
        (line.quota, quota),
        (_hopeless(line, ledger), "no node has room for its next trial, even an empty one"),
        (line.unkept, f"{_trials(len(line.unkept))} over its part: they end or are suspended for others"),
        (line.blocked and line.looks <= 0, "its trials ask for too many different amounts to look for room for each"),
        (line.blocked and line.deaf != NOTHING, f"{line.deaf} are held by trials that do not leave though asked to"),
        (line.blocked, "its part is in use, or too small for one more trial: others come first"),
        (any(room.new for _, room in line.given.values()), "it waits for nodes that can come"),
        (not all(room.clear for _, room in line.given.values()), "it waits for others to give back what is too much"),
        (line.given, "there is room for what waits"),
    )
    return next((reason for holds, reason in told if holds), "all its trials run")


def _hopeless(line: Line, ledger: RoomLedger) -> bool:
    nothing = bool(line.blocked) and not line.given and not line.kept
    return nothing and ledger.never_fits(line.blocked[0])


def _trials(count: int) -> str:
    return f"{count} trial{'' if count == 1 else 's'}"
