"""Sweeps whose trials go on from each other's checkpoints: what the policy ``population`` asks of them."""

from controllers.driving.clones import why_no_clones
from controllers.policies.registry import parse_policy
from hera_specon.errors import SweepError


def check_population(policy: str | None, search: str | None, *, gang: bool, store: str | None, printed: bool) -> None:
    """Check that the policy of a sweep, a spec string, can steer it.

    Raises:
        SweepError: It clones trials that cannot be cloned; says why.
    """
    if policy is None:
        return
    known = parse_policy(policy)
    why_not = why_no_clones(known, search=search or "", gang=gang, store=store or "", printed=printed)
    if why_not is not None:
        raise SweepError(why_not)
