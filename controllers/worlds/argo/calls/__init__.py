"""Calls to the API server: JSON over HTTP, commands run in pods, and the threads that make changes."""
