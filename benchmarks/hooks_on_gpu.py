"""What the hooks cost a training on a GPU: steps with and without them, and checkpoints of models of several sizes.

Run ``python -m benchmarks.hooks_on_gpu [--sizes 0.1 1 4] [--out FILE]``, or ``make test-gpu``, which does it after the
tests. A size is in GB of the checkpoint: weights and both of Adam's moments. Loops with and without hooks take turns,
so that what else the machine does falls on both alike. ``beside`` is how long the training waits for a checkpoint that
a thread writes; the first one pins the memory for it. Without a GPU it measures the CPU, smaller checkpoints, and says
so. The result goes into a JSON file with the card's name in it (``gpu-cpu.json`` without one), beside the table.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import torch

from mlflow_hooks import trial
from mlflow_hooks.pytorch import TorchState, torch_state

ROUNDS: Final = 5
STEPS: Final = 300
WARM_UP: Final = 30
WIDTH: Final = 4096
_BYTES_OF_A_WEIGHT: Final = 12
"""Of a checkpoint: the weight itself and both of Adam's moments, in single precision."""


def main() -> None:
    """Measure, print and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=float, nargs="+", help="GB of a checkpoint: 0.1 1 4, or 0.1 0.5 without a GPU")
    parser.add_argument("--out", type=Path, help="JSON file of the result")
    given = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    there = device.type == "cuda"
    card = torch.cuda.get_device_name() if there else "cpu"
    steps = _steps_beside_each_other(device)
    checkpoints = [_checkpoint(device, size) for size in given.sizes or ([0.1, 1.0, 4.0] if there else [0.1, 0.5])]
    result = {"card": card, "torch": torch.__version__, "step_ms": steps, "checkpoints": checkpoints}
    out = given.out or Path("build") / f"gpu-{card.lower().replace(' ', '-')}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1))
    print(f"{card}, PyTorch {torch.__version__}")
    print(
        f"a step: {steps['bare']:.3f} ms without hooks, {steps['hooks']:.3f} ms with; median ratio {steps['ratio']:.4f}"
    )
    print("\n  GB   step, ms   save, s   load, s   copy to host, s   to pinned host, s   beside: first, s   later, s")
    for row in checkpoints:
        print(
            f"{row['gb']:4.1f} {row['step_ms']:10.1f} {row['save_s']:9.2f} {row['load_s']:9.2f}"
            f" {row['copy_s']:17.3f} {row['pinned_copy_s']:19.3f} {row['first_beside_s']:18.3f} {row['beside_s']:10.3f}"
        )
    print(f"\n{out}")
    if not there:
        print("!! there is no GPU here: all of this is of the CPU, and says nothing of CUDA")


def _training(
    device: torch.device, width: int, layers: int
) -> tuple[torch.nn.Module, torch.optim.Optimizer, Callable[[], float]]:
    """Return a model, its optimizer, and what does one step and returns its loss."""
    model = torch.nn.Sequential(*(torch.nn.Linear(width, width, bias=False) for _ in range(layers))).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=device.type == "cuda")
    batch = torch.randn(64, width, device=device)

    def step() -> float:
        optimizer.zero_grad()
        loss = (model(batch) - batch).square().mean()
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return model, optimizer, step


def _steps_beside_each_other(device: torch.device) -> Mapping[str, float]:
    """Return the median milliseconds of a step without and with hooks, and the median of their ratios by round."""
    _, _, step = _training(device, 1024, 4)
    rounds: dict[str, list[float]] = {"bare": [], "hooks": []}
    for number in range(ROUNDS):
        for loop in ("bare", "hooks") if number % 2 else ("hooks", "bare"):
            rounds[loop].append(_bare(step) if loop == "bare" else _with_hooks(step))
    ratios = [hooks / bare for bare, hooks in zip(rounds["bare"], rounds["hooks"], strict=True)]
    return {loop: statistics.median(times) for loop, times in rounds.items()} | {"ratio": statistics.median(ratios)}


def _bare(step: Callable[[], float]) -> float:
    took = []
    for _ in range(STEPS):
        began = time.perf_counter()
        step()
        took.append(time.perf_counter() - began)
    return statistics.fmean(took[WARM_UP:]) * 1e3


def _with_hooks(step: Callable[[], float]) -> float:
    took = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"SPECON_TRIAL_ID": "s.a", "SPECON_STATE_ROOT": folder, "SPECON_OBJECTIVE": "loss"}
        with trial() as t:
            began = time.perf_counter()
            for _ in t.steps(STEPS):
                t.log(loss=step())
                took.append(time.perf_counter() - began)
                began = time.perf_counter()
    return statistics.fmean(took[WARM_UP:]) * 1e3


def _checkpoint(device: torch.device, size: float) -> Mapping[str, float]:
    """Return what a checkpoint of ``size`` GB takes: whole, as the hooks write it, and its copy to the host alone."""
    layers = max(1, round(size * 1e9 / _BYTES_OF_A_WEIGHT / WIDTH**2))
    model, optimizer, step = _training(device, WIDTH, layers)
    step()
    began = time.perf_counter()
    step()
    step_s = time.perf_counter() - began
    state = torch_state(model, optimizer)
    with tempfile.TemporaryDirectory() as folder:
        save_s = _timed(lambda: _save_and_sync(state, Path(folder)))
        load_s = _timed(lambda: state.load(Path(folder)))
    first_s, beside_s = (_timed(lambda: state.content_at_step().copy()) for _ in range(2))
    tensors = [*model.state_dict().values(), *(value for row in optimizer.state.values() for value in row.values())]
    copy_s = _timed(lambda: [tensor.to("cpu", copy=True) for tensor in tensors])
    pinned_s = copy_s
    if device.type == "cuda":
        host = [torch.empty_like(tensor, device="cpu", pin_memory=True) for tensor in tensors]
        pinned_s = _timed(
            lambda: [kept.copy_(tensor, non_blocking=True) for kept, tensor in zip(host, tensors, strict=True)]
        )
    gb = sum(tensor.nbytes for tensor in tensors) / 1e9
    times = {"step_ms": step_s * 1e3, "save_s": save_s, "load_s": load_s, "copy_s": copy_s, "pinned_copy_s": pinned_s}
    return {"gb": gb, **times, "first_beside_s": first_s, "beside_s": beside_s}


def _save_and_sync(state: TorchState, folder: Path) -> None:
    state.save(folder)
    for path in folder.iterdir():
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
