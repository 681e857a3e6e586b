"""An image archive made here holds what it is given, and is the same each time."""

import json
import os
import tarfile
from pathlib import Path

import pytest

from tests.cluster.images.archives import TRAINER, archive, images_folder, outdated
from tests.cluster.small_images import write_archive


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HERA_SPECON_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "program"
    path.write_text("#!/bin/sh\n")
    return path


def test_an_archive_names_its_image_and_what_it_starts(program: Path) -> None:
    with tarfile.open(write_archive("example.org/it:1", {"bin/it": program}, ("/bin/it",))) as archive:
        parts = {member.name: archive.extractfile(member) for member in archive}
        manifest, config = (json.load(parts[name]) for name in ("manifest.json", "config.json"))  # type: ignore[arg-type]
    assert manifest[0]["RepoTags"] == ["example.org/it:1"]
    assert config["config"]["Entrypoint"] == ["/bin/it"]


def test_a_layer_holds_programs_that_may_be_run_and_links_to_them(program: Path) -> None:
    path = write_archive("example.org/it:1", {"bin/it": program}, ("/bin/it",), {"that": "it", "it": "it"})
    with tarfile.open(path) as archive, tarfile.open(fileobj=archive.extractfile("layer.tar")) as layer:
        assert layer.getmember("bin/it").mode == 0o755
        assert layer.getmember("bin/it").isfile()
        assert layer.getmember("bin/that").linkname == "it"


def test_the_same_files_make_the_same_archive(program: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = write_archive("example.org/it:1", {"bin/it": program}, ("/bin/it",))
    monkeypatch.setenv("HERA_SPECON_CACHE", str(tmp_path / "elsewhere"))
    again = write_archive("example.org/it:1", {"bin/it": program}, ("/bin/it",))
    assert first != again
    assert first.read_bytes() == again.read_bytes()


def test_other_files_make_another_archive_in_the_place_of_the_first(program: Path) -> None:
    first = write_archive("example.org/it:1", {"bin/it": program}, ("/bin/it",))
    program.write_text("#!/bin/sh\ntrue\n")
    second = write_archive("example.org/it:1", {"bin/it": program}, ("/bin/it",))
    assert second != first
    assert [path.exists() for path in (first, second)] == [False, True]


@pytest.mark.usefixtures("program")
def test_all_but_the_newest_other_archive_of_an_image_and_what_nobody_finished_go() -> None:
    images_folder().mkdir(parents=True)
    names = ("trainer-old.tar", "trainer-newest.tar", "trainer-half.unfinished", "controller-other.tar")
    for age, name in enumerate(reversed(names)):
        (images_folder() / name).touch()
        os.utime(images_folder() / name, (1e9 - age, 1e9 - age))
    os.utime(images_folder() / "trainer-newest.tar", (2e9, 2e9))
    archive(TRAINER).touch()
    assert {path.name for path in outdated(TRAINER)} == {"trainer-old.tar", "trainer-half.unfinished"}
