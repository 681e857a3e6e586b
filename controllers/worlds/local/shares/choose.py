"""Choosing how CPU shares are enforced on this machine."""

from typing import Literal

from controllers.worlds.local.shares.base import Shares

Kind = Literal["cgroup-v2", "cgroup-v1", "pacer"]


def choose_shares(run: str, kind: Kind | None = None) -> Shares:
    """Return the strictest way that works here: cgroup v2, cgroup v1, or pacing by signals.

    Args:
        run: name of the run; what a killed run of this name left behind is killed and removed.
        kind: take this way and no other.

    Raises:
        SharesError: ``kind`` doesn't work here.
        SharesNameError: ``run`` can't name a group.
    """
    raise NotImplementedError
