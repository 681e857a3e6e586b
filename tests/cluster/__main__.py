"""python -m tests.cluster up | down | status | kubectl ARGUMENTS."""

import os
import sys
import time
from pathlib import Path

from tests.cluster.cluster import Cluster

if __name__ == "__main__":
    begun = time.monotonic()
    cluster = Cluster(tell=lambda line: print(f"{time.monotonic() - begun:6.1f} s  {line}", flush=True))
    verb = sys.argv[1]
    if verb == "up":
        cluster.up([Path(x) for x in sys.argv[2:]])
        cluster.tell("up")
    elif verb == "down":
        cluster.down()
    elif verb == "kubectl":
        os.execv(cluster.kubectl.command[0], [*cluster.kubectl.command, *sys.argv[2:]])
