"""Attempts of trainings in children of one process, so that a library is imported once for all of them.

A metric that is to be watched goes by ``CURVE``: it is the best early, and then stays on a plateau.
"""

import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

CURVE = (5.0, 4.0, 3.0, 2.0) + (3.0,) * 20
BEST = 3
"""Where the curve is the best."""


def train_whole_and_moved(train: Callable[[str], Mapping[str, Any]], kinds: Mapping[str, tuple[int, ...]]) -> None:
    """Train each kind once as a whole, and once in attempts that SIGTERM ends in the steps that are given.

    It writes what ``train(kind)`` returns of either, as JSON, and the exit codes of the attempts.
    """
    for kind, stops in kinds.items():
        codes = [_attempt(f"{kind}-whole", "", train, kind)]
        codes += [_attempt(f"{kind}-moved", f"{stop}:SIGTERM", train, kind) for stop in stops]
        codes.append(_attempt(f"{kind}-moved", "", train, kind))
        sys.stdout.write(f"{kind}-codes {json.dumps(codes)}\n")
        sys.stdout.flush()


def _attempt(trial_id: str, signal: str, train: Callable[[str], Mapping[str, Any]], kind: str) -> int:
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        os.environ |= {"SPECON_TRIAL_ID": trial_id, "JOB_SIGNAL": signal}
        came_out = train(kind)
        sys.stdout.write(f"{trial_id} {json.dumps(came_out)}\n")
        sys.stdout.flush()
        code = 0
    except SystemExit as left:
        code = int(left.code or 0)
    except BaseException:  # noqa: BLE001 - the test reads it
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)
