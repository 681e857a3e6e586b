"""Versions by name: how they are written, where their programs lie, and the page of what came of them."""

import datetime as dt
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cluster import building, other_modules, version_matrix
from tests.cluster.commands import ClusterError
from tests.cluster.version_matrix import NOT_RUN, PAGE, WANTED, MatrixRow, lacks, main, result_of, with_rows
from tests.cluster.versions import CHOSEN_BY, PINNED, Versions

OLD = Versions("v1.33.13", "v3.6.18")
MARKED = "# Versions\n\n<!-- table: matrix -->\n\nafter\n"


@pytest.mark.parametrize("written", ["1.33.13+3.6.18", "v1.33.13+v3.6.18"])
def test_a_combination_is_read_with_and_without_the_letter(written: str) -> None:
    assert Versions.read(written) == OLD
    assert str(OLD) == "1.33.13+3.6.18"


@pytest.mark.parametrize("written", ["1.33+3.6", "1.33.13", "2.0.0+3.6.18", "1.33.13+5.0.0", "latest+latest", ""])
def test_what_names_no_two_exact_versions_is_refused_with_how_it_is_written(written: str) -> None:
    with pytest.raises(ClusterError, match=r"is not like 1\.33\.13\+3\.6\.18"):
        Versions.read(written)


def test_argo_3_and_4_are_modules_of_their_own() -> None:
    assert OLD.argo_module == "github.com/argoproj/argo-workflows/v3"
    assert PINNED.argo_module == "github.com/argoproj/argo-workflows/v4"


def test_each_version_has_programs_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "KUBERNETES", OLD.kubernetes)
    monkeypatch.setattr(building, "ARGO", OLD.argo)
    assert building.binary("kubernetes").name == "kubernetes-v1.33.13"
    assert building.binary("argoexec").name == "argoexec-v3.6.18"
    assert building.binary("pause").name == "pause"
    # Else a build of one version would make those of the others look as if they were built from something else.
    assert building._stamp(building.KUBERNETES_PROGRAM).name == "kubernetes-v1.33.13.built-from"


def test_the_module_of_another_kubernetes_replaces_all_that_it_staged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = tmp_path / "go.mod"
    given.write_text(
        "module k8s.io/kubernetes\n\ngo 1.24.0\n\nreplace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n)\n"
    )
    monkeypatch.setattr(other_modules, "published", lambda *_: {"GoMod": str(given)})
    made = other_modules._kubernetes_go_mod("v1.33.13")
    assert "go 1.24.0\n" in made
    assert "replace k8s.io/api => k8s.io/api v0.33.13\n" in made
    assert "replace k8s.io/kubectl => k8s.io/kubectl v0.33.13\n" in made
    assert "require k8s.io/kubernetes v1.33.13\n" in made


def test_published_sources_are_copied_and_made_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HERA_SPECON_CACHE", str(tmp_path / "cache"))
    signals = tmp_path / "argo/workflow/executor/os-specific"
    signals.mkdir(parents=True)
    (signals / "signal_darwin.go").write_text("package os_specific\n")
    whole = other_modules.argo_sources(tmp_path / "argo", "v3.6.18")
    assert (whole / "workflow/executor/os-specific/signal_linux.go").read_text() == "package os_specific\n"
    assert (whole / "ui/dist/app/index.html").exists()


def test_sources_that_nobody_knows_are_refused_by_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HERA_SPECON_CACHE", str(tmp_path / "cache"))
    (tmp_path / "argo").mkdir()
    with pytest.raises(ClusterError, match=r"Argo v5\.0\.0 has its signals elsewhere"):
        other_modules.argo_sources(tmp_path / "argo", "v5.0.0")


def test_the_page_has_a_row_for_all_that_are_wanted_and_says_what_was_not_run() -> None:
    page = with_rows(MARKED, {})
    assert page.startswith("# Versions\n\n<!-- table: matrix -->\n\n| Kubernetes |")
    assert page.endswith("|\n\nafter\n")
    assert page.count(NOT_RUN) == len(WANTED)


