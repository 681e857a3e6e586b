"""FlowCon 2.0: FlowCon's shares, with placement and moves."""

from controllers.policies.flowcon2.policy import FlowCon2

__all__ = ["FlowCon2"]
