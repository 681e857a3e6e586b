"""What drives an engine over a world: the loop, and the one place where an engine is put together."""
