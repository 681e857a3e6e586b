"""Attempts as processes that start cheaply, and servers that never outlive their controller."""

from controllers.worlds.local.processes.guarded import Guarded, start_guarded
from controllers.worlds.local.processes.launcher import Launcher
from controllers.worlds.local.processes.messages import Exit, LaunchError, ProcessSpec

__all__ = ["Exit", "Guarded", "LaunchError", "Launcher", "ProcessSpec", "start_guarded"]
