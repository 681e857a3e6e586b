"""The controller as it runs in a cluster: campaigns found, one engine each, one leader, and what it tells of itself."""
