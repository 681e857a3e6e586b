"""To whom a login goes: only to the MLflow that its owner named, never to an address that others wrote down.

MLflow's client sends the login of the environment to whatever address it is given, and the address may stand in a
workflow, in a run's folder, or in MLflow itself, as the place of a run's artifacts.
"""

import importlib.metadata
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, urlsplit

from controllers.core.errors import SpeconError
from controllers.tracking.access import shown

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

_VARIABLES: Final = (
    "MLFLOW_TRACKING_USERNAME",
    "MLFLOW_TRACKING_PASSWORD",
    "MLFLOW_TRACKING_TOKEN",
    "MLFLOW_TRACKING_AUTH",
    "MLFLOW_TRACKING_AWS_SIGV4",
    "MLFLOW_TRACKING_CLIENT_CERT_PATH",
)
_FILE: Final = Path(".mlflow", "credentials")
_HEADER_PLUGINS: Final = "mlflow.request_header_provider"
_PORTS: Final = {"http": 80, "https": 443}
_SENT_A_LOGIN: Final = frozenset({"http", "https", "mlflow-artifacts"})
"""Schemes under which MLflow's client sends the login to the host of the address."""


class ForeignAddressError(SpeconError):
    """An address that its reader did not name would get the reader's login, or is none of a server."""


def login_for(uri: str) -> str | None:
    """Return what MLflow's client would identify this user by at ``uri``, by its name alone; None for nothing."""
    named = next((name for name in _VARIABLES if os.environ.get(name)), None)
    if named is not None:
        return named
    if Path("~", _FILE).expanduser().exists():
        return f"~/{_FILE}"
    plugins = [plugin.name for plugin in importlib.metadata.entry_points(group=_HEADER_PLUGINS)]
    if plugins:
        return f"MLflow's plugin {plugins[0]!r}"
    from requests.utils import get_netrc_auth  # noqa: PLC0415 - MLflow brings it, and few commands need it

    return "~/.netrc" if get_netrc_auth(uri) is not None else None


def check_address(uri: str, where: str) -> None:
    """Refuse an address that the reader did not name, where it would get the reader's login.

    Args:
        uri: The address.
        where: What names it, for the message.

    Raises:
        ForeignAddressError: It would get a login, or is no address of a server: a file that others name is not opened.
    """
    if urlsplit(uri).scheme not in {"http", "https"}:
        message = f"{shown(uri)[:200]!r}, which {where} names, is not the address of an MLflow server, such as http://127.0.0.1:5000"
        raise ForeignAddressError(message)
    if (login := login_for(uri)) is not None:
        message = (
            f"{where} names {shown(uri)[:200]}, and your login ({login}) is sent only to an MLflow that you name "
            "yourself: if you trust it, add --mlflow-tracking-uri"
        )
        raise ForeignAddressError(message)


def check_artifacts(client: "MlflowClient", run: str, artifact_uri: str) -> None:
    """Refuse artifacts that lie on another server than ``client`` was made for, where that would get the login.

    Args:
        client: A client of the tracking server.
        run: The run that they belong to, for the message.
        artifact_uri: Where MLflow says that they are: the maker of the experiment may have told MLflow so.

    Raises:
        ForeignAddressError: They lie on a server that would get the login.
    """
    place, tracking = urlsplit(artifact_uri), urlsplit(str(client.tracking_uri))
    if place.scheme not in _SENT_A_LOGIN or not place.netloc or _same(place, tracking):
        return
    address = f"{place.scheme.replace('mlflow-artifacts', 'https')}://{place.netloc}"
    if (login := login_for(address)) is not None:
        message = (
            f"the artifacts of run {run} are said to lie at {shown(artifact_uri)[:200]}, another server than "
            f"{shown(str(client.tracking_uri))}: the login ({login}) is not sent there, so they are left alone"
        )
        raise ForeignAddressError(message)


def _same(place: SplitResult, tracking: SplitResult) -> bool:
    try:
        ports = place.port, tracking.port
    except ValueError:
        return False
    scheme = tracking.scheme if place.scheme == "mlflow-artifacts" else place.scheme
    defaults = _PORTS.get(scheme), _PORTS.get(tracking.scheme)
    wanted = tuple(port or default for port, default in zip(ports, defaults, strict=True))
    return scheme == tracking.scheme and place.hostname == tracking.hostname and wanted[0] == wanted[1]
