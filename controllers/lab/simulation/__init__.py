"""What is simulated, and what to conclude: workloads from files and past sweeps, and experiments over many seeds."""
