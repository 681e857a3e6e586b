"""The version of the project stands in many places, and one command changes them all."""

from pathlib import Path, PurePosixPath

import pytest

from tests.release.checks import citation_problems, version_problems
from tests.release.repository import ROOT, git
from tests.release.versions import places, project_version, set_version

KINDS = (
    "pyproject.toml",
    "packages/hooks/pyproject.toml",
    "CITATION.cff",
    "manifests/Chart.yaml",
    "manifests/images/Containerfile",
    "manifests/base/deployment.yaml",
    "manifests/components/mlflow/deployment.yaml",
    "workflows/demo.py",
    "workflows/demo.yaml",
    "docs/how-to/build-the-images.md",
    "tests/cluster/sweeps/plain_sweep.py",
    "benchmarks/scale/manifest.py",
)
"""A file of each kind that names the version."""
OLD = "1.2.3"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    tags = "".join(f"FROM hera-specon/{image}:{{version}}-cuda\n" for image in ("controller", "trainer"))
    texts = {
        "pyproject.toml": 'version = "{version}"\ndependencies = ["hera-specon-hooks=={version}", "mlx==1.2.3"]\n',
        "other.toml": 'version = "1.2.3"\n',
        "CITATION.cff": "cff-version: 1.2.3\nversion: {version}\n",
        "page.md": tags + "image registry.example.org/ml/trainer:{version}, other/worker:1.2.3\r\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text.replace("{version}", OLD).encode())
    (tmp_path / "CHANGELOG.md").write_text(f"hera-specon/trainer:{OLD}\n", encoding="utf-8")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG /trainer:" + OLD.encode())
    (tmp_path / "link.md").symlink_to("page.md")
    return tmp_path


def test_every_place_names_the_version_of_the_project() -> None:
    assert list(version_problems(ROOT, project_version(ROOT))) == []


@pytest.mark.parametrize("file", KINDS)
def test_the_places_of_each_kind_are_found(file: str) -> None:
    assert PurePosixPath(file) in {place.file for place in places(ROOT)}


def test_the_citation_names_the_day_of_the_changelog() -> None:
    assert list(citation_problems(ROOT, project_version(ROOT))) == []


def test_a_new_version_is_written_everywhere_and_nothing_else_is_changed(repository: Path) -> None:
    before = {path.name: path.read_bytes() for path in repository.iterdir() if path.is_file()}
    assert sorted(map(str, set_version(repository, "1.3.0rc1"))) == ["CITATION.cff", "page.md", "pyproject.toml"]
    assert {place.version for place in places(repository)} == {"1.3.0rc1"}
    assert sum(1 for _ in places(repository)) == 6
    assert set(map(str, set_version(repository, OLD))) == {"CITATION.cff", "page.md", "pyproject.toml"}
    assert {path.name: path.read_bytes() for path in repository.iterdir() if path.is_file()} == before


def test_a_place_that_was_forgotten_is_named_with_its_line(repository: Path) -> None:
    set_version(repository, "1.3.0")
    (repository / "forgotten.yaml").write_text(f"a: 1\nimage: hera-specon/controller:{OLD}\n", encoding="utf-8")
    told, way_out = version_problems(repository, "1.3.0")
    assert told == f"forgotten.yaml:2: {OLD}"
    assert way_out.endswith("set-version 1.3.0")


@pytest.mark.parametrize("version", ["1.2", "v1.2.3", "1.2.3-rc1", "one"])
def test_what_is_no_version_is_refused(repository: Path, version: str) -> None:
    with pytest.raises(ValueError, match="is no version"):
        set_version(repository, version)
