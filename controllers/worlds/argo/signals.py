"""Ending a running attempt: by its own leave (SIGTERM), by force, or by deleting its pod.

Argo's own ``argoexec`` is in every main container. Sent to process 1, SIGTERM is handed on to the trainer's whole
process group. SIGKILL can't go that way: the kernel keeps it from process 1 of a container when it comes from inside,
and Argo's emissary reads no more orders after a SIGTERM. So force is a shell that kills every other process it may.
"""

import time

import yaml
from kubernetes.stream import ws_client
from websocket import WebSocketException

from controllers.core import labels
from controllers.worlds.argo.api import PODS, KubeApi, UnavailableError
from controllers.worlds.argo.pods import MAIN, PodRecord

_EXEC_S = 20.0
_MOST_OUTPUT = 2**16
_ASK = ("/var/run/argo/argoexec", "kill", "15", "1")
_FORCE = f"printf '{labels.MOVED_MESSAGE}' > /dev/termination-log; kill -9 -1"


def ask_to_leave(api: KubeApi, pod: PodRecord) -> None:
    """Send SIGTERM to the trainer in ``pod``, so that it saves and exits.

    Raises:
        UnavailableError: it is not known to have got there.
    """
    execute(api, pod, _ASK)


def end_by_force(api: KubeApi, pod: PodRecord) -> None:
    """Kill the trainer in ``pod``, marked as ended for a move.

    Raises:
        UnavailableError: it is not known to have got there, or the image has no shell.
    """
    execute(api, pod, ("/bin/sh", "-c", _FORCE))


def execute(api: KubeApi, pod: PodRecord, command: tuple[str, ...]) -> None:
    """Run ``command`` in the pod's main container and wait for it to end. Output is read and dropped.

    Raises:
        NotAllowedNowError: this controller must not act now.
        UnavailableError: it could not be run, took more than 20 s, or failed.
    """
    api.check_may_write()
    query = [("container", MAIN), ("stdout", "true"), ("stderr", "true"), *(("command", word) for word in command)]
    url = ws_client.get_websocket_url(api.host + PODS.path(pod.namespace, pod.name, "exec"), query)
    try:
        socket = ws_client.WSClient(api.configuration, url, api.headers(), capture_all=False)
    except (WebSocketException, OSError, ValueError) as error:
        message = f"exec in pod {pod.name}: {str(error)[:300]}"
        raise UnavailableError(message) from error
    try:
        verdict = _verdict(socket)
    except (WebSocketException, OSError, ValueError, yaml.YAMLError) as error:
        message = f"exec in pod {pod.name}: the connection broke: {str(error)[:300]}"
        raise UnavailableError(message) from error
    finally:
        socket.close()
        # Closing does nothing where the other side closed first, and leaves the connection open.
        socket.sock.shutdown()
    if verdict:
        message = f"exec of {command[0]} in pod {pod.name}: {verdict[:300]}"
        raise UnavailableError(message)


def _verdict(socket: ws_client.WSClient) -> str:
    """Return what went wrong, nothing where all went well."""
    deadline = time.monotonic() + _EXEC_S
    seen = 0
    while socket.is_open():
        if time.monotonic() > deadline or seen > _MOST_OUTPUT:
            return "it does not end, or says too much"
        socket.update(timeout=1)
        for channel in (ws_client.STDOUT_CHANNEL, ws_client.STDERR_CHANNEL):
            seen += len(socket.read_channel(channel))
    answer = yaml.safe_load(socket.read_channel(ws_client.ERROR_CHANNEL)[:_MOST_OUTPUT] or "{}")
    status = answer.get("status") if isinstance(answer, dict) else None
    return "" if status == "Success" else str(answer)
