"""MLflow's own server in a single process.

``mlflow server`` imports MLflow, then starts a process that imports all of it again: two seconds before a first trial
can begin. This runs the same application in the first process. Where an MLflow does not have what that takes,
``mlflow server`` runs.
"""

import os
import sys
from pathlib import Path
from typing import Final

_HOST: Final = "127.0.0.1"
_ARTIFACTS: Final = "mlflow-artifacts:/"


def serve(port: int, store: str, artifacts: str) -> None:
    """Serve until told to stop.

    Args:
        port: on the loopback device.
        store: URI of the database.
        artifacts: folder that artifacts are kept in.
    """
    try:
        import uvicorn  # noqa: PLC0415 - the alternative must not wait for it
        from mlflow.server import constants  # noqa: PLC0415

        told = {
            constants.BACKEND_STORE_URI_ENV_VAR: store,
            constants.REGISTRY_STORE_URI_ENV_VAR: store,
            constants.ARTIFACT_ROOT_ENV_VAR: _ARTIFACTS,
            constants.ARTIFACTS_DESTINATION_ENV_VAR: artifacts,
            constants.SERVE_ARTIFACTS_ENV_VAR: "true",
        }
        # The application reads them while it is imported.
        os.environ |= told
        from mlflow.server.fastapi_app import app  # noqa: PLC0415
        from mlflow.server.handlers import initialize_backend_stores  # noqa: PLC0415
    except (ImportError, AttributeError):
        command = [sys.executable, "-m", "mlflow", "server", "--workers", "1", "--host", _HOST, "--port", str(port)]
        os.execv(sys.executable, [*command, "--backend-store-uri", store, "--artifacts-destination", artifacts])  # noqa: S606 - our own interpreter
    initialize_backend_stores(store, store, _ARTIFACTS)
    uvicorn.run(app, host=_HOST, port=port)


def main() -> None:
    """Serve on the port that the first argument names, out of the folder that the second one names."""
    folder = Path(sys.argv[2])
    serve(int(sys.argv[1]), f"sqlite:///{folder / 'mlflow.db'}", str(folder / "artifacts"))
