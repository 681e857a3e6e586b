"""Attempts as processes that start cheaply, and servers that never outlive their controller."""

from controllers.worlds.local.processes.launcher import Launcher, Tethered, start_tethered
from controllers.worlds.local.processes.marks import ProcessMark
from controllers.worlds.local.processes.messages import Exit, LaunchError, ProcessSpec

__all__ = ["Exit", "LaunchError", "Launcher", "ProcessMark", "ProcessSpec", "Tethered", "start_tethered"]
