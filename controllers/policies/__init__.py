"""One file per published system; ``base`` holds what a policy is."""

from controllers.policies.cbalancer import CBalancer
from controllers.policies.deadline import Deadline
from controllers.policies.default import Default
from controllers.policies.dqoes import DQoES
from controllers.policies.edf import Edf
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
from controllers.policies.tradl import Tradl

__all__ = [
    "CBalancer",
    "DQoES",
    "Deadline",
    "Default",
    "Edf",
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
    "Tradl",
]
