"""What each of several sweeps may use of the cluster that they share. Pure."""

from controllers.policies.arbiter.arbiter import Arbiter, ArbiterState
from controllers.policies.arbiter.demands import Amount, Claimant, NamespaceTerms, SweepDemand
from controllers.policies.arbiter.parts import Part, Ruling

__all__ = ["Amount", "Arbiter", "ArbiterState", "Claimant", "NamespaceTerms", "Part", "Ruling", "SweepDemand"]