def test_a_new_result_takes_the_place_of_the_old_one_and_leaves_the_others() -> None:
    first = with_rows(MARKED, {OLD: MatrixRow(OLD, "40 passed", "2026-11-27")})
    assert with_rows(first, {}) == first
    other = Versions("v1.34.9", "v3.7.1")
    second = with_rows(first, {other: MatrixRow(other, "1 failed, 39 passed: `a`", "2026-11-28")})
    assert "| 1.33.13 | 3.6.18 | 40 passed | 2026-11-27 |" in second
    assert second.index("| 1.34.4 |") < second.index("| 1.34.9 | 3.7.1 | 1 failed, 39 passed: `a` | 2026-11-28 |")
    third = with_rows(second, {OLD: MatrixRow(OLD, "41 passed", "2026-11-29")})
    assert "40 passed" not in third


def test_a_page_without_the_mark_is_not_overwritten() -> None:
    with pytest.raises(ClusterError, match="has no line"):
        with_rows("# Versions\n", {})


def test_a_row_says_what_its_versions_cannot_do() -> None:
    assert "pod-level resources or resource claims" in lacks(OLD)
    assert "each retry waits" in lacks(OLD)
    assert lacks(Versions("v1.37.2", "v4.0.7")) == "nothing that we know of"


@pytest.mark.parametrize(
    ("output", "exit_code", "result"),
    [
        ("==== 40 passed, 2 skipped, 90 deselected in 812.3s (0:13:32) ====", 0, "40 passed, 2 skipped, 90 deselected"),
        (
            "FAILED tests/contract/test_a.py::test_b[argo] - assert\n== 1 failed, 39 passed in 9.1s ==",
            1,
            "1 failed, 39 passed: `test_b[argo]`",
        ),
        ("no memory", 137, "ended with 137 before any test"),
    ],
)
def test_a_result_is_what_pytest_counts_and_the_names_of_what_failed(output: str, exit_code: int, result: str) -> None:
    assert result_of(output, exit_code) == result


def test_each_combination_is_built_and_tested_with_its_versions_and_written_down_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HERA_SPECON_CACHE", str(tmp_path))
    page = tmp_path / "versions.md"
    page.write_text(MARKED)
    monkeypatch.setattr(version_matrix, "PAGE", page)
    calls: list[tuple[str, bool]] = []

    def run(command: Sequence[str], env: dict[str, str], stdout: object = None, **_: object) -> SimpleNamespace:
        calls.append((env[CHOSEN_BY], "build" in command))
        if stdout is not None:
            stdout.write("== 3 passed in 1.0s ==\n")  # type: ignore[attr-defined] # a file
        return SimpleNamespace(returncode=int(env[CHOSEN_BY] == "1.34.4+3.7.18" and "build" in command))

    monkeypatch.setattr(subprocess, "run", run)
    assert main(["1.33.13+3.6.18 1.34.4+3.7.18"]) == 1
    assert calls == [("1.33.13+3.6.18", True), ("1.33.13+3.6.18", False), ("1.34.4+3.7.18", True)]
    today = dt.datetime.now(dt.UTC).date().isoformat()
    assert f"| 1.33.13 | 3.6.18 | 3 passed | {today} |" in page.read_text()
    assert f"| 1.34.4 | 3.7.18 | does not build | {today} |" in page.read_text()
    assert main(["1.33.13+3.6.18"]) == 0
    assert main(["1.33.13+3.6.18 tests/cluster/test_submit.py"]) == 0
    assert f"| 3 passed, of `test_submit` alone | {today} |" in page.read_text()


def test_the_page_of_the_documentation_is_as_the_program_writes_it() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_rows(text, {}) == text, "run: python -m tests.cluster.version_matrix"
