"""What a user of a cluster finds out before the first submit: facts are read, and pure checks say what they mean."""
