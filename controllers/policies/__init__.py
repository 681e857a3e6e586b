"""One file per published system; ``base`` holds what a policy is."""

from controllers.policies.cbalancer import CBalancer
from controllers.policies.default import Default
from controllers.policies.fair_share import FairShare
from controllers.policies.fifo import Fifo
from controllers.policies.flowcon import FlowCon
from controllers.policies.flowcon2 import FlowCon2
from controllers.policies.gandiva import Gandiva
from controllers.policies.guards import Guarded
from controllers.policies.least_used import LeastUsed
from controllers.policies.longest_remaining import LongestRemaining
from controllers.policies.pinned import Pinned
from controllers.policies.procon import ProCon
from controllers.policies.shortest_remaining import ShortestRemaining
from controllers.policies.specon import SpeCon
from controllers.policies.stacked import Stacked

__all__ = [
    "CBalancer",
    "Default",
    "FairShare",
    "Fifo",
    "FlowCon",
    "FlowCon2",
    "Gandiva",
    "Guarded",
    "LeastUsed",
    "LongestRemaining",
    "Pinned",
    "ProCon",
    "ShortestRemaining",
    "SpeCon",
    "Stacked",
]
