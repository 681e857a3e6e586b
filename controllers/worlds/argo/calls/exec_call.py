"""A command run in a pod, in bounded time: the API server, a kubelet or the pod itself may hang at each step of it."""

import ssl
import time
from collections.abc import Sequence
from typing import Any, Final

import websocket
from kubernetes.stream import ws_client
from websocket import ABNF, WebSocket, WebSocketException, WebSocketTimeoutException

from controllers.worlds.argo.calls.api import KubeApi
from controllers.worlds.argo.calls.errors import UnavailableError
from mlflow_hooks.foreign_json import parsed

_CONNECT_S: Final = 4.0
"""Less than a lease lasts beyond its holder's deadline: nobody else leads before a command is on its way."""
_RUN_S: Final = 10.0
_LOOK_S: Final = 1.0
_MOST_OUTPUT: Final = 2**16
_PROTOCOLS: Final = "sec-websocket-protocol: v5.channel.k8s.io,v4.channel.k8s.io"
_ERROR_CHANNEL: Final = b"\x03"
"""First byte of a message that tells how the command ended; other channels carry what it prints."""


def run_command(api: KubeApi, path: str, container: str, command: Sequence[str]) -> None:
    """Run ``command`` and wait for it to end. Output is read and dropped.

    Args:
        api: access to the API server.
        path: of the pod's subresource ``exec``.
        container: name of the container.
        command: the words of the command.

    Raises:
        NotAllowedNowError: this controller must not act now.
        UnavailableError: it could not be begun in 4 s for each step of the connection, did not end in 10 s, or failed.
    """
    query = [("container", container), ("stdout", "true"), ("stderr", "true"), *(("command", word) for word in command)]
    url = ws_client.get_websocket_url(api.host + path, query)
    try:
        connection = _connected(api, url)
        try:
            problem = _problem_of(connection)
        finally:
            connection.shutdown()  # type: ignore[no-untyped-call]
    except (WebSocketException, OSError, ValueError) as error:
        message = f"exec at {path}: {str(error)[:300] or type(error).__name__}"
        raise UnavailableError(message) from error
    if problem:
        message = f"exec of {command[0]} at {path}: {problem[:300]}"
        raise UnavailableError(message)


def _connected(api: KubeApi, url: str) -> WebSocket:
    """Return the connection. The package's own client takes no time limit for it, and none for what comes after."""
    configuration = api.configuration
    options: dict[str, Any] = ws_client.websocket_proxycare({}, configuration, url, {})
    authorization = [f"{name}: {value}" for name, value in api.headers().items()]
    # Last of all: from here on, only the time limit lies between being allowed and the signal.
    api.check_may_write()
    return websocket.create_connection(
        url,
        timeout=_CONNECT_S,
        header=[*authorization, _PROTOCOLS],
        sslopt=_ssl_options(api) if url.startswith("wss://") else {},
        redirect_limit=0,  # it would take the token along, to whatever host
        **options,
    )


def _ssl_options(api: KubeApi) -> dict[str, Any]:
    configuration = api.configuration
    given = {
        "cert_reqs": ssl.CERT_REQUIRED if configuration.verify_ssl else ssl.CERT_NONE,
        "ca_certs": configuration.ssl_ca_cert if configuration.verify_ssl else None,
        "check_hostname": configuration.assert_hostname if configuration.verify_ssl else None,
        "certfile": configuration.cert_file,
        "keyfile": configuration.key_file,
        "server_hostname": configuration.tls_server_name,
    }
    return {name: value for name, value in given.items() if value is not None}


def _problem_of(connection: WebSocket) -> str | None:
    """Wait for the command to end and return what went wrong; None where it ended well."""
    deadline = time.monotonic() + _RUN_S
    connection.settimeout(_LOOK_S)
    told, seen = b"", 0
    while time.monotonic() < deadline and seen <= _MOST_OUTPUT:
        try:
            code, data = connection.recv_data(control_frame=True)
        except WebSocketTimeoutException:
            continue
        seen += len(data)
        if code == ABNF.OPCODE_CLOSE:
            return _failure_in(told)
        if code in {ABNF.OPCODE_BINARY, ABNF.OPCODE_TEXT} and data[:1] == _ERROR_CHANNEL:
            told += data[1:]
    return "it does not end, or prints too much"


def _failure_in(told: bytes) -> str | None:
    """Return what a command's end says went wrong; None where it ended well."""
    try:
        answer = parsed(told or b"{}")
    except ValueError:
        answer = None
    status = answer.get("status") if isinstance(answer, dict) else None
    return None if status == "Success" else told.decode(errors="replace") or "it ended without saying how"
