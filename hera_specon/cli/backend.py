"""What the commands call. Imported on use: ``specon --help`` must not wait for MLflow."""

import gc
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controllers.core.policy import Policy

if TYPE_CHECKING:
    from controllers.cluster.settings import ControllerSettings
    from controllers.local_run.run import LocalRun, LocalSettings
    from controllers.local_run.sweep import Screen

Workflow = Mapping[str, Any]


def run_controller(settings: "ControllerSettings", stop: threading.Event) -> None:
    """Run the controller; alone, since what sweeps on this machine need would only cost it memory."""
    from controllers.tracking.access import import_slim  # noqa: PLC0415 - see the module's docstring

    import_slim()
    from controllers.cluster import run  # noqa: PLC0415

    # What was imported stays: to look through it again and again for garbage would be half of that work.
    gc.freeze()
    run.run_controller(settings, stop)


@dataclass(frozen=True, slots=True)
class Backend:
    """The functions behind the commands; a test hands ``main`` its own as ``obj``."""

    load_workflow: Callable[[Path], Workflow]
    parse_policy: Callable[[str], Policy[Any]]
    run_locally: "Callable[[Workflow, Path, Sequence[Policy[Any]], LocalSettings, Screen], LocalRun]"
    run_controller: "Callable[[ControllerSettings, threading.Event], None]" = run_controller


def real_backend() -> Backend:
    """Return the functions that really run sweeps. MLflow is kept from printing to stdout, which may be for JSON."""
    os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
    from controllers.local_run.run import run_locally  # noqa: PLC0415 - see the module's docstring
    from controllers.policies.registry import parse_policy  # noqa: PLC0415
    from hera_specon.workflow_file import load_workflow  # noqa: PLC0415

    return Backend(lambda path: load_workflow(path).manifest, parse_policy, run_locally)
