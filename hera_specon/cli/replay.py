"""``specon replay``: what another policy would have made of a sweep that already ran."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from hera_specon.cli.backend import parsed
from hera_specon.cli.options import STDOUT, Cores, NewFile, NodeCount

if TYPE_CHECKING:
    from controllers.core.policy import Policy
    from hera_specon.replay.replaying import Replayed

_WIDE = 160
"""Columns where the output is no terminal, so that nothing is cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for on the command line."""

    sweep: str
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


@click.command(short_help="Say what another policy would have made of a sweep that already ran.")
@click.argument("sweep", metavar="EXPERIMENT_OR_RUN")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    default=("default", "specon+flowcon"),
    show_default=True,
    metavar="NAME[:PARAM=VALUE,...][+...]",
    help="Policy to simulate; `specon policies` lists them. Given several times, the later ones are compared with "
    "the first.",
)
@click.option("--nodes", type=NodeCount(), help="Nodes to simulate on.  [default: those that it ran on]")
@click.option("--cpus-per-node", type=Cores(), help="Cores of each node.  [default: as they were]")
@click.option("--seeds", type=click.IntRange(1, 10_000), default=30, show_default=True, help="Times to simulate each.")
@click.option("--objective", metavar="METRIC", help="Metric that says how good a model is, where the record does not.")
@click.option(
    "--direction",
    type=click.Choice(["minimize", "maximize"]),
    help="Which way it improves.  [default: as recorded, else as most of the curves went]",
)
@click.option(
    "--costs",
    type=click.Choice(["local", "argo", "thesis", "free"]),
    help="What a start, a move and a resize cost where the record does not tell.  [default: as measured where it ran]",
)
@click.option(
    "--cores-per-trial",
    type=Cores(),
    default=1.0,
    show_default=True,
    help="Cores that a trial can use, where it did not count its CPU seconds.",
)
@click.option(
    "--json", "json_out", type=NewFile(stdout=True), help="Write the figures as JSON to this file; - for stdout."
)
@click.option(
    "--workload-out",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write the rebuilt sweep as a workload into this new folder.",
)
@click.option(
    "--mlflow-tracking-uri", metavar="URL", help="MLflow that knows the sweep.  [default: MLFLOW_TRACKING_URI]"
)
@click.option(
    "--state-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".specon"),
    show_default=True,
    help="Folder that `specon run` keeps its runs in.",
)
def replay(**options: Any) -> None:  # noqa: ANN401 - options as click hands them over
    """Rebuild a past sweep from its record and simulate policies over it, many times.

    EXPERIMENT_OR_RUN is the name or folder of a run on this machine; a sweep in a cluster by its
    workflow's name, its id, or its run in MLflow; or, in any MLflow, an experiment or a run with
    nested runs that have a metric and timestamps.

    Each seed draws anew what is uncertain: the work of a trial, the noise of its metric, ties between
    nodes. The first table says how well the simulation repeats what really happened: believe no
    difference that is smaller than that.

    \b
    Examples:
      specon replay demo-3
      specon replay demo-3 --policy default --policy specon:alpha=0.05 --policy flowcon --seeds 100
      specon replay vae-sweep-x7k2p --cpus-per-node 4 --mlflow-tracking-uri http://127.0.0.1:5000

    Without CPU seconds in its metrics, a sweep's work is taken from timestamps, as if its trials had
    shared evenly the nodes that you name:

    \b
      specon replay my-experiment --nodes 4 --cpus-per-node 16 --cores-per-trial 4 --objective val_loss

    Exit codes: 0 done, 2 something in the command or the record is wrong.
    """  # noqa: D301 - \b keeps click from filling the lines after it
    request = Request(**options)
    policies = _policies(request.policies)
    done = _replayed(request, policies)
    if request.workload_out is not None:
        from controllers.lab.simulation.workload_file import write_workload  # noqa: PLC0415 - `specon --help` must not wait

        write_workload(done.recording.workload, request.workload_out)
    _tell(request, done)


def _policies(specs: Sequence[str]) -> "Mapping[str, Policy[Any]]":
    from controllers.policies.registry import parse_policy  # noqa: PLC0415 - `specon --help` must not wait for it

    return {spec: parsed(parse_policy, spec, "--policy") for spec in specs}


def _replayed(request: Request, policies: "Mapping[str, Policy[Any]]") -> "Replayed":
    from controllers.core.model import Direction  # noqa: PLC0415
    from controllers.tracking.access import be_impatient  # noqa: PLC0415 - `specon --help` must not wait for these
    from hera_specon.replay import replaying, sources  # noqa: PLC0415
    from hera_specon.replay.past_sweeps import Objective  # noqa: PLC0415

    be_impatient()
    uri = request.mlflow_tracking_uri or os.environ.get("MLFLOW_TRACKING_URI")
    objective = Objective(request.objective, Direction(request.direction) if request.direction else None)
    past = sources.find_past(request.sweep, sources.Where(request.state_dir, uri, request.cpus_per_node, objective))
    what_if = replaying.WhatIf(request.nodes, request.cpus_per_node, request.costs, request.cores_per_trial)
    with _bar(replaying.simulations(past, request.policies, request.seeds)) as advanced:
        return replaying.replay(past, what_if, policies, request.seeds, advanced)


@contextmanager
def _bar(runs: int) -> Iterator[Callable[[], None]]:
    """Show how many of ``runs`` are simulated, on a terminal."""
    from rich.progress import Progress  # noqa: PLC0415 - as above

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("simulating", total=runs)
        yield lambda: progress.advance(task)


def _tell(request: Request, done: "Replayed") -> None:
    from hera_specon.display.simulated import replay_view  # noqa: PLC0415 - as above
    from hera_specon.replay.replaying import to_json  # noqa: PLC0415

    to_stdout = str(request.json_out) == STDOUT
    stream = sys.stderr if to_stdout else sys.stdout
    console = Console(file=stream, width=None if stream.isatty() else _WIDE)
    console.print(replay_view(done), highlight=False)
    if request.json_out is None:
        return
    text = json.dumps(to_json(done), indent=2) + "\n"
    if to_stdout:
        sys.stdout.write(text)
    else:
        request.json_out.write_text(text, encoding="utf-8")
