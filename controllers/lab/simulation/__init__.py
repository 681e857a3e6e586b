"""Policies compared in virtual time: on published experiments, on workloads from files, and on past sweeps."""
