"""What tests say where no cluster can be had."""

import os
from typing import Final

import pytest

from tests.cluster.building import is_built
from tests.cluster.obstacles import obstacles

# Set to 1 where it is all right that the tests are skipped for want of a cluster.
OPTIONAL: Final = "HERA_SPECON_CLUSTER_OPTIONAL"
NOT_BUILT: Final = "its programs are not built yet: python -m tests.cluster build (make test-cluster does that first)"


def require_a_capable_machine() -> None:
    """Fail the test, or skip it where that was allowed, if no cluster can be brought up here."""
    found = obstacles() or ([] if is_built() else [NOT_BUILT])
    if found:
        reasons = "\n".join(("no cluster can be brought up on this machine:", *(f"- {reason}" for reason in found)))
        if os.environ.get(OPTIONAL) == "1":
            pytest.skip(reasons)
        pytest.fail(f"{reasons}\n({OPTIONAL}=1 skips these tests instead)", pytrace=False)
