"""The search for sweeps that go wrong: random faults in virtual time, and the invariants that must still hold."""
