"""The policies: what decides where trials start, what share each gets, and which of them move. Pure.

A system that needs one file is that file, one that needs several a folder. ``kit`` holds what several of them need,
``wrappers`` the policies around policies, ``comparison`` those that are there to judge the others by. ``registry`` is
the only list of them all.
"""

from controllers.policies.registry import *  # noqa: F403 - the registry alone lists the policies
from controllers.policies.wrappers.guarded import Guarded as Guarded
from controllers.policies.wrappers.let_go import LetGo as LetGo
from controllers.policies.wrappers.managed import Managed as Managed
from controllers.policies.wrappers.off_leaving_nodes import OffLeavingNodes as OffLeavingNodes
from controllers.policies.wrappers.pinned import Pinned as Pinned
from controllers.policies.wrappers.stacked import Stacked as Stacked
from controllers.policies.wrappers.until_enough import UntilEnough as UntilEnough
from controllers.policies.wrappers.within_means import WithinMeans as WithinMeans
from controllers.policies.wrappers.without_shares import WithoutShares as WithoutShares
