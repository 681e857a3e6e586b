"""What is written down of a sweep while it runs, and what is measured on it."""
