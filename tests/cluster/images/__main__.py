"""``python -m tests.cluster.images``: build what is not built yet, and print where the archives are."""

import sys

from tests.cluster.commands import ClusterError
from tests.cluster.images.build import build_images


def main() -> None:
    """Build every image.

    Raises:
        SystemExit: with what is missing or went wrong.
    """
    try:
        archives = build_images(tell=_tell)
    except ClusterError as error:
        sys.exit(f"images: {error}")
    for image, path in archives.items():
        sys.stdout.write(f"{image.full_name}\t{path}\n")


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    main()
