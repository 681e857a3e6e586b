"""Training jobs of the thesis (tables 6.1 and 6.3): real learning on real data that needs no download."""
