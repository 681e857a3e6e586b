"""What a workflow is taken to need is what Argo's record of it takes."""

from typing import Any

import pytest

from benchmarks.workflow_sizes import packed, record_of, workflow_of
from hera_specon import every
from hera_specon.submission.size import size_of


@pytest.mark.parametrize("settings", [{}, {"hyperparameters": 11}, {"arrivals": every(5)}])
def test_the_record_is_estimated_a_little_too_large_rather_than_too_small(settings: dict[str, Any]) -> None:
    workflow = workflow_of(300, **settings)
    assert packed(record_of(workflow)) <= size_of(workflow).record <= 1.35 * packed(record_of(workflow))
