"""``specon`` as it is, which knows one policy more: ``scripted``, with the sizes of ``SCRIPTED_SIZES``.

SCRIPTED_SIZES='[[0, ["node-1"]]]' python -m benchmarks.change_of_size.controller controller --policy scripted ...
"""

import json
import os
from typing import Any

from pydantic import Field

from benchmarks.change_of_size.scripted import Scripted
from controllers.policies.registry import POLICIES
from hera_specon.cli import main


class FromTheEnvironment(Scripted):
    """Scripted, for a process that is started by its arguments."""

    sizes: Any = Field(
        exclude=True,
        default=tuple((at, tuple(nodes)) for at, nodes in json.loads(os.environ.get("SCRIPTED_SIZES", "[]"))),
    )


if __name__ == "__main__":
    POLICIES[Scripted.name] = FromTheEnvironment
    main()
