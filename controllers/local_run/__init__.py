"""Sweeps on this machine: what ``specon run`` starts."""
