"""The volume that keeps checkpoints where every node finds them."""

from dataclasses import replace
from typing import Final

from hera.workflows import ExistingVolume
from hera.workflows.volume import _BaseVolume

from hera_specon.errors import SweepError

NAME: Final = "specon-state"
"""Name of the volume in a trial's pod where its author gave none."""


def state_volume(claim: str | None, volume: object, root: str) -> _BaseVolume | None:
    """Return the volume to mount at ``root``, None where the author names none.

    Raises:
        SweepError: Both are given, or ``volume`` is none of Hera's volumes or is mounted elsewhere.
    """
    if claim is not None and volume is not None:
        problem = f"state_claim={claim!r} and state_volume= are given; one of them is enough"
        raise SweepError(problem)
    if claim is not None:
        return ExistingVolume(name=NAME, claim_name=claim, mount_path=root)
    if volume is None:
        return None
    if not isinstance(volume, _BaseVolume):
        problem = f"state_volume= is a volume of hera.workflows, such as NFSVolume(...), not {volume!r}"
        raise SweepError(problem)
    if volume.mount_path not in {None, root}:
        problem = f"state_volume= is mounted at state_root={root!r}; leave mount_path={volume.mount_path!r} out"
        raise SweepError(problem)
    return replace(volume, mount_path=root)
