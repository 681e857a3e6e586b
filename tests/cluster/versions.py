"""The versions of all that a test cluster is made of."""

from typing import Final

KUBERNETES: Final = "v1.36.2"
ARGO: Final = "v4.0.7"
CONTAINER_SANDBOX_IMAGE: Final = "hera-specon.io/pause:1"
ARGOEXEC_IMAGE: Final = f"hera-specon.io/argoexec:{ARGO}"
SHELL_IMAGE: Final = "hera-specon.io/shell:1"
