"""What a pod finds out of where it runs. Its text is what the pod runs, by Python 3.8 or newer, with nothing installed.

It holds no pair of opening braces, which Argo would fill in. The last argument is the order, a JSON object: ``report``,
the file to write to; ``within_s``, seconds for all checks together; ``hold_s``, seconds to stay for a resize;
``mlflow``, whether to look for MLflow.
"""

from __future__ import annotations

import base64
import contextlib
import email.utils
import json
import os
import shutil
import socket
import ssl
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

WAIT_S = 8.0
MOST_TEXT = 200
MOST_REPORT = 4000
FINE = 200
SHARES = ("/sys/fs/cgroup/cpu.weight", "/sys/fs/cgroup/cpu/cpu.shares", "/sys/fs/cgroup/cpu,cpuacct/cpu.shares")


def why(error: BaseException) -> str:
    """Return what went wrong, in a few words."""
    told = getattr(error, "reason", None) or error
    return (str(told) or type(error).__name__)[:MOST_TEXT]


def login() -> dict[str, str]:
    """Return the header that MLflow's own client would send."""
    token, user = os.environ.get("MLFLOW_TRACKING_TOKEN"), os.environ.get("MLFLOW_TRACKING_USERNAME")
    if token:
        return {"Authorization": "Bearer " + token}
    if user:
        pair = user + ":" + os.environ.get("MLFLOW_TRACKING_PASSWORD", "")
        return {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}
    return {}


def call(url: str, data: bytes | None = None) -> tuple[int, str]:
    """Return the HTTP status of an address of MLflow's and the first words of its answer."""
    authority = os.environ.get("MLFLOW_TRACKING_SERVER_CERT_PATH") or os.environ.get("REQUESTS_CA_BUNDLE")
    context = ssl.create_default_context(cafile=authority or None)
    if os.environ.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() == "true":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    headers = {**login(), "Content-Type": "application/json"}
    request = urllib.request.Request(url, data, headers)  # noqa: S310 - the user's own MLflow
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S, context=context) as answer:  # noqa: S310 - as above
            return answer.status, answer.read(MOST_TEXT).decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(MOST_TEXT).decode("utf-8", "replace")


def ask_mlflow() -> dict[str, Any]:
    """Look for MLflow: its name, whether it answers, and whether it takes the login."""
    uri = os.environ.get("MLFLOW_TRACKING_URI", "").rstrip("/")
    parts = urllib.parse.urlsplit(uri)
    found: dict[str, Any] = {"host": (parts.hostname or "")[:MOST_TEXT]}
    try:
        socket.getaddrinfo(parts.hostname, parts.port or (443 if parts.scheme == "https" else 80))
    except (OSError, UnicodeError) as error:
        return {**found, "dns": why(error)}
    try:
        status, said = call(uri + "/version")
        found.update(status=status, version=said[:40] if status == FINE else "")
        status, said = call(uri + "/api/2.0/mlflow/experiments/search", b'{"max_results": 1}')
        found.update(login=status, said="" if status == FINE else said)
        if os.environ.get("SPECON_STATE_STORE") == "mlflow":
            found["artifacts"] = call(uri + "/api/2.0/mlflow-artifacts/artifacts")[0]
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what trials would meet
        found["error"] = why(error)
    return found


def try_folder(root: str) -> dict[str, Any]:
    """Write, rename, read and remove a file below a folder, as a checkpoint is."""
    own = Path(root, ".specon-doctor-" + uuid.uuid4().hex)
    own.mkdir()
    try:
        part, kept = own / "part", own / "kept"
        with part.open("wb") as file:
            file.write(b"specon")
            file.flush()
            os.fsync(file.fileno())
        part.replace(kept)
        whole = kept.read_bytes() == b"specon"
    finally:
        shutil.rmtree(own, ignore_errors=True)
    return {"whole": whole, "free": shutil.disk_usage(root).free}


def try_store(address: str) -> dict[str, Any]:
    """Write, read, list and remove an object, by the hooks that a trial has."""
    from mlflow_hooks.store_address import open_store  # noqa: PLC0415 - an image need not have it

    store, key = open_store(address), ".specon-probe/doctor-" + uuid.uuid4().hex
    conditional = store.conditional
    store.write(key, b"specon", None)
    whole = (store.read(key) or (b"",))[0] == b"specon"
    next(iter(store.list(".specon-probe/")), None)
    store.remove([key])
    return {"conditional": conditional, "whole": whole}


