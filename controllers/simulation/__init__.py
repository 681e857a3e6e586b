"""Simulated experiments: what is submitted when, under which policies, and what it came to over many seeds."""
