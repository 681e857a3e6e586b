"""``specon simulate``: published experiments, or your own workload, in virtual time."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from controllers.core.errors import SpeconError
from controllers.core.stop_rules import StopRules
from hera_specon.cli.backend import parse_spec
from hera_specon.cli.options import NodeCount, json_file_option, policies_option
from hera_specon.cli.output import open_console, progress_bar, write_json
from hera_specon.cli.stop_option import stop_option

if TYPE_CHECKING:
    from controllers.lab.simulation.evaluation import ExperimentPlan
    from controllers.lab.simulation.experiments.experiment import Setup

_WIDE = 240
"""Columns where the output is no terminal, so that nothing is cut off."""
_TRIALS = 20
_NODES = 4


class ExperimentError(SpeconError):
    """What to simulate is missing, or is no workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateRequest:
    """What was asked for on the command line."""

    experiments: tuple[str, ...]
    every: bool
    policies: tuple[str, ...]
    objective: str | None
    direction: str | None
    trials: int | None
    nodes: int | None
    search: str | None
    stop: StopRules
    seeds: int
    processes: int | None
    json_out: Path | None

    @property
    def sweep_options(self) -> dict[str, str | int | None]:
        """What says how sweeps are drawn from a table of curves, by option."""
        return {
            "--objective": self.objective,
            "--direction": self.direction,
            "--trials": self.trials,
            "--nodes": self.nodes,
            "--search": self.search,
        }


@click.command(short_help="Compare policies in virtual time: published experiments, or a workload of your own.")
@click.argument("experiments", nargs=-1, metavar="[EXPERIMENT]...")
@click.option("--all", "every", is_flag=True, help="Simulate every experiment that has a name.")
@policies_option(
    "Policy to simulate; `specon policies` lists them. The first is the baseline of the others. Parameters that you "
    "leave out are the experiment's published ones.  [default: the policies that were published]"
)
@click.option("--objective", metavar="METRIC", help="Column of a table of curves that says how good a model is.")
@click.option(
    "--direction",
    type=click.Choice(["minimize", "maximize"]),
    help="Which way the objective of a table of curves improves.  [default: minimize]",
)
@click.option(
    "--trials", type=click.IntRange(min=1), help=f"Trials to draw from a table of curves.  [default: {_TRIALS}]"
)
@click.option("--nodes", type=NodeCount(), help=f"Nodes of 16 cores to run these on.  [default: {_NODES}]")
@click.option(
    "--search",
    metavar="SAMPLER",
    help="Let a search give these their hyperparameters as they start: tpe, cmaes, random, or a class of "
    "optuna.samplers. A trial trains as the nearest configuration of the table did.",
)
@stop_option("none: all trials train to their end")
@click.option(
    "--seeds", type=click.IntRange(min=1), default=30, show_default=True, help="Random draws of each experiment."
)
@click.option("--processes", type=click.IntRange(min=1), help="Processes to use.  [default: one per core]")
@json_file_option
def simulate(**options: Any) -> None:  # noqa: ANN401 - options as click hands them over
    """Simulate EXPERIMENT under several policies, over many seeds, and compare.

    EXPERIMENT is one of these, with each paper's own measures beside the times:

    \b
      F1 to F5  FlowCon            P1                   ProCon
      S1 to S6  SpeCon             B1                   C-Balancer
      G1 to G3  FlowCon 2.0        T1                   TRADL: targets
      D1, D2    deadlines          Q1                   DQoES: times per step
      V1 to V3  whole devices, such as GPUs: all at once, as they arrive, beside trials without
      V4 to V6  devices of unlike speed, devices that trials share (V5-light: with little use for them), partitions
      A1 to A25 everyday sweeps: all at once, more than fit, a laptop, ... (docs/reference/command-line.md)
      N1 to N4  many nodes: 30 or 100, equal or unlike, all trials at once or within minutes
      L1, L2    lengths that follow from hyperparameters, and that do not
      C1 to C4  sweeps that look for the best model: 30 or 100 trials, 4 or 16 at a time; C2-spare, C4-spare: each
                can use more cores than it asks for; C4-constant, C4-cosine, C4-one-cycle: by schedule of the
                learning rate; C1-random, C1-tpe: hyperparameters from a search
      D1-half, D1-most, D2-half, D2-most: the same jobs, but asking for half or all of the cores they can use;
      D1-crowded: the same jobs, where they slow each other down
      E1        elastic gangs: jobs of one to four workers that arrive over time, like DRAGON's
      X0 to X6  machines that others use too: a dip, noise, a slow node, stolen time; X6: gangs; X1-blind to
                X5-blind: trials do not tell how long they wait for a CPU
      Z1 to Z4  nodes that come and go, from none and back to none; Y1 to Y3: spot nodes that are taken, with no
                notice, 15 s and 120 s of it. Node hours and costs stand beside the times
      L1-blind: L1 without its hyperparameters; L1-narrow, L1-narrow-blind: where trials can use what they request

    Or a folder with the tables of a workload, or a table of learning curves from which each seed draws a sweep
    (docs/reference/workload-files.md). There, starts and moves cost what was measured on Argo.

    The policies and the controller are those that run on this machine and in a cluster; only time is simulated. Each
    seed draws new jobs, arrivals and noise. All policies start from the same placement, except those that place
    trials themselves. Published figures stand below ours; docs/experiments explains them.

    \b
    Examples:
      specon simulate S4 --policy default --policy specon --seeds 30
      specon simulate F1 F2
      specon simulate S6 --policy default --policy ahead --policy shortest-remaining
      specon simulate D1 D1-half D1-most
      specon simulate --all --json figures.json
      specon simulate my-trials --policy default --policy specon:interval=10
      specon simulate curves.csv.gz --objective val_accuracy --direction maximize --trials 30
      specon simulate C4 --policy default --policy promote:finish=best --policy optuna:pruner=asha

    Times are in seconds, with a 95 % confidence interval; "x bound" is the makespan as a multiple of a lower bound
    that no policy can beat.

    Exit codes: 0 done, 2 the command or a file is wrong, 130 interrupted.
    """  # noqa: D301 - \b keeps click from filling the lines after it
    from controllers.lab.simulation.evaluation import run_plans, to_json  # noqa: PLC0415 - `specon --help` must not wait
    from hera_specon.display.simulated import experiment_table  # noqa: PLC0415

    request = SimulateRequest(**options)
    orders = _orders(request)
    console = open_console(request.json_out, _WIDE)
    total = sum(len(order.policies) for order in orders) * request.seeds
    with progress_bar(console, "simulating", "runs", total) as advance:
        summaries = run_plans(orders, range(request.seeds), advance, processes=request.processes)
    for order in orders:
        own = [summary for summary in summaries if summary.experiment == order.experiment.id]
        console.print(experiment_table(order.experiment, own), highlight=False)
    if request.json_out is not None:
        write_json(request.json_out, to_json(summaries))


