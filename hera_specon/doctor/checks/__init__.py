"""The checks, a file for each subject: pure functions from facts to findings."""
