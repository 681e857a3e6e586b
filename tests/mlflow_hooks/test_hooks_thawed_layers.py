"""What changes of a PyTorch training while it trains comes back, or is refused at the first save."""

from pathlib import Path
from typing import Any

import pytest

from mlflow_hooks.errors import StateMismatchError
from mlflow_hooks.pytorch import TorchState, torch_state

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.pytorch


class Training:
    """Two layers; the optimizer may have the second only."""

    def __init__(self, *, both: bool = True) -> None:
        torch.manual_seed(1)
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1))
        trained = self.net if both else self.net[2]
        self.optimizer = torch.optim.SGD(trained.parameters(), lr=0.05, momentum=0.9)
        self.x = torch.randn(32, 4)

    def state(self) -> TorchState:
        return torch_state(self.net, self.optimizer)

    def step(self) -> float:
        self.optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(self.net(self.x), self.x.sin().sum(1, keepdim=True))
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())

    def steps(self, count: int) -> list[float]:
        return [self.step() for _ in range(count)]

    def frozen(self) -> "Training":
        self.net[0].requires_grad_(requires_grad=False)
        return self


def joined(training: Training) -> None:
    training.optimizer.add_param_group({"params": training.net[0].parameters(), "lr": 0.01})


def moved(to: Training, state: TorchState, folder: Path) -> TorchState:
    folder.mkdir()
    state.save(folder)
    there = to.state()
    there.load(folder)
    return there


def test_layers_thawed_or_frozen_and_modules_in_eval_mode_come_back_so(tmp_path: Path) -> None:
    there = Training().frozen()
    state = there.state()
    there.steps(3)
    there.net[0].requires_grad_(requires_grad=True)
    there.net[2].bias.requires_grad_(requires_grad=False)
    there.net[1].eval()
    there.steps(3)
    here = Training().frozen()
    moved(here, state, tmp_path / "1")
    assert [it.requires_grad for it in here.net.parameters()] == [True, True, True, True, True, False]
    assert [module.training for module in here.net] == [True, False, True]
    assert here.steps(5) == there.steps(5)


def test_parameters_that_joined_an_optimizer_join_it_again_however_often_it_moves(tmp_path: Path) -> None:
    there = Training(both=False)
    state = there.state()
    there.steps(3)
    joined(there)
    there.steps(3)
    here, last = Training(both=False), Training(both=False)
    state_here = moved(here, state, tmp_path / "1")
    moved(last, state_here, tmp_path / "2")
    assert [group["lr"] for group in last.optimizer.param_groups] == [0.05, 0.01]
    assert last.steps(5) == there.steps(5)


def test_a_parameter_that_joined_a_group_that_was_there_joins_that_one_again(tmp_path: Path) -> None:
    there = Training(both=False)
    state = there.state()
    there.optimizer.param_groups[0]["params"].append(there.net[0].weight)
    there.steps(3)
    here = Training(both=False)
    moved(here, state, tmp_path / "1")
    assert here.steps(5) == there.steps(5)


def test_a_group_of_parameters_of_no_part_is_refused_by_its_number_at_the_first_save(tmp_path: Path) -> None:
    training = Training()
    state = training.state()
    training.optimizer.add_param_group({"params": [torch.nn.Parameter(torch.zeros(1))]})
    with pytest.raises(StateMismatchError, match=r"parameter group 1 of part 1 .*\.add_param_group\(\) before"):
        state.save(tmp_path)


def test_a_layer_made_while_it_trains_is_refused_by_its_name_at_the_first_save(tmp_path: Path) -> None:
    training = Training()
    state = training.state()
    training.net.append(torch.nn.Linear(1, 1))
    with pytest.raises(StateMismatchError, match=r"part 0 .* '3.weight'"):
        state.save(tmp_path)


def test_a_checkpoint_of_an_earlier_version_is_still_read(tmp_path: Path) -> None:
    there = Training()
    state = there.state()
    there.steps(3)
    state.save(tmp_path)
    content = torch.load(tmp_path / "torch.pt", weights_only=True)
    torch.save({name: content[name] for name in ("parts", "cpu")}, tmp_path / "torch.pt")
    here = Training()
    here.state().load(tmp_path)
    assert here.steps(3) == there.steps(3)
