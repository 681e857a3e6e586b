"""Random numbers of CUDA in checkpoints, with a stand-in for CUDA: there need not be any here."""

from pathlib import Path

import pytest

from mlflow_hooks.pytorch import torch_state

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.pytorch


def with_cuda(monkeypatch: pytest.MonkeyPatch, devices: int, *, used: bool = True) -> dict[int, float]:
    """Let PyTorch believe in so many GPUs; return what is set as the state of each."""
    given: dict[int, float] = {}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: devices > 0)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: used)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: devices)
    monkeypatch.setattr(torch.cuda, "get_rng_state_all", lambda: [torch.tensor([n + 0.5]) for n in range(devices)])
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: given.update({device: float(state)}))
    return given


@pytest.mark.parametrize(("there", "then", "set_again"), [(2, 2, 2), (3, 1, 1), (1, 3, 1), (2, 0, 0)])
def test_as_many_devices_as_there_were_and_are_go_on_with_their_random_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: int, then: int, set_again: int
) -> None:
    with_cuda(monkeypatch, there)
    torch_state().save(tmp_path)
    given = with_cuda(monkeypatch, then)
    torch_state().load(tmp_path)
    assert given == {device: device + 0.5 for device in range(set_again)}


def test_a_program_that_never_used_cuda_is_not_made_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def begin_cuda() -> None:
        raise AssertionError

    with_cuda(monkeypatch, 2, used=False)
    monkeypatch.setattr(torch.cuda, "get_rng_state_all", begin_cuda)
    torch_state().save(tmp_path)
    given = with_cuda(monkeypatch, 2)
    torch_state().load(tmp_path)
    assert given == {}