def _orders(request: SimulateRequest) -> "list[ExperimentPlan]":
    """Return what to simulate: each experiment with its policies."""
    from controllers.lab.simulation.evaluation import ExperimentPlan  # noqa: PLC0415 - `specon --help` must not wait for these
    from controllers.lab.simulation.experiments import EVERY_EXPERIMENT  # noqa: PLC0415
    from controllers.policies.registry import parse_policy  # noqa: PLC0415

    for spec in request.policies:
        parse_spec(parse_policy, spec, "--policy")
    setups = [_setup(name, request) for name in request.experiments]
    names = [setup.id for setup in setups]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        message = f"{twice[0]!r} is named twice."
        raise ExperimentError(message)
    if request.every:
        setups += [setup for name, setup in EVERY_EXPERIMENT.items() if name not in names]
    if not setups:
        message = f"Name an experiment ({', '.join(EVERY_EXPERIMENT)}), a workload, a table of curves, or --all."
        raise ExperimentError(message)
    given = [f"{option} {value}" for option, value in request.sweep_options.items() if value is not None]
    if given and not any(Path(name).is_file() for name in names):
        message = f"{given[0]} says how to draw a sweep from a table of learning curves, but none is named."
        raise ExperimentError(message)
    for setup in setups:
        _check_stop(setup, request.stop)
    return [ExperimentPlan(setup, request.policies or setup.policies, stops=request.stop) for setup in setups]


def _check_stop(setup: "Setup", stop: StopRules) -> None:
    """Refuse a terminator where nothing searches: it would end no run."""
    from controllers.search import why_no_terminator  # noqa: PLC0415 - `specon --help` must not wait for it

    search = next((trial.search for trial in setup.workload(0).trials), "") if stop.terminator else ""
    if why_not := why_no_terminator(stop, search, several=False):
        message = f"--stop in {setup.id}: {why_not}. C1-tpe has a search, and so has a table of curves with --search"
        raise ExperimentError(message)


def _setup(name: str, request: SimulateRequest) -> "Setup":
    """Return the experiment of that name, or the workload or table of curves in that folder or file."""
    from controllers.core.model import Direction  # noqa: PLC0415 - `specon --help` must not wait for these
    from controllers.lab.simulation.experiments import EVERY_EXPERIMENT, experiment_named  # noqa: PLC0415
    from controllers.lab.simulation.experiments.curve_sweep import curve_sweep, metrics_in  # noqa: PLC0415
    from controllers.lab.simulation.experiments.experiment import given_workload  # noqa: PLC0415
    from controllers.lab.simulation.workload_file import read_workload  # noqa: PLC0415
    from controllers.policies.kit.settings import suggestion  # noqa: PLC0415

    path = Path(name)
    if known := experiment_named(name):
        return known
    if path.is_dir():
        return given_workload(name, read_workload(path))
    if not path.exists():
        nearest = suggestion(name[:1].upper() + name[1:], EVERY_EXPERIMENT)
        message = f"No experiment and no file {name!r}{nearest}, or a workload or a table of curves"
        raise ExperimentError(message)
    metrics = metrics_in(path)
    if request.objective not in metrics:
        asked = f" no metric {request.objective!r}, but" if request.objective else ""
        message = f"{path} has{asked} {', '.join(metrics) or 'no metrics'}: name the objective with --objective."
        raise ExperimentError(message)
    direction = Direction(request.direction or Direction.MINIMIZE)
    trials, nodes = request.trials or _TRIALS, request.nodes or _NODES
    return curve_sweep(path, request.objective, direction, trials, nodes, request.search or "")
