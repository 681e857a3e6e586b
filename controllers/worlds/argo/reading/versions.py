"""The versions of what a cluster is made of: as they are written, and where they are found."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from controllers.worlds.argo.calls.api import Json
from controllers.worlds.argo.calls.untrusted import mappings, text

_WRITTEN: Final = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?![\d.])")
_TAGGED: Final = re.compile(r"[\w.:/-]{0,400}argoexec:(v?\d[\w.+-]{0,60})(?:@sha256:[0-9a-f]{64})?")
_HELPERS: Final = frozenset({"init", "wait"})


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A version: ``patch`` is 0 where it is not written."""

    major: int
    minor: int
    patch: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


RESIZES_SINCE: Final = Version(1, 33)
"""The first Kubernetes, API server and kubelet, that changes the shares of running pods without being told to."""

CLAIMS_RESIZE_SINCE: Final = Version(1, 37)
"""The first Kubernetes whose API server changes the shares of a pod with resource claims."""


@lru_cache(maxsize=64)  # every pod and node has one, and they are few
def version_in(written: str) -> Version | None:
    """Return the version that ``written`` begins with, such as ``v1.33.13-eks-ab12`` or ``1.33+``; None for none."""
    found = _WRITTEN.match(written)
    return None if found is None else Version(int(found[1]), int(found[2]), int(found[3] or 0))


def server_version(answer: Json) -> Version | None:
    """Return the version in what an API server answers at ``/version``."""
    return version_in(text(answer, "gitVersion", most=128))


def has_resize(resources: Json) -> bool:
    """Return whether ``resources``, what an API server answers at ``/api/v1``, have the subresource for resizes."""
    return any(text(resource, "name", most=128) == "pods/resize" for resource in mappings(resources, "resources"))


def argo_version(pod: Json) -> Version | None:
    """Return the version of the Argo that made ``pod``, by the tag of the image of Argo's own containers.

    An image of another name, or one that is named by its checksum alone, tells none.
    """
    for where in ("initContainers", "containers"):
        for container in mappings(pod, "spec", where):
            tagged = _TAGGED.fullmatch(text(container, "image", most=512))
            if tagged is not None and text(container, "name") in _HELPERS:
                return version_in(tagged[1])
    return None
