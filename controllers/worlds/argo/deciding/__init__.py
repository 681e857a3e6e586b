"""What is to be done next, as commands. Pure."""
