"""Makes every Python that has this folder on its path see a system without ``/proc`` and the other calls of Linux.

It stands for macOS, as far as Linux can. Only psutil still sees the files, as it asks macOS by other means. Python runs
this module when it starts. The folder goes along to each process that is started from there, also to those whose
environment was stripped of PYTHONPATH.
"""

import os
import select
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from types import FrameType

_HERE: Final = str(Path(__file__).parent)
_HIDDEN: Final = ("/proc", "/sys/fs/cgroup", "/dev/shm")  # noqa: S108 - hidden, not used
_ONLY_LINUX: Final = {
    os: ("sched_getaffinity", "sched_setaffinity", "pipe2", "waitid", "posix_fadvise", "pidfd_open", "eventfd"),
    select: ("epoll",),
}
_OPENING: Final = {"open", "os.listdir", "os.scandir"}
_TOLD: Final = "WITHOUT_PROC_TOLD"
"""The variable that names a file in which each of these processes says what it runs."""


def _hidden(path: object) -> bool:
    text = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""
    return any(text == one or text.startswith(f"{one}/") for one in _HIDDEN)


def _refuse(path: object) -> None:
    if _hidden(path) and not _asked_by_psutil():
        raise FileNotFoundError(2, "No such file or directory", str(path))


def _asked_by_psutil() -> bool:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if "/psutil/" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def _heed(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _OPENING and arguments:
        _refuse(arguments[0])
    elif event == "subprocess.Popen" and isinstance(env := arguments[3], dict):
        env |= _led_here(env)


def _led_here(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which a Python runs this module, too."""
    folders = [one for one in env.get("PYTHONPATH", "").split(os.pathsep) if one and one != _HERE]
    return {**env, "PYTHONPATH": os.pathsep.join([*folders, _HERE])}


def _execve(path: str, words: Sequence[str], env: Mapping[str, str], call: Callable[..., Any] = os.execve) -> object:
    return call(path, words, _led_here(env))


def _refusing(call: Callable[..., Any]) -> Callable[..., Any]:
    def refusing(path: object, *arguments: object, **options: object) -> object:
        _refuse(path)
        return call(path, *arguments, **options)

    for kinds in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids):
        if call in kinds:
            kinds.add(refusing)
    return refusing


for module, names in _ONLY_LINUX.items():
    for name in names:
        delattr(module, name)
for name in ("stat", "lstat", "readlink", "access"):
    setattr(os, name, _refusing(getattr(os, name)))
os.execve = _execve  # type: ignore[assignment]  # the audit event of this one comes too late
sys.addaudithook(_heed)
if told := os.environ.get(_TOLD):
    with Path(told).open("a") as file:
        file.write(" ".join(sys.orig_argv).replace("\n", " ") + "\n")
