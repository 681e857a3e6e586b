"""The simulated world: a sweep in virtual time, under the same engine and policies as a real one."""
