"""How a command is carried out, and what else is written to the cluster."""
