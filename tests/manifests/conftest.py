"""What the tests of the chart share."""

import pytest

from tests.cluster.commands import ClusterError
from tests.manifests.helm import find_helm


@pytest.fixture(scope="session")
def helm() -> str:
    try:
        return find_helm()
    except ClusterError as error:
        pytest.skip(f"THE HELM CHART IS NOT TRIED: there is no helm, and it cannot be built: {error}")
