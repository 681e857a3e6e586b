"""What is simulated: workloads from tables and from past sweeps, and what comes of them."""
