"""KaiS: a learned dispatcher, trained in the project's own simulator."""

from controllers.policies.kais.policy import Kais

__all__ = ["Kais"]
