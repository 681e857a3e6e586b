"""This machine as a world: its cores cut into nodes, trials as real processes with enforced CPU shares."""
