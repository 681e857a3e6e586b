"""``specon replay``: simulate sweeps that already ran under other policies."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hera_specon.cli.backend import parse_spec
from hera_specon.cli.options import CoreCount, NodeCount, json_file_option, policies_option, state_dir_option
from hera_specon.cli.output import open_console, progress_bar, write_json
from hera_specon.display.console import SafeConsole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controllers.core.policy import Policy
    from hera_specon.replay.replaying import WhatIf
    from hera_specon.replay.sources import Past, Where

_WIDE = 160
"""Columns where the output is no terminal, so that nothing is cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest:
    """What was asked for on the command line."""

    sweeps: tuple[str, ...]
    every: bool
    policies: tuple[str, ...]
    nodes: int | None
    cpus_per_node: float | None
    seeds: int
    objective: str | None
    direction: str | None
    costs: str | None
    cores_per_trial: float
    json_out: Path | None
    workload_out: Path | None
    mlflow_tracking_uri: str | None
    state_dir: Path


@click.command(short_help="Estimate how past sweeps would have gone under other policies.")
@click.argument("sweeps", nargs=-1, metavar="EXPERIMENT_OR_RUN...")
@click.option("--all", "every", is_flag=True, help="Replay every run on this machine that is over.")
@policies_option(
    "Policy to simulate; `specon policies` lists them. With several, the later ones are compared with the first.",
    default=("default", "ahead"),
    show_default=True,
)
@click.option("--nodes", type=NodeCount(), help="Nodes to simulate on.  [default: those it ran on]")
@click.option("--cpus-per-node", type=CoreCount(), help="Cores of each node.  [default: as they were]")
@click.option(
    "--seeds", type=click.IntRange(1, 10_000), default=30, show_default=True, help="Times to simulate each policy."
)
@click.option("--objective", metavar="METRIC", help="Metric that says how good a model is, if the record does not.")
@click.option(
    "--direction",
    type=click.Choice(["minimize", "maximize"]),
    help="Which way the objective improves.  [default: as recorded, else as most curves went]",
)
@click.option(
    "--costs",
    type=click.Choice(["local", "argo", "thesis", "free"]),
    help="What a start, a move and a resize cost, if the record does not say.  [default: as measured where it ran]",
)
@click.option(
    "--cores-per-trial",
    type=CoreCount(),
    default=1.0,
    show_default=True,
    help="CoreCount that a trial can use, if it did not count its CPU seconds.",
)
@json_file_option
@click.option(
    "--workload-out",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write the rebuilt sweep as a workload into this new folder.",
)
@click.option(
    "--mlflow-tracking-uri", metavar="URL", help="MLflow that knows the sweep.  [default: MLFLOW_TRACKING_URI]"
)
@state_dir_option("Folder that `specon run` keeps its runs in.")
def replay(**options: Any) -> None:  # noqa: ANN401 - options as click hands them over
    """Rebuild past sweeps from their records and simulate policies over them, many times.

    EXPERIMENT_OR_RUN is the name or folder of a run on this machine; a sweep in a cluster by its
    workflow's name, its id, or its run in MLflow; or, in any MLflow, an experiment or a run with
    nested runs that have a metric and timestamps.

    Each seed draws again what is uncertain: the work of a trial, the noise of its metric, ties between
    nodes. The first table says how far the simulation is from what really happened: do not trust a
    difference smaller than that.

    \b
    Examples:
      specon replay demo-3
      specon replay demo-3 --policy default --policy specon:alpha=0.05 --policy flowcon --seeds 100
      specon replay demo-3 --policy default --policy promote:finish=best+ahead
      specon replay vae-sweep-x7k2p --cpus-per-node 4 --mlflow-tracking-uri http://127.0.0.1:5000

    For a policy that ends trials early, the table says whether it would have kept your best model. Name
    several sweeps, or --all, to hold a promised risk against them:

    \b
      specon replay --all --policy default --policy promote:finish=best

    If the sweep logged no CPU seconds, its work is estimated from timestamps, as if its trials had
    shared the nodes that you name evenly:

    \b
      specon replay my-experiment --nodes 4 --cpus-per-node 16 --cores-per-trial 4 --objective val_loss

    Exit codes: 0 done, 2 the command or the record is wrong.
    """  # noqa: D301 - \b keeps click from filling the lines after it
    request = ReplayRequest(**options)
    if bool(request.sweeps) is request.every:
        message = "Name one sweep or several, or give --all for every run on this machine."
        raise click.UsageError(message)
    sweeps = tuple(dict.fromkeys(request.sweeps))
    if request.every or len(sweeps) > 1:
        _replay_several(request, sweeps)
    else:
        _replay_one(request, sweeps[0])


