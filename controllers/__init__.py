"""What watches a sweep and acts on it."""
