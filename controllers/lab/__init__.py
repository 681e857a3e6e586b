"""Sweeps in virtual time: the simulator, and the search for faults."""
