"""MLflow's client without its data science libraries, which a process that only asks a tracking server never uses."""

import importlib
import sys
from typing import Final

_OPTIONAL: Final = ("numpy", "pandas", "pyarrow", "scipy")
"""What the distribution mlflow-skinny leaves out; MLflow loads each where it can be had, at 90 MB in all."""


def import_slim() -> None:
    """Import MLflow as its skinny distribution would be. Does nothing where it, or one of those, is imported already.

    What is imported later finds these libraries as ever.
    """
    if any(name in sys.modules for name in ("mlflow", *_OPTIONAL)):
        return
    # None is Python's own mark of a module that can't be imported.
    hidden = dict.fromkeys(_OPTIONAL)
    sys.modules.update(hidden)  # type: ignore[arg-type] # typeshed knows modules only
    try:
        importlib.import_module("mlflow.tracking")
    finally:
        for name in hidden:
            del sys.modules[name]
