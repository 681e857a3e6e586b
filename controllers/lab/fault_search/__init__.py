"""The search for sweeps that go wrong: random faults in virtual time, and what must hold whatever happens."""
