"""Choosing how CPU shares are enforced on this machine."""

from collections.abc import Callable, Iterator
from typing import Literal

from controllers.worlds.local.shares.base import Shares, SharesError, checked_name
from controllers.worlds.local.shares.cgroup import CgroupShares
from controllers.worlds.local.shares.cgroup_files import Mounts, groups_v1, groups_v2
from controllers.worlds.local.shares.pacer import Pacer

Kind = Literal["cgroup-v2", "cgroup-v1", "pacer"]


def choose_shares(run: str, kind: Kind | None = None, mounts: Mounts | None = None) -> Shares:
    """Return the strictest way that works here: cgroup v2, cgroup v1, or pacing by signals.

    Args:
        run: name of the run; what a killed run of this name left in control groups is killed and removed.
        kind: take this way and no other.
        mounts: where control groups are; this machine's where not given.

    Raises:
        SharesError: ``kind`` does not work here.
        SharesNameError: ``run`` cannot name a group.
    """
    checked_name(run)
    refusals = []
    for way in _ways(run, mounts or Mounts.here(), kind):
        try:
            return way()
        except (OSError, SharesError) as error:
            refusals.append(str(error))
    msg = f"CPU shares by {kind} do not work here: {'; '.join(refusals)}"
    raise SharesError(msg)


def _ways(run: str, mounts: Mounts, kind: Kind | None) -> Iterator[Callable[[], Shares]]:
    if kind in {None, "cgroup-v2"}:
        yield lambda: _first_v2(run, mounts)
    if kind in {None, "cgroup-v1"}:
        yield lambda: CgroupShares(groups_v1(run, mounts))
    if kind in {None, "pacer"}:
        yield Pacer


def _first_v2(run: str, mounts: Mounts) -> Shares:
    refusals = []
    for groups in groups_v2(run, mounts):
        try:
            return CgroupShares(groups)
        except (OSError, SharesError) as error:
            refusals.append(str(error))
    raise SharesError("; ".join(refusals))
