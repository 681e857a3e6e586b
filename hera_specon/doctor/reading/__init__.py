"""What the checks need to know of a cluster, read with the user's own permissions."""
