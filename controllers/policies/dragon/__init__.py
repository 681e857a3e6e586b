"""DRAGON: gangs that start whole, near each other, and grow and shrink."""

from controllers.policies.dragon.policy import Dragon as Dragon
