import os
import subprocess
import sys
from pathlib import Path

import pytest

from controllers.core.own_program import own_command, own_environment


def test_a_process_of_ours_finds_what_pythonpath_has_installed_but_no_module_of_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, installed = tmp_path / "project", tmp_path / "installed"
    (installed / "package-1.0.dist-info").mkdir(parents=True)
    (installed / "needed.py").write_text("def main():\n    import controllers, json\n    print(controllers, json)\n")
    project.mkdir()
    for name in ("controllers", "json", "only_the_users"):
        (project / f"{name}.py").write_text("raise RuntimeError('a module of the user')\n")
    monkeypatch.chdir(project)
    monkeypatch.setattr(sys, "path", ["", str(project), "../installed", *sys.path])
    environment = own_environment({**os.environ, "PYTHONPATH": os.pathsep.join([str(project), str(installed)])})
    done = subprocess.run(own_command("needed"), env=environment, capture_output=True, text=True, check=True)
    assert str(project) not in done.stdout
    hidden = subprocess.run(own_command("only_the_users"), env=environment, capture_output=True, text=True, check=False)
    assert "No module named 'only_the_users'" in hidden.stderr
