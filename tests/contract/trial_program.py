"""A trial that follows the contract in plain Python: it counts instead of learning, so that steps can be checked."""

import os
import signal
import sys
import time
from pathlib import Path


def main(steps: int, failures: int, deaf: int, step_ms: int) -> int:
    folder = Path(os.environ["SPECON_STATE_ROOT"]) / os.environ["SPECON_TRIAL_ID"]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "given").open("a") as file:
        file.write(f"{sys.argv[-1]} {os.environ.get('SPECON_TRIAL_PARAMS', '')}\n")
    asked: list[int] = []
    if not deaf:
        signal.signal(signal.SIGTERM, lambda number, _frame: asked.append(number))
    else:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    attempts = folder / "attempts"
    with attempts.open("a") as file:
        file.write(f"{os.getpid()} {os.environ['SPECON_NODE']}\n")
    done = folder / "steps"
    step = len(done.read_text().splitlines()) if done.exists() else 0
    if len(attempts.read_text().splitlines()) <= failures:
        return 1
    while step < steps:
        time.sleep(step_ms / 1000)
        with done.open("a") as file:
            file.write(f"{step}\n")
        step += 1
        if asked:
            return 75
    return 0


if __name__ == "__main__":
    sys.exit(main(*(int(word) for word in sys.argv[1:5])))
