"""What the command line reads of a cluster and does in it."""
