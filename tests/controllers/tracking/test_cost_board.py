"""The runs of trials and sweeps show what these have cost, and are not written to for every cent."""

from dataclasses import replace

import pytest

from controllers.core.bill import Bill
from controllers.core.model import TrialId
from controllers.tracking.cost_board import CostBoard, sweep_costs
from mlflow_hooks import contract

A, B = TrialId("uid.sweep.a"), TrialId("uid.other.b")


class Costs:
    """A bill that grows, and the board of it."""

    def __init__(self) -> None:
        self.bill = Bill(trials={A: 1.0, B: 3.0}, idle=1.0)
        self.over = False
        self.board = CostBoard(
            lambda: self.bill, lambda: {A: "run-a"}, lambda: {"uid.sweep": "run-s"}, lambda: self.over
        )

    def write(self) -> dict[str, str]:
        """Write what is due, and return it by run."""
        written = {}
        for name, run, news in self.board.due(also_minor=True):
            self.board.writes(name, news)
            self.board.wrote(name, news)
            written[run] = news[contract.TAG_COST]
        return written


def test_trials_and_sweeps_with_a_run_show_their_cost() -> None:
    assert Costs().write() == {"run-s": "1.25", "run-a": "1"}


def test_what_stood_idle_is_split_by_what_each_sweep_held() -> None:
    assert sweep_costs(Bill(trials={A: 1.0, B: 3.0}, idle=1.0)) == {
        "uid.sweep": pytest.approx(1.25),
        "uid.other": pytest.approx(3.75),
    }


def test_a_little_more_is_written_only_once_the_sweep_is_over() -> None:
    costs = Costs()
    costs.write()
    costs.bill = replace(costs.bill, trials={A: 1.01, B: 3.0})
    assert costs.write() == {}
    costs.over = True
    assert costs.write()["run-a"] == "1.01"
    assert costs.write() == {}


def test_without_prices_nothing_is_written() -> None:
    costs = Costs()
    costs.bill = Bill()
    assert costs.write() == {}
