"""The bill of materials of each image, as CycloneDX: the packages that it installs, with their versions."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from tests.release.distributions import call_uv
from tests.release.repository import ROOT

EXTRAS: Final = {"controller": "", "trainer": "pytorch,stores"}
"""What each image installs beyond the project's own dependencies, as manifests/images/Containerfile has it."""
_TOOL: Final = "cyclonedx-bom==7.5.0"


def write_sbom(image: str, file: Path) -> int:
    """Write to ``file`` what ``image`` installs, and return how many packages that are.

    The versions are those of constraints.txt. Packages are resolved for the platform that this runs on, as the images
    are built for Linux.

    Raises:
        BuildError: the packages cannot be resolved, or the tool cannot be had.
    """
    words = ["cyclonedx-py", "requirements", "--pyproject", str(ROOT / "pyproject.toml"), "--output-reproducible"]
    call_uv("tool", "run", "--from", _TOOL, *words, "--output-file", str(file), "-", given=_pinned(image))
    written: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return len(written.get("components", []))


def _pinned(image: str) -> str:
    """Return a requirement with its version for each package of an image, one a line."""
    script = [sys.executable, str(ROOT / "manifests" / "images" / "requirements.py"), EXTRAS[image]]
    asked = subprocess.run(script, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=True).stdout
    quietly = ("--quiet", "--no-header", "--no-annotate")
    as_in_images = ("--python-platform", "linux", "--python-version", "3.11", "--constraint", "constraints.txt")
    return call_uv("pip", "compile", *quietly, *as_in_images, "-", given=asked)
