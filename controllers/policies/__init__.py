"""One file per published system; ``base`` holds what a policy is."""

from controllers.policies.default import Default
from controllers.policies.flowcon import FlowCon
from controllers.policies.guards import Guarded
from controllers.policies.pinned import Pinned
from controllers.policies.specon import SpeCon
from controllers.policies.stacked import Stacked

__all__ = ["Default", "FlowCon", "Guarded", "Pinned", "SpeCon", "Stacked"]
