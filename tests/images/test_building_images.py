"""Building the images for a test cluster, up to where buildah begins."""

import configparser
import os
from pathlib import Path

import pytest

from tests.cluster.commands import ClusterError
from tests.cluster.images.archives import CONTROLLER, IMAGES, archive, digest, images_folder, outdated
from tests.cluster.images.build import build_images
from tests.cluster.images.package_index import write_secrets
from tests.images.containerfile import REPOSITORY


@pytest.fixture
def without_programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HERA_SPECON_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


@pytest.mark.usefixtures("without_programs")
def test_archives_that_are_there_need_no_program() -> None:
    images_folder().mkdir()
    for image in IMAGES:
        archive(image).touch()
    told: list[str] = []
    assert build_images(tell=told.append) == {image: archive(image) for image in IMAGES}
    assert not told


@pytest.mark.usefixtures("without_programs")
def test_missing_debian_packages_are_named() -> None:
    with pytest.raises(ClusterError, match="apt-get install buildah debootstrap util-linux"):
        build_images()


@pytest.mark.usefixtures("without_programs")
def test_of_archives_of_other_sources_the_newest_is_kept() -> None:
    images_folder().mkdir()
    archive(CONTROLLER).touch()
    older, newer = (images_folder() / f"{CONTROLLER.stage}-{digit * 12}.tar" for digit in "12")
    for age, other in enumerate((newer, older)):
        other.touch()
        os.utime(other, (1000 - age, 1000 - age))
    assert outdated(CONTROLLER) == [older]


def test_a_digest_tells_contents_and_names_apart() -> None:
    first, second = REPOSITORY / "LICENSE", REPOSITORY / "README.md"
    assert digest([first, second]) == digest([second, first])
    assert len({digest([first]), digest([second]), digest([first, second])}) == 3


def test_a_build_is_handed_this_machines_package_index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    certificates = tmp_path / "ca.pem"
    certificates.touch()
    monkeypatch.setenv("PIP_INDEX_URL", "https://user:50%25@index.example/simple")
    monkeypatch.setenv("PIP_CERT", str(certificates))
    secrets = write_secrets(tmp_path)
    config = configparser.RawConfigParser()
    config.read(secrets["pip"])
    assert config["global"]["index-url"] == "https://user:50%25@index.example/simple"
    assert config["global"]["cert"] == "/run/secrets/ca"
    assert secrets["ca"] == certificates
