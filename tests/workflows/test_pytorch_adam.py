import pytest

pytest.importorskip("torch")

import torch

from workflows.jobs.pytorch.adam import Adam

pytestmark = [pytest.mark.pytorch, pytest.mark.slow]


def test_takes_the_same_path_as_the_frameworks_own() -> None:
    torch.manual_seed(0)
    ours, theirs = torch.nn.Linear(5, 3), torch.nn.Linear(5, 3)
    theirs.load_state_dict(ours.state_dict())
    steppers = ((ours, Adam(ours.parameters(), lr=0.05)), (theirs, torch.optim.Adam(theirs.parameters(), lr=0.05)))
    for _ in range(20):
        inputs = torch.randn(8, 5)
        for model, optimizer in steppers:
            optimizer.zero_grad()
            model(inputs).pow(4).sum().backward()
            optimizer.step()
    torch.testing.assert_close(ours.state_dict(), theirs.state_dict())
