"""FlowCon 1.0: elastic shares on each node."""

from controllers.policies.flowcon.policy import FlowCon, FlowConRule

__all__ = ["FlowCon", "FlowConRule"]
