"""This machine's way to its package index, for a build to use and not to keep."""

import configparser
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

_KEPT: Final = ("index-url", "extra-index-url", "trusted-host", "timeout")
_CERTIFICATES_INSIDE: Final = "/run/secrets/ca"
_CERTIFICATES: Final = "/etc/ssl/certs/ca-certificates.crt"


def setting(name: str) -> str | None:
    """Return a setting of pip on this machine, from its files or its environment."""
    in_environment = os.environ.get(f"PIP_{name.replace('-', '_').upper()}")
    command = [sys.executable, "-m", "pip", "config", "get", f"global.{name}"]
    in_files = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return in_environment or in_files or None


def write_secrets(folder: Path) -> dict[str, Path]:
    """Write what pip needs during a build into ``folder``, and return the secrets' files by their ids."""
    certificates = Path(setting("cert") or os.environ.get("SSL_CERT_FILE") or _CERTIFICATES)
    values = {name: value for name in _KEPT if (value := setting(name))}
    secrets = {"ca": certificates} if certificates.is_file() else {}
    if secrets:
        values["cert"] = _CERTIFICATES_INSIDE
    config = configparser.RawConfigParser()
    config["global"] = values
    secrets["pip"] = folder / "pip.conf"
    with secrets["pip"].open("w") as opened:
        config.write(opened)
    return secrets
