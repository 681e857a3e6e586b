"""The versions of all that a test cluster is made of."""

import os
import re
from dataclasses import dataclass
from typing import Final, Self

from tests.cluster.commands import ClusterError

CHOSEN_BY: Final = "HERA_SPECON_CLUSTER_VERSIONS"
"""The environment variable that chooses other versions, such as ``1.33.13+3.6.18``, for all that this process does."""
_WRITTEN: Final = re.compile(r"v?(1\.\d+\.\d+)\+v?([34]\.\d+\.\d+)")


@dataclass(frozen=True)
class Versions:
    """A Kubernetes and an Argo Workflows that run together, each written as its module has it."""

    kubernetes: str
    argo: str

    @classmethod
    def read(cls, written: str) -> Self:
        """Read what people write.

        Raises:
            ClusterError: it is nothing of the kind.
        """
        found = _WRITTEN.fullmatch(written)
        if found is None:
            message = f"{written!r} is not like 1.33.13+3.6.18: a Kubernetes and an Argo Workflows, each with its patch"
            raise ClusterError(message)
        return cls(f"v{found[1]}", f"v{found[2]}")

    def __str__(self) -> str:
        return f"{self.kubernetes[1:]}+{self.argo[1:]}"

    @property
    def argo_module(self) -> str:
        """The module that this Argo is published as."""
        return f"github.com/argoproj/argo-workflows/{self.argo[:2]}"


PINNED: Final = Versions("v1.36.2", "v4.0.7")
"""Those whose modules stand here with the checksums of all that they need. CI runs these."""
USED: Final = Versions.read(os.environ.get(CHOSEN_BY) or str(PINNED))
KUBERNETES: Final = USED.kubernetes
ARGO: Final = USED.argo
CONTAINER_SANDBOX_IMAGE: Final = "hera-specon.io/pause:1"
ARGOEXEC_IMAGE: Final = f"hera-specon.io/argoexec:{ARGO}"
SHELL_IMAGE: Final = "hera-specon.io/shell:1"
