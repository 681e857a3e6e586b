"""Kill whatever a sweep leans on, hundreds of times, on the real test cluster, and check that nothing comes of it.

    python -m benchmarks.kills [--kills 200] [--seed N] [--log kills.jsonl]

Killed are the leading controller, kubelets, the API server, Argo's controller, trials and MLflow, in random order, now
and then two at a time, while sweeps run and trials move. Of each sweep, every step must be in MLflow once and with its
right value, every checkpoint that was acknowledged must have been gone on from, and what has ended must stay so. The
log is continued where it exists: an hour today and another tomorrow are as good as two. Exits with 1 where a sweep was
not whole; the seed and the sweep's number tell which kills it saw.

It takes the test cluster that is up, else brings one up and takes it down in the end (``make test-cluster`` says what
that needs). Two hundred kills take some two hours.
"""

import argparse
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from benchmarks.kills.log import WHOLE, KilledSweep, KillLog, kills_in, summary
from benchmarks.kills.session import killed_sweep_of
from tests.cluster.cluster import Cluster, running_cluster
from tests.cluster.images.build import build_images
from tests.cluster.sweeps.ports import free_ports
from tests.cluster.sweeps.tracking import Tracking


def main() -> None:
    """Kill, and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="in all, those in the log included")
    parser.add_argument("--seed", type=int, help="of all chance; by default that of the log, or any")
    parser.add_argument("--log", type=Path, default=Path("kills.jsonl"))
    args = parser.parse_args()
    log, console = KillLog(args.log), Console()
    if kills_in(log.sweeps()).total() < args.kills:
        _session(log, _seed(args.seed, log.sweeps()), args.kills, console.print)
    console.print(summary(log.sweeps()))
    sys.exit(any(sweep.verdict != WHOLE for sweep in log.sweeps()))


def _seed(given: int | None, before: Sequence[KilledSweep]) -> int:
    if given is not None:
        return given
    return before[-1].seed if before else random.SystemRandom().randrange(10**6)


def _session(log: KillLog, seed: int, wanted: int, tell: Callable[[str], None]) -> None:
    """Run sweeps until as many things were killed as ``wanted``."""
    tell(f"--seed {seed}")
    with any_cluster(tell) as cluster, tempfile.TemporaryDirectory() as folder:
        cluster.show_folder(Path(folder))
        tracking = Tracking(Path(folder), free_ports(1)[0])
        tracking.start()
        try:
            while (killed := kills_in(log.sweeps()).total()) < wanted:
                number = 1 + max((one.number for one in log.sweeps() if one.seed == seed), default=-1)
                tell(f"sweep {number}, after {killed} of {wanted} kills")
                found = killed_sweep_of(cluster, tracking, seed, number, tell)
                log.append(found)
                tell(f"sweep {number}: {found.verdict}")
                if not found.kills:
                    sys.exit("nothing could be killed in this sweep, so the next would come no further")
        finally:
            tracking.stop()


@contextmanager
def any_cluster(tell: Callable[[str], None]) -> Iterator[Cluster]:
    """Give the cluster that is up, else one that is taken down in the end."""
    running = running_cluster()
    if running is not None:
        yield running
        return
    cluster = Cluster(tell=tell)
    try:
        cluster.up(list(build_images(tell=tell).values()))
        yield cluster
    finally:
        cluster.down()


if __name__ == "__main__":
    main()
