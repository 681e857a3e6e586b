"""Run a sweep on this machine: nodes are slices of its cores, trials are real processes."""
