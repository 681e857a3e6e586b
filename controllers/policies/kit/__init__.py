"""What several policies need."""
