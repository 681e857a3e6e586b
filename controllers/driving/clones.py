"""Which sweeps a policy can train as a population: trials must be able to go on from each other's checkpoints."""

from typing import Any

from controllers.core.errors import SearchError
from controllers.core.policy import Policy
from controllers.policies import Population
from controllers.policies.wrappers.wrapper import parts
from controllers.search import changing_names, read_search


def why_no_clones(policy: Policy[Any], *, search: str, gang: bool, store: str, printed: bool) -> str | None:
    """Return why ``policy`` cannot steer a sweep, None where it can: any but ``population`` can.

    Args:
        policy: What is to steer it.
        search: The text of the search that gives the trials their hyperparameters, empty for none.
        gang: Whether a trial may have several workers.
        store: Address of the store that keeps the trials' checkpoints, empty for a folder that they share.
        printed: Whether their metrics are read from what they print, so that no hooks save what they track.
    """
    found = next((part for part in parts(policy) if isinstance(part, Population)), None)
    if found is None:
        return None
    subject = f"policy {found.name!r}"
    if not search:
        return (
            f"{subject} changes hyperparameters while trials train, so a search has to give them: "
            "search='tpe', or search=sampler('random')"
        )
    if gang:
        return f"{subject} takes no trials of several workers: their checkpoints are not copied"
    if store:
        return f"{subject} copies checkpoints between folders, and these are kept in {store[:80]}: leave state= out"
    if printed:
        return f"{subject} needs programs with the hooks, which save checkpoints: metrics=printed() is for others"
    try:
        changing_names(read_search(search), found.names)
    except SearchError as error:
        return f"{subject}: {error}"
    return None
