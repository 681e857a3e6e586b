"""The rules that the images' build file keeps."""

import re
import tomllib
from typing import Any

import pytest

from tests.images.containerfile import IMAGES, REPOSITORY, TEXT, Stage, instructions, lineage, stages

PROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
PACKAGES = {*PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"], "mlflow_hooks", "packages"}
KNOWN_HOSTS = {"docker.io", "download.pytorch.org"}


def installs() -> list[str]:
    return [run for stage in stages(TEXT).values() for run in stage.of("RUN") if "pip install" in run]


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_runs_as_a_numbered_user_other_than_root(image: str) -> None:
    users = [user for stage in lineage(image) for user in stage.of("USER")]
    assert users
    assert all(re.fullmatch(r"[1-9]\d*:[1-9]\d*", user) for user in users)


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_has_the_version_of_the_project(image: str) -> None:
    labels = " ".join(label for stage in lineage(image) for label in stage.of("LABEL"))
    assert f'org.opencontainers.image.version="{PROJECT["project"]["version"]}"' in labels
    assert f'org.opencontainers.image.licenses="{PROJECT["project"]["license"]}"' in labels


@pytest.mark.parametrize("image", IMAGES)
def test_nothing_is_installed_after_the_code(image: str) -> None:
    (code,) = [index for index, stage in enumerate(lineage(image)) if "--from=code" in " ".join(stage.of("COPY"))]
    assert code == len(lineage(image)) - 1
    assert not lineage(image)[-1].of("RUN")


@pytest.mark.parametrize("image", IMAGES)
def test_what_is_installed_does_not_depend_on_the_code(image: str) -> None:
    sources = {word for stage in lineage(image) for copy in stage.of("COPY") for word in copy.split()}
    assert not sources & {*PACKAGES, ".", "pyproject.toml"}


def test_every_package_of_the_project_is_copied() -> None:
    copied = {word for copy in stages(TEXT)["code"].of("COPY") for word in copy.split()}
    assert copied >= PACKAGES


def test_the_build_sees_nothing_but_what_it_copies() -> None:
    lines = (REPOSITORY / ".dockerignore").read_text().splitlines()
    admitted = {line.removeprefix("!") for line in lines if line.startswith("!")}
    copied = {
        word
        for stage in stages(TEXT).values()
        for copy in stage.of("COPY")
        if "--from" not in copy
        for word in copy.split()[:-1]
    }
    assert "*" in lines
    assert admitted == copied


def test_versions_come_from_the_constraints_or_nothing_is_resolved() -> None:
    assert len(installs()) == 3
    for run in installs():
        assert "--constraint /opt/hera-specon/constraints.txt" in run or "--no-deps" in run


def test_the_way_to_the_package_index_is_a_secret_of_each_install() -> None:
    for run in installs():
        assert "--mount=type=secret,id=pip,target=/etc/pip.conf" in run
        assert "--mount=type=secret,id=ca" in run


def test_no_argument_or_variable_takes_a_secret_or_an_index() -> None:
    names = [
        name
        for stage in [Stage("", "", instructions(TEXT))]
        for text in [*stage.of("ARG"), *stage.of("ENV")]
        for name in re.findall(r"(\w+)=", text)
    ]
    assert "HOME" in names
    assert not [name for name in names if re.search(r"TOKEN|PASSWORD|SECRET|INDEX|PROXY|CERT|NETRC", name)]


def test_nothing_is_added_from_the_network_past_the_package_index() -> None:
    used = {kind for kind, _ in instructions(TEXT)}
    assert "ADD" not in used
    assert not re.search(r"\b(curl|wget|git clone|apt-get|apk)\b", TEXT)


def test_no_host_is_named_but_those_that_everybody_uses() -> None:
    code = "\n".join(f"{kind} {text}" for kind, text in instructions(TEXT))
    hosts = re.findall(r"(?:https?://|BASE=)([\w.-]+)/", code)
    assert set(hosts) == KNOWN_HOSTS


def test_nothing_is_made_for_one_architecture() -> None:
    assert not re.search(r"amd64|arm64|x86_64|aarch64", TEXT)


def test_a_trainer_can_keep_checkpoints_in_a_store() -> None:
    (extras,) = [text for kind, text in instructions(TEXT) if kind == "ARG" and text.startswith("EXTRAS=")]
    assert "stores" in extras.removeprefix("EXTRAS=").split(",")


def test_threads_are_left_to_the_hooks() -> None:
    assert "OMP_NUM_THREADS=" not in TEXT
