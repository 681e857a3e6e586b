"""From a workflow manifest to one that a cluster can run: what is changed in it, and what is refused."""
