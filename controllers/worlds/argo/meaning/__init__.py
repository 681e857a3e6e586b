"""What these records mean together: attempts and trials, room on nodes, and what is seen of a campaign at a time."""
