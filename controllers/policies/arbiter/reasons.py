"""Why a sweep has what it has, in words for a person."""

from controllers.policies.arbiter.filling import Line
from controllers.policies.arbiter.ledger import Ledger


def reason_of(line: Line, ledger: Ledger, *, lapsed: bool, gives_back: int) -> str:
    """Return why a sweep's trials wait, leave or run.

    Args:
        line: What came of its trials.
        ledger: The nodes.
        lapsed: Whether it left room to the others that it did not take.
        gives_back: How many of its trials are suspended now for others.
    """
    namespace = line.sweep.namespace
    if gives_back and line.over_quota:
        return f"{_trials(gives_back)} suspended: namespace {namespace} has a quota of {line.quota}"
    if gives_back:
        return f"{_trials(gives_back)} suspended: others have less for their weight"
    if lapsed:
        return "it had room and started nothing, so others may have it for a while"
    if line.quota:
        return f"namespace {namespace} has a quota of {line.quota}"
    if line.blocked and not line.given and not line.amount.cpu and ledger.never_fits(line.blocked[0]):
        return f"no node has room for {line.blocked[0].asked}, even an empty one"
    if line.unkept:
        return f"{_trials(len(line.unkept))} over its part: they end or are suspended for others"
    if line.blocked:
        return "its part is in use, or too small for one more trial: others come first by weight and priority"
    if any(room.new for _, room in line.given.values()):
        return "it waits for nodes that can come"
    if not all(room.clear for _, room in line.given.values()):
        return "it waits for others to give back what is over their part"
    return "there is room for what waits" if line.given else "all its trials run"


def _trials(count: int) -> str:
    return f"{count} trial{'' if count == 1 else 's'}"
