"""Random generators of a script's own come back with ``torch_state``, as the global ones do."""

import importlib.util
import random
from pathlib import Path

import numpy as np
import pytest

from mlflow_hooks.pytorch import torch_state

pytestmark = [
    pytest.mark.pytorch,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs the pytorch extra"),
]


def test_a_data_loader_with_a_generator_of_its_own_goes_on_with_the_order_of_the_next_epoch(tmp_path: Path) -> None:
    import torch  # noqa: PLC0415 - skipped where it is not there

    def orders(generator: torch.Generator, epochs: int) -> list[list[int]]:
        rows = torch.utils.data.TensorDataset(torch.arange(50))
        loader = torch.utils.data.DataLoader(rows, batch_size=10, shuffle=True, generator=generator)
        return [[int(row) for (batch,) in loader for row in batch] for _ in range(epochs)]

    whole = orders(torch.Generator().manual_seed(1), 4)
    first = torch.Generator().manual_seed(1)
    assert orders(first, 2) == whole[:2]
    torch_state(first).save(tmp_path)
    second = torch.Generator().manual_seed(1)
    torch_state(second).load(tmp_path)
    assert orders(second, 2) == whole[2:]


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_generators_of_numpy_come_back(tmp_path: Path, kind: type[np.random.BitGenerator]) -> None:
    first, second = np.random.Generator(kind(1)), np.random.Generator(kind(1))
    first.integers(10, size=7, dtype=np.int32)
    torch_state(first).save(tmp_path)
    expected = first.normal(size=5).tolist()
    torch_state(second).load(tmp_path)
    assert second.normal(size=5).tolist() == expected


def test_other_generators_come_back(tmp_path: Path) -> None:
    first = random.Random(1), np.random.RandomState(1)  # noqa: S311 - no secrets
    first[0].gauss(0, 1)
    first[1].normal()
    torch_state(*first).save(tmp_path)
    expected = [first[0].gauss(0, 1), first[0].random(), first[1].normal(), first[1].normal()]
    second = random.Random(1), np.random.RandomState(1)  # noqa: S311 - no secrets
    torch_state(*second).load(tmp_path)
    assert [second[0].gauss(0, 1), second[0].random(), second[1].normal(), second[1].normal()] == expected


def test_what_has_no_state_is_refused_before_the_training() -> None:
    with pytest.raises(TypeError, match=r"part 1 .* is a list: .*track_values"):
        torch_state(random.Random(1), [1, 2])  # noqa: S311 - no secrets
