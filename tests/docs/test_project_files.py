"""The files that a forge and an editor read: they parse, and what they name is there."""

import configparser
import json
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.images.containerfile import IMAGES, TEXT, stages

REPOSITORY = Path(__file__).parents[2]
GITHUB = REPOSITORY / ".github"
PYPROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
ADDRESS: str = PYPROJECT["project"]["urls"]["Homepage"]
TARGETS = set(re.findall(r"^([a-z-]+):(?!=)", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
WITH_ADDRESSES = (
    *("pyproject.toml", "packages/hooks/pyproject.toml", "CITATION.cff", "SECURITY.md"),
    *(f".github/ISSUE_TEMPLATE/{name}" for name in ("config.yml", "proposal.yml")),
)
PLACES = (".ci/", ".github/", "manifests/")
"""Where files lie that a workflow names."""
PAGES = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md"), *GITHUB.glob("*.md")]


def of_yaml(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def steps(workflow: Path) -> list[dict[str, Any]]:
    return [step for job in of_yaml(workflow)["jobs"].values() for step in job.get("steps", ())]


def commands(text: str) -> list[list[str]]:
    return [shlex.split(line, comments=True) for line in text.splitlines() if line.strip().startswith("make ")]


def unknown_targets(text: str) -> list[str]:
    words = [word for command in commands(text) for word in command[1:] if "=" not in word]
    return [word for word in words if word not in TARGETS]


def test_the_files_are_found() -> None:
    assert {path.stem for path in WORKFLOWS} == {"ci", "images", "release"}
    assert {path.stem for path in FORMS} == {"fault", "proposal"}
    assert {"check", "docs", "install", "release-check"} <= TARGETS


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_what_make_and_ci_have(workflow: Path) -> None:
    said = [step["run"] for step in steps(workflow) if "run" in step]
    assert any("make " in one for one in said) or workflow.stem == "images"
    assert [target for one in said for target in unknown_targets(one)] == []
    given = [text for step in steps(workflow) for text in step.get("with", {}).values() if isinstance(text, str)]
    called = [job["uses"].removeprefix("./") for job in of_yaml(workflow)["jobs"].values() if "uses" in job]
    named = {word for one in (*said, *given, *called) for word in one.split() if word.startswith(PLACES)}
    assert [name for name in named if not (REPOSITORY / name).is_file()] == []


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_do_only_what_it_says_and_ends(workflow: Path) -> None:
    found = of_yaml(workflow)
    assert found["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] <= 150 for job in found["jobs"].values() if "uses" not in job)
    assert all("@" in step["uses"] for step in steps(workflow) if "uses" in step)
    # What others can choose, such as the name of a branch, is no part of a command.
    assert [step["run"] for step in steps(workflow) if "${{" in step.get("run", "")] == []


def test_ci_runs_the_command_that_decides_whether_a_change_lands() -> None:
    assert any(".ci/run" in step.get("run", "") for step in steps(GITHUB / "workflows" / "ci.yml"))


def test_a_release_is_checked_before_it_is_published() -> None:
    jobs = of_yaml(GITHUB / "workflows" / "release.yml")["jobs"]
    assert {"make release-check TAGGED=yes"} <= {step.get("run") for step in jobs["files"]["steps"]}
    assert jobs["images"]["needs"] == "files"
    assert set(jobs["publish"]["needs"]) == {"files", "images"}
    assert [name for name, job in jobs.items() if "id-token" in job.get("permissions", {})] == ["images", "publish"]


def test_images_and_chart_go_to_the_registry_with_signatures_and_by_nothing_that_can_be_moved() -> None:
    jobs = of_yaml(GITHUB / "workflows" / "images.yml")["jobs"]
    least = {"contents": "read", "packages": "write", "id-token": "write"}
    assert {name: job["permissions"] for name, job in jobs.items()} == dict.fromkeys(("images", "chart"), least)
    assert of_yaml(GITHUB / "workflows" / "release.yml")["jobs"]["images"]["permissions"] == least
    used = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    assert [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", one)] == []
    for job in jobs.values():
        assert any("cosign sign" in step.get("run", "") and "@" in step["run"] for step in job["steps"])


def test_both_images_are_built_for_both_architectures_and_say_what_is_in_them() -> None:
    job = of_yaml(GITHUB / "workflows" / "images.yml")["jobs"]["images"]
    assert set(job["strategy"]["matrix"]["image"]) == set(IMAGES) <= set(stages(TEXT))
    (build,) = [step["with"] for step in job["steps"] if "build-push" in step.get("uses", "")]
    assert build["platforms"] == "linux/amd64,linux/arm64"
    assert build["target"] == "${{ matrix.image }}"
    assert (build["push"], build["sbom"], build["provenance"]) == (True, True, "mode=max")


def test_the_chart_that_is_pushed_names_the_digest_of_its_image(tmp_path: Path) -> None:
    steps_of_chart = of_yaml(GITHUB / "workflows" / "images.yml")["jobs"]["chart"]["steps"]
    (script,) = [step["run"] for step in steps_of_chart if "imagetools" in step.get("run", "")]
    digest = "sha256:" + "0f" * 32
    (tmp_path / "manifests").mkdir()
    shutil.copy(REPOSITORY / "manifests" / "values.yaml", tmp_path / "manifests")
    asked = script.splitlines()
    asked[0] = f"digest={digest}"  # in place of the registry's answer
    subprocess.run(["bash", "-eo", "pipefail", "-c", "\n".join(asked)], cwd=tmp_path, check=True)  # noqa: S607
    written = of_yaml(tmp_path / "manifests" / "values.yaml")
    given = of_yaml(REPOSITORY / "manifests" / "values.yaml")
    assert written == {**given, "image": {**given["image"], "digest": digest}}


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_a_form_for_issues_asks_for_what_is_needed(form: Path) -> None:
    found = of_yaml(form)
    assert {"name", "description", "body"} <= found.keys()
    asked = [part for part in found["body"] if part["type"] != "markdown"]
    assert all(part["attributes"]["label"] for part in asked)
    assert len({part["id"] for part in asked}) == len(asked)
    assert any(part.get("validations", {}).get("required") for part in asked)


@pytest.mark.parametrize("name", WITH_ADDRESSES)
def test_every_file_names_the_project_by_one_address(name: str) -> None:
    text = (REPOSITORY / name).read_text(encoding="utf-8")
    named = re.findall(r"https://github\.com/[\w.-]+/hera-specon[^\s)\"]*", text)
    assert named
    for address in named:
        assert address == ADDRESS or address.startswith(f"{ADDRESS}/")
        _, is_file, path = address.partition("/blob/main/")
        assert not is_file or (REPOSITORY / path).is_file()


def test_dependabot_looks_at_folders_that_are_there() -> None:
    updates = of_yaml(GITHUB / "dependabot.yml")["updates"]
    assert {update["package-ecosystem"] for update in updates} == {"pip", "github-actions"}
    folders = [folder for update in updates for folder in update.get("directories", [update.get("directory")])]
    assert all((REPOSITORY / folder.strip("/")).is_dir() for folder in folders)


def test_the_citation_is_of_this_project() -> None:
    found = of_yaml(REPOSITORY / "CITATION.cff")
    assert {"cff-version", "message", "authors"} <= found.keys()
    project = PYPROJECT["project"]
    assert (found["title"], found["repository-code"]) == (project["name"], ADDRESS)
    assert (found["license"], found["keywords"]) == (project["license"], project["keywords"])


def test_a_container_to_develop_in_has_our_python_and_is_set_up_by_make() -> None:
    found = json.loads((REPOSITORY / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    assert found["image"].endswith(f":{PYPROJECT['tool']['mypy']['python_version']}")
    assert commands(found["postCreateCommand"])
    assert unknown_targets(found["postCreateCommand"]) == []


def test_editors_and_ruff_break_lines_alike() -> None:
    found = configparser.ConfigParser()
    found.read_string("[top]\n" + (REPOSITORY / ".editorconfig").read_text(encoding="utf-8"))
    assert found["*.{py,pyi}"]["max_line_length"] == str(PYPROJECT["tool"]["ruff"]["line-length"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_a_page_names_no_target_of_make_that_is_not_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = [*re.findall(r"`make ([a-z-]+)", text), *re.findall(r"^ *make ([a-z-]+)", text, re.MULTILINE)]
    assert [target for target in named if target not in TARGETS | {"the"}] == []  # "make the ..." is no command


def test_a_target_that_is_not_there_is_found() -> None:
    assert unknown_targets("make check\nmake lunch TABLE=4  # for all") == ["lunch"]


def test_scope_says_no_in_one_screen_or_two() -> None:
    assert len((REPOSITORY / "SCOPE.md").read_text(encoding="utf-8").splitlines()) < 80
    assert "](SCOPE.md)" in (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
