"""How long a checkpoint keeps a PyTorch training waiting: written in step, and beside the training.

Run ``python -m benchmarks.stalls [--sizes 0.1 0.5 2] [--rounds 3]``. A size is in GB of the checkpoint: weights and
both of Adam's moments. Each round saves each size both ways in turn, in a process of its own, so that what else the
machine does falls on both alike. The first save of a process does not count for the medians: it takes the memory for
the copy from the system, and is told apart. ``lost`` is the stall and by how much longer the steps took while a thread
wrote, in sum: on few cores the thread takes them from the training.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

WAYS: Final = ("in step", "beside")
_WIDTH: Final = 2048
_BYTES_OF_A_WEIGHT: Final = 12
"""Of a checkpoint: the weight itself and both of Adam's moments, in single precision."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=float, nargs="+", default=[0.1, 0.5, 2.0], help="GB of a checkpoint")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--saves", type=int, default=4, help="in a process, 2 at least")
    parser.add_argument("--folder", type=Path, help="where checkpoints go; by default the folder for temporary files")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.way:
        print(json.dumps(_saves(given.way, given.sizes[0], given.saves)))
        return
    print("   GB  in step, s  beside, s   ratio  first, s  lost, s  written in, s")
    for size in given.sizes:
        found = {way: list[dict[str, float]]() for way in WAYS}
        for number in range(given.rounds):
            for way in WAYS if number % 2 else WAYS[::-1]:
                found[way].append(_in_process(way, size, given.saves, given.folder))
        _row(size, found)


def _row(size: float, found: dict[str, list[dict[str, float]]]) -> None:
    def median(way: str, what: str) -> float:
        return statistics.median(one[what] for one in found[way])

    pairs = zip(found["beside"], found["in step"], strict=True)
    ratio = statistics.median(beside["stall"] / step["stall"] for beside, step in pairs)
    figures = [median("beside", "first"), median("beside", "lost"), median("beside", "written")]
    print(
        f"{size:5.2f} {median('in step', 'stall'):11.3f} {median('beside', 'stall'):10.3f} {ratio:7.3f}"
        f" {figures[0]:9.3f} {figures[1]:8.3f} {figures[2]:14.2f}",
        flush=True,
    )


def _in_process(way: str, size: float, saves: int, place: Path | None) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=place) as folder:
        trial = {"SPECON_TRIAL_ID": "s.a", "SPECON_STATE_ROOT": folder, "SPECON_FLUSH_S": "0"}
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.stalls", "--way", way, "--sizes", str(size), "--saves", str(saves)],
            env={**os.environ, **trial},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    result: dict[str, float] = json.loads(done.stdout)
    return result


def _saves(way: str, size: float, saves: int) -> dict[str, float]:
    """Save a state of ``size`` GB ``saves`` times, each once the one before is there; return the seconds."""
    import torch  # noqa: PLC0415 - only the processes that train pay for it

    from mlflow_hooks import saving, trial  # noqa: PLC0415 - as above
    from mlflow_hooks.pytorch import torch_state  # noqa: PLC0415 - as above

    layers = max(1, round(size * 1e9 / _BYTES_OF_A_WEIGHT / _WIDTH**2))
    model = torch.nn.Sequential(*(torch.nn.Linear(_WIDTH, _WIDTH, bias=False) for _ in range(layers)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    batch = torch.randn(8, _WIDTH)

    def step() -> float:
        began = time.perf_counter()
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        return time.perf_counter() - began

    if way == "in step":
        saving.BESIDE_BYTES = 2**62  # type: ignore[misc]
    stalls, lost, written = [], [], []
    step()
    with trial(checkpoint_every_s=1e9) as t:
        t.track(torch_state(model, optimizer))
        t.begin()
        record = t._record  # noqa: SLF001 - one save is timed, apart from when it would be due
        for number in range(saves):
            alone = statistics.median(step() for _ in range(3))
            t.next_step = number + 1
            began = time.perf_counter()
            if record is not None:
                record.save(number + 1, beside=True)
            stalls.append(time.perf_counter() - began)
            longer = 0.0
            while not t.saved:
                longer += step() - alone
            lost.append(stalls[-1] + longer)
            written.append(time.perf_counter() - began)
        t.leave_if_saved()
    medians = {"stall": stalls[1:], "lost": lost[1:], "written": written[1:]}
    return {"first": stalls[0], **{what: statistics.median(times) for what, times in medians.items()}}


if __name__ == "__main__":
    main()
