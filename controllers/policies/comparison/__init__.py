"""Policies to compare with: textbook ones, baselines, and those that know the future."""
