"""Policies around policies: guards, pins, stacks."""
