"""A past sweep, read back to be simulated."""
