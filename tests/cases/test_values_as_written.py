"""Values of a command line reach the program as they were written, on this machine and in a pod."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from controllers.core.model import Value
from controllers.core.parameters import point_annotations
from controllers.search.spec import Options, read_search
from controllers.worlds.local.word_scripts import chosen_words
from controllers.worlds.local.workflow import read_workflow
from hera_specon import minimize
from hera_specon.assignments import read_assignments
from hera_specon.workflow_file import load_workflow
from hera_specon.written_sweep import BEFOREHAND, WrittenSweep
from mlflow_hooks.contract import ENV_PARAMS

SHOW: Final = "import json, sys; print(json.dumps(sys.argv[1:]))"
_PLACE: Final = re.compile(r"\$\((\w+)\)")
TEXTS: Final = (
    *("1.10,1.20,3.10", "3.1,3.10", "1,1.0", "1000,2e3", "1e-3,1e-2", "1E-3,5", "1e10,0x1f,1_000,12:30,no,null,~"),
    *("007,7", "+1,-1", "-0,1", "-0.0,2", ".5,-.25,1.", "0.10,auto", "True,False", "true,False", "TRUE,none,None"),
    *("nan,inf,1e400", "1\u0662,\uff11", f"{'1' * 60},2", "0.12345678901234567890123,1", "a b,it", "a=b,c==", "1,000"),
    *("x,*", "$HOME,#", "1;2,3|4", "\u00e9,\U0001f600"),
)


def manifest(typed: str, search: str, command: tuple[str, ...], folder: Path) -> dict[str, Any]:
    """Return the workflow of a sweep over ``typed``, read from the file that defines it."""
    found = read_assignments([f"x={typed}"])
    sweep = WrittenSweep(
        command=(sys.executable, "-c", SHOW, *command),
        **{name: getattr(found, name) for name in ("space", "fixed", "texts")},
        objective=minimize("loss"),
        search=search,
        trials=None if search == "grid" else 4,
    )
    (folder / "sweep.py").write_text(sweep.source(), encoding="utf-8")
    return dict(load_workflow(folder / "sweep.py").manifest)


def trials(workflow: dict[str, Any]) -> list[tuple[list[str], dict[str, str]]]:
    """Return the command and the environment of each trial: of a search, of each value that it may give."""
    spec = workflow["spec"]
    trial = next(one for one in spec["templates"] if one["name"].endswith("-trial"))
    steps = read_workflow({**workflow, "metadata": {"name": "w"}}, "w", "uid", {}).expand({}, ()).pods
    search = (trial["metadata"].get("annotations") or {}).get("hera-specon.io/search")
    points = options(search) if search else []
    found: list[tuple[list[str], dict[str, str]]] = []
    for step in steps[:1] * len(points) if points else steps:
        notes = point_annotations((("x", points[len(found)]),)) if points else {}
        env = {**step.environment, **{name: notes[note] for name, note in step.env_from.items() if note in notes}}
        given = [*step.command, *step.args]
        found.append(([_PLACE.sub(partial(filled, env), word) for word in given], env))
    return found


def options(search: str) -> tuple[Value, ...]:
    (dimension,) = read_search(search).space
    assert isinstance(dimension.domain, Options)
    return dimension.domain.options


def filled(env: Mapping[str, str], place: re.Match[str]) -> str:
    """Return what Kubernetes puts in ``place``."""
    return env.get(place[1], place[0])


@pytest.mark.parametrize("search", ["grid", "tpe"])
@pytest.mark.parametrize(("command", "passed"), [((), "--x={}"), (("-x{x}",), "-x{}")])
@pytest.mark.parametrize("typed", TEXTS)
def test_a_program_gets_what_was_written(
    typed: str, command: tuple[str, ...], passed: str, search: str, tmp_path: Path
) -> None:
    expected = [[passed.format(text)] for text in typed.split(",")]
    started = trials(manifest(typed, search, command, tmp_path))
    assert [list(chosen_words(words, {**os.environ, **env})[3:]) for words, env in started] == expected


@pytest.mark.parametrize("search", ["grid", "tpe"])
def test_a_shell_of_a_pod_passes_what_was_written(search: str, tmp_path: Path) -> None:
    started = trials(manifest("1.10,1e10,-0", search, (), tmp_path))
    shown = [
        subprocess.run(words, env={**os.environ, **env}, capture_output=True, check=True) for words, env in started
    ]
    assert [json.loads(one.stdout) for one in shown] == [["--x=1.10"], ["--x=1e10"], ["--x=-0"]]


@pytest.mark.parametrize("search", BEFOREHAND)
def test_hooks_and_tables_get_numbers(search: str, tmp_path: Path) -> None:
    given = [json.loads(env[ENV_PARAMS])["x"] for _, env in trials(manifest("1.10,.5,1e-3,+7", search, (), tmp_path))]
    assert set(given) <= {1.1, 0.5, 0.001, 7}


def test_a_value_of_all_trials_is_passed_as_it_was_written(tmp_path: Path) -> None:
    found = read_assignments(["lr=1,2", "version=3.10", "n=1e3", "amp=True", "id=007", "z=-0"])
    sweep = WrittenSweep(
        command=("train", "{version}"),
        space=found.space,
        fixed=found.fixed,
        texts=found.texts,
        objective=minimize("loss"),
        search="grid",
    )
    words = ["train", "3.10", "--n=1e3", "--amp=True", "--id=007", "--z=-0", "--lr=1"]
    assert sweep.words({"lr": 1}) == words
    (tmp_path / "sweep.py").write_text(sweep.source(), encoding="utf-8")
    templates = load_workflow(tmp_path / "sweep.py").manifest["spec"]["templates"]
    pod = next(one["container"] for one in templates if one["name"] == "train-trial")
    assert [*pod["command"], *pod["args"]][:-1] == words[:-1]
