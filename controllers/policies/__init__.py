"""One file per published system; ``base`` holds what a policy is."""

from controllers.policies.cbalancer.policy import CBalancer
from controllers.policies.comparison.default import Default
from controllers.policies.comparison.edf import Edf
from controllers.policies.comparison.fair_share import FairShare
from controllers.policies.comparison.fifo import Fifo
from controllers.policies.comparison.gandiva import Gandiva
from controllers.policies.comparison.least_used import LeastUsed
from controllers.policies.comparison.longest_remaining import LongestRemaining
from controllers.policies.comparison.shortest_remaining import ShortestRemaining
from controllers.policies.deadline.policy import Deadline
from controllers.policies.dqoes.policy import DQoES
from controllers.policies.flowcon.policy import FlowCon
from controllers.policies.flowcon2.policy import FlowCon2
from controllers.policies.procon import ProCon
from controllers.policies.specon.policy import SpeCon
from controllers.policies.tradl import Tradl
from controllers.policies.wrappers.guarded import Guarded
from controllers.policies.wrappers.pinned import Pinned
from controllers.policies.wrappers.stacked import Stacked

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
