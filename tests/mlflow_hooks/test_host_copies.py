"""A copy of what a PyTorch training holds is the same to the last bit, whatever the training does afterwards.

On a machine with a GPU (``make test-gpu``) the tensors are there, and the copies in pinned memory.
"""

import hashlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlflow_hooks.host_copies import HostCopies, TorchContent
from mlflow_hooks.pytorch import TorchState, torch_state

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.pytorch, pytest.mark.gpu]


@pytest.fixture
def device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


class Holder:
    """A part whose state is what a test gives it."""

    def __init__(self, state: dict[str, Any]) -> None:
        self.state = state

    def state_dict(self) -> dict[str, Any]:
        return self.state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.state = state_dict


def odd_tensors(device: str) -> dict[str, Any]:
    base = torch.randn(6, 8, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch calls these kinds a prototype
        sparse = torch.eye(4, device=device).to_sparse()
    return {
        "half": torch.randn(5, device=device).to(torch.bfloat16),
        "strided": base.t()[1:, ::2],
        "base": base,
        "tied": base,
        "row": base[2],
        "empty": [torch.empty(0, device=device), torch.empty(0, 3, device=device)],
        "scalar": torch.tensor(3, device=device),
        "nan": torch.tensor([float("nan"), -0.0, float("inf")], device=device),
        "bits": torch.tensor([True, False], device=device),
        "complex": torch.randn(3, dtype=torch.complex64, device=device).conj(),
        "wants a gradient": torch.ones(2, device=device, requires_grad=True),
        "parameter": torch.nn.Parameter(torch.randn(2, device=device)),
        "sparse": sparse,
        "host": torch.arange(4),
        "plain": {"rate": 0.1, "steps": [1, 2], "pair": (1, None)},
    }


def spoil(held: Any) -> None:  # noqa: ANN401 - containers of anything
    """Change every tensor and list in place, as a training does."""
    if isinstance(held, torch.Tensor):
        with torch.no_grad():
            held.zero_()
    for item in held.values() if isinstance(held, dict) else held if isinstance(held, list | tuple) else ():
        spoil(item)
    if isinstance(held, list):
        held.append(9)


def sums(content: TorchContent, folder: Path) -> dict[str, str]:
    """Return what a checkpoint of ``content`` would check."""
    folder.mkdir()
    content.write(folder)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def same(first: Any, second: Any) -> bool:  # noqa: ANN401 - as above
    if isinstance(first, torch.Tensor):
        kinds, bits = zip(*(_as_bits(one) for one in (first, second)), strict=True)
        return bool(kinds[0] == kinds[1] and torch.equal(*bits))
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(first == second)


def _as_bits(tensor: Any) -> tuple[tuple[Any, ...], Any]:  # noqa: ANN401 - a tensor
    dense = tensor.detach().to_dense() if tensor.is_sparse else tensor.detach()
    bits = dense.cpu().resolve_conj().flatten().view(torch.uint8)
    return (tensor.dtype, tensor.shape, tensor.requires_grad, tensor.layout, type(tensor)), bits


@pytest.mark.filterwarnings("ignore:Validating sparse tensor invariants")
def test_a_copy_holds_each_kind_of_tensor_as_it_was(tmp_path: Path, device: str) -> None:
    holder = Holder(odd_tensors(device))
    state = torch_state(holder)
    state.save(tmp_path)
    content = state.content_at_step()
    content.copy()
    spoil(holder.state)
    (tmp_path / "copy").mkdir()
    content.write(tmp_path / "copy")
    found, expected = (torch.load(place / "torch.pt", map_location="cpu") for place in (tmp_path / "copy", tmp_path))
    assert same(found["parts"], expected["parts"])
    (part,) = found["parts"]
    assert part["strided"].stride() == expected["parts"][0]["strided"].stride()
    assert part["tied"].data_ptr() == part["base"].data_ptr(), "what shared memory does not any more"
    assert part["row"].data_ptr() == part["base"][2].data_ptr()


def training(device: str) -> tuple[TorchState, Any, Callable[[], None]]:
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.BatchNorm1d(64), torch.nn.Linear(64, 64)).to(device)
    model[2].weight = model[0].weight
    optimizer = torch.optim.Adam(model.parameters(), amsgrad=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=100)
    noise = torch.Generator(device=device)

    def step() -> None:
        optimizer.zero_grad()
        rows = torch.randn(8, 64, generator=noise, device=device) + torch.randn(8, 64, device=device)
        model(rows).square().mean().backward()
        optimizer.step()
        scheduler.step()

    step()
    return torch_state(model, optimizer, scheduler, noise), model, step


def test_the_file_of_a_copy_is_that_of_the_step_byte_for_byte(tmp_path: Path, device: str) -> None:
    state, _, step = training(device)
    for number in range(3):
        content = state.content_at_step()
        expected = sums(content, tmp_path / f"live-{number}")
        content.copy()
        step()
        found = sums(content, tmp_path / f"copy-{number}")
        if device == "cpu":  # a file of tensors on a GPU says so
            assert found == expected
        assert found["random.json"] == expected["random.json"]
        first, second = (
            torch.load(tmp_path / f"{how}-{number}" / "torch.pt", map_location="cpu") for how in ("live", "copy")
        )
        assert same(first, second)


def test_the_memory_of_a_copy_serves_the_next_one_and_can_be_given_back(device: str) -> None:
    state, model, step = training(device)
    content = state.content_at_step()
    assert content.to_copy >= content.nbytes > sum(value.nbytes for value in model.parameters())
    content.copy()
    step()
    assert state.content_at_step().to_copy == 0
    places = {storage.data_ptr() for storage in state._copies._kept if len(storage)}
    again = state.content_at_step()
    again.copy()
    assert {storage.data_ptr() for storage in state._copies._kept if len(storage)} == places
    again.give_back()
    assert state.content_at_step().to_copy == content.to_copy


def test_copies_of_a_gpu_are_pinned(device: str) -> None:
    if device == "cpu":
        pytest.skip("no GPU here")
    copies = HostCopies()
    copied = copies.copied({"weights": torch.randn(1000, device=device), "host": torch.ones(3)})
    assert (copied["weights"].device.type, copied["weights"].is_pinned(), copied["host"].is_pinned()) == (
        "cpu",
        True,
        False,
    )
