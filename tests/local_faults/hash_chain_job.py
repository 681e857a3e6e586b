"""A training whose every step follows from all steps before it, so that a lost, doubled or foreign step shows.

It keeps a witness of its own beside what specon keeps: a line for each step that any attempt makes, and a lock for as
long as an attempt trains, which two attempts at once cannot both hold.
"""

import argparse
import fcntl
import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from mlflow_hooks import trial

DOUBLED = "doubled"
PRINTED = {"floods": b"loss: 0.0\n" * 1000, "half lines": b"loss: 0.0 " * 1000, "binary": bytes(range(256)) * 40}
"""What hostile programs print, in words of their manners."""


def digest_after(name: str, step: int, before: str) -> str:
    """Return the state of trial ``name`` after ``step``, given the state before it."""
    return hashlib.sha256(f"{name} {step} {before}".encode()).hexdigest()


def loss_of(digest: str) -> float:
    """Return what a trial in this state logs."""
    return int(digest[:13], 16) / 16**13


def chain(name: str, steps: int) -> list[float]:
    """Return what trial ``name`` logs in ``steps`` steps that nothing disturbs."""
    digest, losses = "", []
    for step in range(steps):
        digest = digest_after(name, step, digest)
        losses.append(loss_of(digest))
    return losses


class Chain:
    """The state: the digest so far."""

    def __init__(self) -> None:
        self.digest = ""

    def save(self, folder: Path) -> None:
        """Write it."""
        (folder / "digest").write_text(self.digest)

    def load(self, folder: Path) -> None:
        """Take it back."""
        self.digest = (folder / "digest").read_text()


def behave(manner: str, most_bytes: int) -> None:
    """Behave as a hostile program does beside its training: print without end, be deaf, or leave children behind."""
    if manner in PRINTED:
        threading.Thread(target=print_on, args=(PRINTED[manner], most_bytes), daemon=True).start()
    elif manner == "deaf":
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    elif manner == "forks":
        for _ in range(3):
            subprocess.Popen(["sleep", "1000"])  # noqa: S607 - wherever it is


def print_on(text: bytes, most_bytes: int) -> None:
    """Print ``text`` again and again, as fast as can be, up to so many bytes."""
    for _ in range(most_bytes // len(text)):
        sys.stdout.buffer.write(text)
        sys.stdout.flush()


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--variant", type=int, required=True)
    parser.add_argument("--step-ms", type=float, default=20.0)
    parser.add_argument("--witness", type=Path, required=True)
    parser.add_argument("--manner", default="")
    parser.add_argument("--most-bytes", type=int, default=0)
    args = parser.parse_args()
    if args.variant == 0:
        behave(args.manner, args.most_bytes)
    name = f"{args.variant}-{args.steps}"
    lock = (args.witness / f"{name}.lock").open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        (args.witness / f"{name}.{DOUBLED}").touch()
    # Made in one write each, so that none is half there when the attempt is killed.
    seen = os.open(args.witness / f"{name}.steps", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    kept = Chain()
    with trial(checkpoint_every_s=0.5) as t:
        t.track(kept)
        for step in t.steps(args.steps):
            kept.digest = digest_after(name, step, kept.digest)
            t.log(loss=loss_of(kept.digest))
            os.write(seen, f"{os.getpid()} {step} {kept.digest}\n".encode())
            time.sleep(args.step_ms / 1000)


if __name__ == "__main__":
    main()
