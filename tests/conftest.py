"""What all tests share."""

import contextlib
import importlib

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Import PyTorch's compiler first where TensorFlow will be imported too.

    Both bring an LLVM; with TensorFlow's there first, the other one aborts the process.
    """
    if any(item.get_closest_marker("tensorflow") for item in items):
        with contextlib.suppress(ImportError):
            importlib.import_module("torch._dynamo")
