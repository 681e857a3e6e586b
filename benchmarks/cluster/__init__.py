"""What is measured on a cluster: each a command that prints a table. They need what ``make test-cluster`` needs."""
