"""``specon clean``: remove checkpoints that sweeps left behind."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource
from rich.table import Table

from hera_specon.cli.options import json_file_option, state_dir_option
from hera_specon.cli.output import open_console, write_json
from hera_specon.formatting import one_line, seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hera_specon.records.checkpoints_left import Leftover

_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_LARGER: Final = 1000.0


class Age(click.ParamType[float]):
    """A span of time, such as 30d."""

    name = "age"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return ``value`` in seconds."""
        if isinstance(value, float):
            return value
        given = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", str(value).strip())
        if given is None:
            self.fail(f"{str(value)!r} is no span of time; write it like 12h, 30d or 4w.", param, ctx)
        return float(given[1]) * _UNITS[given[2]]


@click.command(short_help="Remove checkpoints that sweeps left behind; shows them first.")
@click.argument("runs", nargs=-1)
@click.option(
    "--keep",
    type=click.Choice(["best", "newest", "none"]),
    default="best",
    show_default=True,
    help="Which checkpoints stay: the newest of the best trial, the newest of each, or none.",
)
@click.option(
    "--older-than", type=Age(), default="0s", help="Only what nobody has written to for so long: 12h, 30d, 4w."
)
@click.option("--state", metavar="ADDRESS", help="Clean a store of objects instead, such as s3://bucket/prefix.")
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Clean a volume of a cluster's trials instead, where it is mounted here.",
)
@click.option(
    "--dead",
    is_flag=True,
    help="Also sweeps with trials that never ended: they died, or still wait. With --older-than only.",
)
@click.option("--yes", is_flag=True, help="Remove them. Without this, nothing is removed.")
@json_file_option
@state_dir_option("Folder that `specon run` keeps its runs in.")
@click.pass_context
def clean(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401 - click's own
    """Show what checkpoints of sweeps that are over take, and remove them with --yes.

    RUNS are names or folders of runs on this machine (default: all). Runs that are not over keep
    theirs. MLflow's runs and artifacts, results and reports always stay. A trial whose checkpoint is
    gone cannot go on with `specon resume` or `run --extend`: it would begin again.

    With --state, sweeps whose trials have all ended go as a whole. With --folder, all their checkpoints
    go, or all but the newest of each trial with --keep newest. A trial that died for good never said
    that it ended, and its sweep stays; --dead takes such sweeps as well.

    \b
    Examples:
      specon clean
      specon clean --keep newest --older-than 30d --yes
      specon clean --state s3://bucket/prefix --older-than 4w
      specon clean --folder /mnt/specon --keep newest
      specon clean --folder /mnt/specon --dead --older-than 30d
    """  # noqa: D301 - \b keeps click from filling the lines after it
    _check(options, keep_given=ctx.get_parameter_source("keep") is not ParameterSource.DEFAULT)
    if options["state"]:
        leftovers, remove = _in_store(options)
    else:
        leftovers, remove = _on_volume(options) if options["folder"] else _here(options)
    console = open_console(options["json_out"])
    if options["json_out"] is not None:
        write_json(
            options["json_out"], {"removed": options["yes"], "found": [_fields(leftover) for leftover in leftovers]}
        )
    if not leftovers:
        console.print("There is nothing to remove.")
        return
    console.print(_table(leftovers))
    total = size(sum(leftover.size for leftover in leftovers))
    if not options["yes"]:
        console.print(f"{total} would be free. Nothing was removed; add --yes to remove this.")
        return
    for leftover in leftovers:
        remove(leftover)
    console.print(f"{total} are free.")


def _check(options: dict[str, Any], *, keep_given: bool) -> None:
    """Refuse what makes no sense together.

    Raises:
        click.UsageError: says what to leave out.
    """
    elsewhere = [name for name in ("state", "folder") if options[name]]
    message = ""
    if len(elsewhere) > 1:
        message = "--state and --folder are two places: clean one after the other."
    elif elsewhere and options["runs"]:
        message = f"--{elsewhere[0]} cleans a place as a whole; leave out {options['runs'][0]!r}, or --{elsewhere[0]}."
    elif options["state"] and keep_given:
        message = "--state removes sweeps as a whole; leave --keep out."
    elif options["dead"] and not elsewhere:
        message = "--dead is for --state and --folder: of runs on this machine it is known whether they are over."
    elif options["dead"] and not options["older_than"]:
        message = "--dead may take what trials still need: name an --older-than, such as 30d."
    elif options["folder"] and keep_given and options["keep"] == "best":
        message = "Which trial is the best, a volume does not tell: --keep newest or none."
    if message:
        raise click.UsageError(message)


def _on_volume(options: dict[str, Any]) -> "tuple[Sequence[Leftover], Callable[[Leftover], object]]":
    from controllers.core.labels import Keep  # noqa: PLC0415 - `specon --help` must not wait for these
    from hera_specon.records.checkpoints_left import left_on, remove_here  # noqa: PLC0415

    # None by default, as in a store: the best is not known.
    keep = Keep.NEWEST if options["keep"] == "newest" else Keep.NONE
    return list(left_on(options["folder"], keep, options["older_than"], dead=options["dead"])), remove_here


def _here(options: dict[str, Any]) -> "tuple[Sequence[Leftover], Callable[[Leftover], object]]":
    from controllers.core.labels import Keep  # noqa: PLC0415 - as in other commands
    from hera_specon.records.checkpoints_left import left_here, remove_here  # noqa: PLC0415
    from hera_specon.records.run_folder import find_run, known_runs  # noqa: PLC0415

    state_dir: Path = options["state_dir"]
    folders = [find_run(run, state_dir) for run in options["runs"] or map(str, sorted(known_runs(state_dir)))]
    return list(left_here(folders, Keep(options["keep"]), options["older_than"])), remove_here


def _in_store(options: dict[str, Any]) -> "tuple[Sequence[Leftover], Callable[[Leftover], object]]":
    from hera_specon.records.checkpoints_left import left_in  # noqa: PLC0415 - `specon --help` must not wait for it
    from mlflow_hooks.errors import BadEnvironmentError  # noqa: PLC0415
    from mlflow_hooks.objects import StoreError  # noqa: PLC0415
    from mlflow_hooks.store_address import open_store  # noqa: PLC0415

    def told(do: "Callable[[], Sequence[Leftover] | None]") -> "Sequence[Leftover]":
        try:
            return do() or ()
        except (BadEnvironmentError, StoreError) as error:
            raise click.ClickException(one_line(str(error))) from error

    older_s, dead = options["older_than"], options["dead"]
    leftovers = told(lambda: list(left_in(open_store(options["state"]), older_s, dead=dead)))
    return leftovers, lambda leftover: told(lambda: open_store(options["state"]).remove(leftover.places))


def _table(leftovers: "Sequence[Leftover]") -> Table:
    table = Table(box=None)
    for name in ("sweep", "policy", "trials", "last written", "size"):
        table.add_column(name, justify="left" if name in {"sweep", "policy"} else "right")
    for leftover in leftovers:
        table.add_row(
            one_line(leftover.sweep),
            one_line(leftover.policy),
            f"{leftover.trials} ({leftover.unended} never ended)" if leftover.unended else str(leftover.trials),
            f"{seconds(leftover.age_s)} ago",
            size(leftover.size),
        )
    return table


def _fields(leftover: "Leftover") -> dict[str, object]:
    return {
        "sweep": leftover.sweep,
        "policy": leftover.policy,
        "trials": leftover.trials,
        "unended": leftover.unended,
        "bytes": leftover.size,
        "age_s": round(leftover.age_s),
    }


def size(count: float) -> str:
    """Return a number of bytes such as ``3.2 MB``."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < _LARGER:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= _LARGER
    return f"{count:.1f} TB"
