"""The sweeps of the page on GPUs ask for what the page says, and it names GPUs as they are read."""

import json
import re
from pathlib import Path

import pytest

from controllers.worlds.local.gpus import gpus_here, replicas_of
from hera_specon.workflow_file import load_workflow

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "recipes" / "gpus.md"
CODE = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize(
    ("place", "kind"), [(1, "nvidia.com/gpu"), (2, "nvidia.com/gpu"), (3, "nvidia.com/mig-1g.5gb")]
)
def test_each_sweep_of_the_page_asks_for_one_device_of_the_kind_that_the_page_names(
    place: int, kind: str, tmp_path: Path
) -> None:
    path = tmp_path / "sweep.py"
    path.write_text(CODE[place], encoding="utf-8")
    loaded = load_workflow(path)
    assert loaded.sweeps
    limits = re.findall(r'"limits": (\{[^}]*\})', json.dumps(loaded.manifest))
    assert any(str(json.loads(text).get(kind)) == "1" for text in limits)


def test_the_script_of_the_page_is_a_program() -> None:
    compile(CODE[0], str(PAGE), "exec")


def test_the_devices_that_the_page_names_are_read_as_it_says() -> None:
    named = re.findall(r"CUDA_VISIBLE_DEVICES=(\S+)", PAGE.read_text(encoding="utf-8").replace("`", " "))
    found = [gpus_here({"CUDA_VISIBLE_DEVICES": text.rstrip(".")}) for text in named]
    assert [(len(gpus), replicas_of(gpus)) for gpus in found] == [(4, 2), (1, 1), (2, 1)]
