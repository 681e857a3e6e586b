"""Policies around policies: guards, pins, stacks, and the one way to walk what is within."""
