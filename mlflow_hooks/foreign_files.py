"""Files that programs write, for those who must not fall with them: so much is read, of regular files, and no more.

Where a file should be there may be a pipe that nobody writes to, a device, or a file of gigabytes. None of these holds
a reader up, or fills its memory.
"""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from mlflow_hooks.bounds import LONGEST_LINE, MOST_SMALL
from mlflow_hooks.no_links import open_file, reading


def open_to_append(path: Path) -> BinaryIO:
    """Open a file, made where there is none, to add to it; return at once, whatever it is.

    Raises:
        OSError: it cannot be written, or is no ordinary file.
    """
    return os.fdopen(open_file(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644), "ab")


def size_of(file: BinaryIO) -> int:
    """Return how many bytes an open file has by now."""
    return os.fstat(file.fileno()).st_size


def first_bytes(path: Path, most: int) -> bytes:
    """Return the first ``most`` bytes of a file.

    Raises:
        OSError: as in ``no_links.reading``.
    """
    with reading(path) as file:
        return file.read(most)


def last_bytes(path: Path, most: int) -> bytes:
    """Return the last ``most`` bytes of a file.

    Raises:
        OSError: as in ``no_links.reading``.
    """
    with reading(path) as file:
        file.seek(max(0, size_of(file) - most))
        return file.read(most)


def both_ends(path: Path, most: int) -> bytes:
    """Return the first and the newest whole lines of a file, ``most`` bytes of them; all of one that has no more.

    Raises:
        OSError: as in ``no_links.reading``.
    """
    with reading(path) as file:
        first = file.read(most // 2)
        skipped = max(0, size_of(file) - most)
        file.seek(len(first) + skipped)
        last = file.read(most - most // 2)
    if not skipped:
        return first + last
    return first[: first.rfind(b"\n") + 1] + last[last.find(b"\n") + 1 :]


def small_text(path: Path, most: int = MOST_SMALL) -> str:
    """Return what stands in a file of at most ``most`` bytes.

    Raises:
        OSError: as in ``no_links.reading``, or it is longer.
        UnicodeDecodeError: it is no text.
    """
    content = first_bytes(path, most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is longer than {most} bytes", str(path))
    return content.decode()


def lines_beyond(path: Path, offset: int, most: int | None = None) -> Iterator[bytes]:
    """Yield the lines of a file beyond ``offset`` that have ended, each with its end.

    The sum of their lengths is how far was read. A line that is longer than ``LONGEST_LINE`` comes in pieces, which no
    decoder of lines takes for whole ones.

    Args:
        path: of the file.
        offset: in bytes, at most its size.
        most: bytes after which no other line is begun; without it, all are read.

    Raises:
        OSError: as in ``no_links.reading``.
    """
    with reading(path) as file:
        file.seek(offset)
        left = most
        while (left is None or left > 0) and (line := file.readline(LONGEST_LINE)):
            if not line.endswith(b"\n") and len(line) < LONGEST_LINE:
                return  # half a line may still be on its way
            yield line
            left = None if left is None else left - len(line)
