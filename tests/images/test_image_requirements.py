"""What an image installs before the code is there."""

import subprocess
import sys
import tomllib

from tests.images.containerfile import REPOSITORY

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
OF_OTHERS = [line for line in PROJECT["dependencies"] if "hera-specon" not in line]


def requirements(*arguments: str) -> subprocess.CompletedProcess[str]:
    script = REPOSITORY / "manifests/images/requirements.py"
    return subprocess.run(
        [sys.executable, script, *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )


def test_the_controller_needs_what_the_project_depends_on() -> None:
    assert requirements().stdout.splitlines() == OF_OTHERS


def test_a_trainer_needs_its_extras_too() -> None:
    extras = PROJECT["optional-dependencies"]
    expected = [*OF_OTHERS, *extras["pytorch"], *extras["tensorflow"]]
    assert requirements("pytorch,tensorflow").stdout.splitlines() == expected


def test_an_unknown_extra_is_named_with_those_there_are() -> None:
    done = requirements("pytorhc")
    assert done.returncode
    assert "'pytorhc'" in done.stderr
    assert "tensorflow" in done.stderr
