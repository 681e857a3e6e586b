"""What people see in a terminal: a live view while a sweep runs, tables when it has ended."""
