"""Command lines whose words depend on a trial's hyperparameters, as the program of this machine gets them."""

import subprocess
from collections.abc import Mapping, Sequence
from typing import Final

from controllers.core.word_script import printing

_WITHIN_S: Final = 60.0


def chosen_words(command: Sequence[str], env: Mapping[str, str]) -> tuple[str, ...]:
    """Return ``command`` as its own script puts it together, so that no shell stands before the program.

    A command without such a script is returned as it is, and so is one whose script fails: then its attempt says why.
    """
    asked = printing(command)
    if asked is None:
        return tuple(command)
    try:
        done = subprocess.run(
            asked, env=dict(env), stdin=subprocess.DEVNULL, capture_output=True, timeout=_WITHIN_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return tuple(command)
    return tuple(word.decode(errors="surrogateescape") for word in done.stdout.split(b"\0")[:-1])
