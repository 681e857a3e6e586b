"""CPU shares of trials on nodes that are slices of this machine, enforced and changeable at any time."""

from controllers.worlds.local.shares.base import Shares, SharesError, SharesNameError, SharesValueError
from controllers.worlds.local.shares.choose import Kind, choose_shares

__all__ = ["Kind", "Shares", "SharesError", "SharesNameError", "SharesValueError", "choose_shares"]
