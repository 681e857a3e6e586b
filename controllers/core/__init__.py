"""The vocabulary, the ports, the engine: pure, without clock, chance or I/O."""
