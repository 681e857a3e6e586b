"""What a sweep author imports."""