def _replay_one(request: ReplayRequest, sweep: str) -> None:
    from hera_specon.display.simulated import replay_view  # noqa: PLC0415 - `specon --help` must not wait for these
    from hera_specon.replay import replaying, sources  # noqa: PLC0415

    policies, where, what_if = _asked(request)
    past = sources.find_past(sweep, where)
    with progress_bar(SafeConsole(stderr=True), "simulating", "runs", _runs(request, [past])) as advance:
        done = replaying.replay(past, what_if, policies, request.seeds, lambda: advance(1))
    if request.workload_out is not None:
        from controllers.lab.simulation.workload_file import write_workload  # noqa: PLC0415 - as above

        write_workload(done.recording.workload, request.workload_out)
    open_console(request.json_out, _WIDE).print(replay_view(done), highlight=False)
    if request.json_out is not None:
        write_json(request.json_out, replaying.to_json(done))


def _replay_several(request: ReplayRequest, sweeps: tuple[str, ...]) -> None:
    from hera_specon.display.replayed_sweeps import replayed_sweeps_view  # noqa: PLC0415 - `specon --help` must not wait
    from hera_specon.replay.several import checked_past, every_past, replay_all  # noqa: PLC0415

    if request.workload_out is not None:
        message = f"--workload-out {request.workload_out} holds one sweep: name one."
        raise click.UsageError(message)
    policies, where, what_if = _asked(request)
    left_out: list[str] = []
    if request.every:
        pasts, left_out = every_past(where, what_if)
    else:
        pasts = [checked_past(sweep, where, what_if) for sweep in sweeps]
    with progress_bar(SafeConsole(stderr=True), "simulating", "runs", _runs(request, pasts)) as advance:
        done = replay_all(pasts, what_if, policies, request.seeds, lambda: advance(1))
    done = replace(done, left_out=tuple(left_out))
    open_console(request.json_out, _WIDE).print(replayed_sweeps_view(done), highlight=False)
    if request.json_out is not None:
        write_json(request.json_out, done.to_dict())


def _asked(request: ReplayRequest) -> "tuple[dict[str, Policy[Any]], Where, WhatIf]":
    """Return the policies, where to look, and what to simulate on."""
    from controllers.core.model import Direction  # noqa: PLC0415 - `specon --help` must not wait for these
    from controllers.policies.registry import parse_policy  # noqa: PLC0415
    from controllers.tracking.access import be_impatient  # noqa: PLC0415
    from hera_specon.replay import replaying, sources  # noqa: PLC0415
    from hera_specon.replay.past_sweeps import KnownObjective  # noqa: PLC0415

    policies = {spec: parse_spec(parse_policy, spec, "--policy") for spec in request.policies}
    be_impatient()
    uri = request.mlflow_tracking_uri or os.environ.get("MLFLOW_TRACKING_URI")
    objective = KnownObjective(request.objective, Direction(request.direction) if request.direction else None)
    where = sources.Where(request.state_dir, uri, request.cpus_per_node, objective)
    return (
        policies,
        where,
        replaying.WhatIf(request.nodes, request.cpus_per_node, request.costs, request.cores_per_trial),
    )


def _runs(request: ReplayRequest, pasts: "Sequence[Past]") -> int:
    """Return how many runs are simulated."""
    from hera_specon.replay.replaying import simulations  # noqa: PLC0415 - as above

    return sum(simulations(past, request.policies, request.seeds) for past in pasts)
