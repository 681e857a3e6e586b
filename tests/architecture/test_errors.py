"""Every error of ours stands in one tree, so that a caller of ours catches one type and shows its message."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import click
import pytest

import controllers
import hera_specon
from controllers.core.errors import SpeconError


def modules() -> Iterator[str]:
    for package in (controllers, hera_specon):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                yield found.name


@pytest.mark.parametrize("name", sorted(modules()))
def test_every_error_that_a_module_defines_is_a_specon_error(name: str) -> None:
    module = importlib.import_module(name)
    ours = [kind for _, kind in inspect.getmembers(module, inspect.isclass) if kind.__module__ == name]
    # A BaseException that is no Exception is no error; click shows its own kind with the command's usage.
    allowed = (SpeconError, click.ClickException)
    wrong = [kind.__name__ for kind in ours if issubclass(kind, Exception) and not issubclass(kind, allowed)]
    assert not wrong, f"{name} defines {wrong} outside the tree of SpeconError"
