"""The training jobs of the thesis and example sweeps."""
