"""A trial that follows the contract in plain Python: it counts instead of learning, so that steps can be checked.

Started as several workers, they make each step together: none goes on before all have made it.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

RANK, WORKERS = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
FOLDER = Path(os.environ["SPECON_STATE_ROOT"]) / os.environ["SPECON_TRIAL_ID"]
MEETING = FOLDER / "gang" / os.environ.get("SPECON_ATTEMPT", "")
MEET_S, SILENCE_S = 60.0, 4.0
LEAVE, PEERS_LOST = 75, 76


def main(steps: int, failures: int, deaf: int, step_ms: int, *, log: Callable[[int], object] = lambda _: None) -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    asked: list[int] = []
    signal.signal(signal.SIGTERM, signal.SIG_IGN if deaf else lambda number, _frame: asked.append(number))
    append("workers", f"{MEETING.name} {RANK} {WORKERS} {os.getpid()} {os.environ['SPECON_NODE']}")
    if RANK == 0:
        append("given", f"{sys.argv[-1]} {os.environ.get('SPECON_TRIAL_PARAMS', '')}")
        append("attempts", f"{os.getpid()} {os.environ['SPECON_NODE']}")
        if "SPECON_LINEAGE" in os.environ:
            append("lineages", os.environ["SPECON_LINEAGE"])
    if WORKERS > 1 and meet("start", str(lines("steps")), MEET_S) is None:
        return LEAVE
    if lines("attempts") <= failures and RANK == WORKERS - 1:
        return 1
    # Where it goes on is rank 0's to say: a worker that is late finds its lines there already.
    step = lines("steps") if WORKERS == 1 else int((MEETING / "start-0").read_text())
    while step < steps:
        time.sleep(step_ms / 1000)
        told = meet(str(step), str(len(asked)), SILENCE_S)
        if told is None:
            return PEERS_LOST
        if RANK == 0:
            log(step)
            append("steps", str(step))
        step += 1
        if any(int(word) for word in told):
            if "SPECON_LINEAGE" in os.environ:
                (FOLDER / "checkpoints" / f"step-{step:08d}").mkdir(parents=True, exist_ok=True)
            # Nobody goes before all have heard it.
            return LEAVE if meet("end", "", SILENCE_S) is not None else PEERS_LOST
    return 0 if meet("end", "", SILENCE_S) is not None else PEERS_LOST


def meet(about: str, word: str, within_s: float) -> list[str] | None:
    """Tell the others ``word`` and return what each has told, by rank; None where one did not in time."""
    if WORKERS == 1:
        return [word]
    MEETING.mkdir(parents=True, exist_ok=True)
    beside = MEETING / f"new-{RANK}"
    beside.write_text(word)
    beside.rename(MEETING / f"{about}-{RANK}")
    files = [MEETING / f"{about}-{rank}" for rank in range(WORKERS)]
    if not wait_for(lambda: all(file.exists() for file in files), within_s):
        return None
    return [file.read_text() for file in files]


def wait_for(condition: Callable[[], bool], within_s: float) -> bool:
    give_up = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > give_up:
            return False
        time.sleep(0.005)
    return True


def append(file: str, line: str) -> None:
    with (FOLDER / file).open("a") as opened:
        opened.write(f"{line}\n")


def lines(file: str) -> int:
    path = FOLDER / file
    return len(path.read_text().splitlines()) if path.exists() else 0


if __name__ == "__main__":
    sys.exit(main(*(int(word) for word in sys.argv[1:5])))
