"""Trials that together need far more memory than there is, in a control group of so much: is any killed for it?

``python -m benchmarks.scarce_memory --trials 100 --size 600 --limit 4000`` starts as many at a time as the memory
holds, and prints how that went. ``--sizes`` gives trials of unlike size: the first tell nothing of the last.
It needs to be allowed to make a control group for memory (version 1, or version 2 where that is delegated).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from controllers.core import labels
from controllers.local_run.short_of_memory import ShortOfMemory
from controllers.worlds.local.attempts import Attempts, Surroundings
from controllers.worlds.local.jobs import JobLedger
from controllers.worlds.local.processes import Launcher
from controllers.worlds.local.room import Machine
from controllers.worlds.local.shares import choose_shares
from controllers.worlds.local.shares.cgroup_files import Mounts
from controllers.worlds.local.workflow import read_workflow
from controllers.worlds.local.world import LocalWorld
from mlflow_hooks import contract

MB: Final = 2**20
_NODE: Final = "node-1"
_MANY: Final = 64
"""Trials at a time if nothing but memory bounded them."""
_HOLDING: Final = """
import sys, time
held = []
for part in range(10):
    held.append(bytearray(int(sys.argv[1]) * 2**20 // 10))
    held[-1][::4096] = b"x" * len(held[-1][::4096])
    time.sleep(0.05)
time.sleep(0.3)
"""


class NoControlGroupError(Exception):
    """This machine lets nobody limit memory here."""


@contextmanager
def limited(limit: int) -> Iterator[list[Path]]:
    """Make a control group of ``limit`` bytes below our own; yield the files by which a process joins it.

    Raises:
        NoControlGroupError: none may be made here.
    """
    mounts = Mounts.here()
    own, name = mounts.v1("memory"), f"specon-scarce-{os.getpid()}"
    group, file = (own / name, "memory.limit_in_bytes") if own is not None else (_below(mounts) / name, "memory.max")
    try:
        group.mkdir()
        try:
            (group / file).write_text(str(limit))
            yield [group / "cgroup.procs"]
        finally:
            _remove(group)
    except OSError as error:
        message = f"no control group of limited memory can be made: {error}"
        raise NoControlGroupError(message) from error


def _below(mounts: Mounts) -> Path:
    """Return the version 2 group in which one with a limit may be made."""
    for group in mounts.v2():
        if "memory" in (group / "cgroup.subtree_control").read_text().split():
            return group
    message = "no control group passes the memory on"
    raise NoControlGroupError(message)


def _remove(group: Path) -> None:
    deadline = time.monotonic() + 10
    for folder in sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True):
        folder.rmdir()
    while True:
        try:
            group.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def measured(sizes: Sequence[int], limit: int, kind: str) -> dict[str, Any]:
    """Return how trials that hold ``sizes`` MB went in ``limit`` MB, with shares of that ``kind``.

    Raises:
        NoControlGroupError: this machine lets nobody limit memory here.
    """
    command = [sys.executable, "-m", "benchmarks.scarce_memory", "--inside", "--kind", kind]
    command += ["--sizes", ",".join(map(str, sizes))]
    with limited(limit * MB) as files:
        joining = 'for f; do echo $$ > "$f" || exit 1; done'
        script = f'{joining.replace("for f;", "for f in $JOIN;")}; exec "$@"'
        env = {**os.environ, "JOIN": " ".join(map(str, files))}
        done = subprocess.run(["/bin/sh", "-c", script, "sh", *command], env=env, check=False, stdout=subprocess.PIPE)
    if done.returncode:
        message = f"what ran in the group ended with {done.returncode}"
        raise NoControlGroupError(message)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def inside(sizes: Sequence[int], kind: str) -> dict[str, Any]:
    """Run the trials to their end and return how they went: this process is in the group."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        shares = choose_shares(f"scarce-{os.getpid()}", None if kind == "any" else kind)  # type: ignore[arg-type]  # argparse
        launcher = Launcher((), grace_s=2.0, log=folder / "launcher.log")
        try:
            around = Surroundings(folder, folder, dict(os.environ), {}, {_NODE: 2.0})
            machine = Machine({_NODE: 2.0}, 1e12, jobs=_MANY)
            program = read_workflow(workflow(sizes), "scarce", "uid", {}, [2.0])
            world = LocalWorld(program, "uid", machine, Attempts(shares, launcher, around), JobLedger())
            return _driven(world, sizes)
        finally:
            launcher.close(1.0)
            shares.close()


def _driven(world: LocalWorld, sizes: Sequence[int]) -> dict[str, Any]:
    began, told, most = time.monotonic(), list[str](), 0
    short = ShortOfMemory((), world.short)
    while not world.finished:
        world.advance(time.monotonic() - began)
        most = max(most, sum(job.placed for job in world.jobs()))
        told += short.look(world.jobs(), world.memory)
        time.sleep(0.02)
    results = world.results({})
    return {
        "trials": len(sizes),
        "seconds": round(time.monotonic() - began, 1),
        "at_once": most,
        "succeeded": sum(result.succeeded for result in results),
        "killed": sum(job.memory_kills for job in world.jobs()),
        "failures": sum(job.failures for job in world.jobs()),
        "attempts": sum(result.attempts for result in results),
        "told": told,
    }


def workflow(sizes: Sequence[int]) -> dict[str, Any]:
    """Return an Argo Workflow with a trial for each size."""
    uid = "{{workflow.uid}}.scarce"
    template = {
        "name": "hold",
        "inputs": {"parameters": [{"name": "size"}, {"name": "trial"}]},
        "metadata": {
            "labels": {labels.LABEL_SWEEP: "scarce"},
            "annotations": {labels.ANNOTATION_OBJECTIVE: "loss", labels.ANNOTATION_DIRECTION: "minimize"},
        },
        "retryStrategy": {"limit": "3", "retryPolicy": "Always"},
        "container": {
            "image": "any",
            "command": [sys.executable, "-c", _HOLDING],
            "args": ["{{inputs.parameters.size}}"],
            "env": [
                {"name": contract.ENV_SWEEP_ID, "value": uid},
                {"name": contract.ENV_TRIAL_ID, "value": f"{uid}.{{{{inputs.parameters.trial}}}}"},
            ],
        },
    }
    steps = [
        {
            "name": trial,
            "template": "hold",
            "arguments": {"parameters": [{"name": "size", "value": str(size)}, {"name": "trial", "value": trial}]},
            "continueOn": {"failed": True},
        }
        for trial, size in ((f"t{number}", size) for number, size in enumerate(sizes))
    ]
    spec = {"entrypoint": "main", "templates": [template, {"name": "main", "steps": [steps]}]}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "scarce"}, "spec": spec}


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--size", type=int, default=600, help="MB that each trial holds")
    parser.add_argument("--sizes", default="", help="MB of each trial, with commas, instead")
    parser.add_argument("--limit", type=int, default=4000, help="MB that there are")
    parser.add_argument("--kind", choices=["any", "cgroup-v1", "cgroup-v2", "pacer"], default="any")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    sizes = [int(size) for size in asked.sizes.split(",")] if asked.sizes else [asked.size] * asked.trials
    if asked.inside:
        sys.stdout.write(json.dumps(inside(sizes, asked.kind)))
        return
    found = measured(sizes, asked.limit, asked.kind)
    for name, value in found.items():
        print(f"{name:>10}: {value}")


if __name__ == "__main__":
    main()
