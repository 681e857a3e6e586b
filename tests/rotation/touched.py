"""Which tests a change touches, so that they run with it and not only when their slice is due.

Three kinds, the nearest first: tests whose own files, helpers or fixtures changed; tests that import a changed module,
or whose folder is the changed one's; and tests that start what changed as a program, which no import tells
(``PROGRAMS``).
"""

import ast
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

OWN, NEAR, STARTS = range(3)
"""How near a change is to a test."""

PROGRAMS: Final[Mapping[str, tuple[str, ...]]] = {
    "controllers/cluster/": ("tests/cluster/", "tests/contract/"),
    "controllers/driving/": ("tests/integration/", "tests/cluster/test_sweep_end_to_end.py"),
    "controllers/local_run/": ("tests/integration/", "tests/cases/", "tests/local_faults/"),
    "controllers/tracking/": ("tests/integration/", "tests/cases/", "tests/cluster/test_faults_services.py"),
    "controllers/worlds/argo/": ("tests/contract/", "tests/cluster/"),
    "controllers/worlds/local/": ("tests/contract/", "tests/integration/", "tests/cases/", "tests/local_faults/"),
    "hera_specon/answer/": ("tests/cluster/test_pipeline_in_a_cluster.py", "tests/integration/test_pipeline.py"),
    "hera_specon/cluster/": ("tests/cluster/",),
    "hera_specon/live/": ("tests/integration/test_live_page.py", "tests/cluster/test_live_page_in_a_cluster.py"),
    "hera_specon/submission/": ("tests/cluster/test_submit.py",),
    "manifests/": (
        "tests/cluster/test_helm.py",
        "tests/cluster/test_permissions.py",
        "tests/cluster/test_cluster_wide.py",
    ),
    "mlflow_hooks/": ("tests/mlflow_hooks/", "tests/workflows/"),
    "workflows/": ("tests/workflows/", "tests/docs/test_tutorial.py"),
}
"""By the folder that changes: the tests that start it as a program."""


def touched(root: Path, changed: Iterable[str], tests: Iterable[str]) -> dict[str, int]:
    """Return of these files of tests those that the changed files touch, each with how near the change is."""
    files = frozenset(changed)
    near = {test: _nearness(root, files, test) for test in tests}
    return {test: one for test, one in near.items() if one is not None}


def _nearness(root: Path, changed: frozenset[str], test: str) -> int | None:
    helpers = _helpers(root, test)
    folder = f"{PurePosixPath(test).parent}/"
    if helpers & changed or any(_is_data_of(one, folder) for one in changed):
        return OWN
    mirrored = folder.removeprefix("tests/")
    imported = frozenset().union(*(_imports(root, helper) for helper in helpers))
    if imported & changed or any(one.startswith(mirrored) for one in changed):
        return NEAR
    return STARTS if any(_starts(test, one) for one in changed) else None


def _starts(test: str, changed: str) -> bool:
    return any(changed.startswith(folder) and test.startswith(tests) for folder, tests in PROGRAMS.items())


def _is_data_of(changed: str, folder: str) -> bool:
    return changed.startswith(folder) and not changed.endswith(".py")


def _helpers(root: Path, test: str) -> frozenset[str]:
    """Return the file, what it imports of the tests, and what that imports, with the fixtures of its folders."""
    found: set[str] = set()
    folders = list(PurePosixPath(test).parents)[:-2]
    left = [test, *(conftest for folder in folders if (root / (conftest := f"{folder}/conftest.py")).exists())]
    while left:
        file = left.pop()
        if file not in found:
            found.add(file)
            left.extend(one for one in _imports(root, file) if one.startswith("tests/"))
    return frozenset(found)


@cache
def _imports(root: Path, file: str) -> frozenset[str]:
    """Return the files of the repository that a file imports, anywhere in it."""
    tree = ast.parse((root / file).read_text(encoding="utf-8"))
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(found for name in names if (found := _file_of(root, name)) is not None)


def _file_of(root: Path, module: str) -> str | None:
    path = module.replace(".", "/")
    return next((one for one in (f"{path}.py", f"{path}/__init__.py") if (root / one).is_file()), None)
