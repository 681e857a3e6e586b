"""One file per published system; ``base`` holds what a policy is."""
