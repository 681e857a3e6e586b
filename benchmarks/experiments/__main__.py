"""Makes the tables and pictures of docs/experiments from the code. What they teach is written by hand: README.md.

python -m benchmarks.experiments [--seeds 30] [--part table --part pictures ...]
"""

import argparse
from functools import partial
from pathlib import Path

from rich.progress import Progress

from benchmarks.experiments import parts

OUT = Path("docs/experiments")


def main() -> None:
    """Make what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--part", action="append", choices=sorted(parts.PARTS), help="only this; may be repeated")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with Progress() as progress:
        for name in given.part or parts.PARTS:
            task = progress.add_task(name, total=None)
            parts.PARTS[name](given.out, range(given.seeds), partial(progress.advance, task))
            progress.update(task, total=1, completed=1)


if __name__ == "__main__":
    main()
