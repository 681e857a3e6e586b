"""The controller in a cluster: it finds campaigns, drives one engine for each while it leads, and reports on itself."""