def ask_state() -> dict[str, Any]:
    """Look whether checkpoints can be kept where the sweep keeps them."""
    store, root = os.environ.get("SPECON_STATE_STORE", ""), os.environ.get("SPECON_STATE_ROOT", "")
    found: dict[str, Any] = {"where": (store or root)[:MOST_TEXT]}
    try:
        if store and store != "mlflow":
            found.update(try_store(store))
        elif root and not store:
            found.update(try_folder(root))
    except ImportError as error:
        found["hooks"] = why(error)
    except Exception as error:  # noqa: BLE001 - as above
        found["error"] = why(error)
    return found


def ask_clock() -> dict[str, Any]:
    """Return by how many seconds the API server's clock is ahead of ours."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    context = ssl.create_default_context()
    context.check_hostname = False  # nothing secret is sent, and only the clock is read
    context.verify_mode = ssl.CERT_NONE
    address = "https://" + ("[" + host + "]" if ":" in host else host) + ":" + port + "/version"
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    began = time.time()
    try:
        with direct.open(address, timeout=WAIT_S) as answer:
            date = answer.headers["Date"]
    except urllib.error.HTTPError as error:
        with error:
            date = error.headers["Date"]
    # It is told to the second, rounded down.
    there = email.utils.parsedate_to_datetime(date).timestamp() + 0.5
    return {"ahead": round(there - (began + time.time()) / 2, 1)}


def ask_self() -> dict[str, Any]:
    """Return who we are, and which usual folders cannot be written to."""
    closed = []
    for name in (os.getcwd(), tempfile.gettempdir()):  # noqa: PTH109 - as text
        try:
            with tempfile.TemporaryFile(dir=name):
                pass
        except OSError:
            closed.append(name[:MOST_TEXT])
    try:
        from importlib.metadata import version  # noqa: PLC0415 - an image need not have what is looked for

        hooks = version("hera-specon-hooks")
    except Exception:  # noqa: BLE001 - as above
        hooks = ""
    return {
        "user": os.getuid(),
        "group": os.getgid(),
        "closed": closed,
        "python": sys.version.split()[0],
        "hooks": hooks,
    }


def share() -> str:
    """Return our share of the CPU as the kernel has it, empty where it does not say."""
    for name in SHARES:
        with contextlib.suppress(OSError):
            return Path(name).read_text().strip()[:MOST_TEXT]
    return ""


def look_around(order: dict[str, Any]) -> dict[str, Any]:
    """Make all checks at once, and return what each found within the time that there is."""
    found: dict[str, Any] = {}

    def check(name: str, ask: Callable[[], dict[str, Any]]) -> None:
        try:
            found[name] = ask()
        except Exception as error:  # noqa: BLE001 - as above
            found[name] = {"error": why(error)}

    asked = {"state": ask_state, "clock": ask_clock, "self": ask_self}
    if order["mlflow"]:
        asked["mlflow"] = ask_mlflow
    threads = [threading.Thread(target=check, args=pair, daemon=True) for pair in asked.items()]
    for thread in threads:
        thread.start()
    until = time.monotonic() + order["within_s"]
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    late = {"error": f"no answer within {order['within_s']:g} s"}
    return {name: found.get(name, late) for name in asked}


def write(order: dict[str, Any], told: dict[str, Any]) -> None:
    """Write the report, which Kubernetes cuts at 4,096 bytes."""
    text = json.dumps(told)
    if len(text) > MOST_REPORT:
        text = json.dumps({"self": {"error": "the report is too long"}})
    Path(order["report"]).write_text(text)


def main() -> None:
    """Look around, report, and stay until our share of the CPU has changed."""
    order, before = json.loads(sys.argv[-1]), share()
    told = look_around(order)
    write(order, told)
    until = time.monotonic() + order["hold_s"]
    while time.monotonic() < until and share() == before:
        time.sleep(0.2)
    write(order, {**told, "share": [before, share()]})
    os._exit(0)  # a thread may hang in a file system that does not answer


if __name__ == "__main__":
    main()
