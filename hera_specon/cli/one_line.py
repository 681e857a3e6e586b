"""A sweep without a file of its own: a program, its hyperparameters and the objective, in one line."""

import shlex
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click

from hera_specon.assignments import ASSIGNMENT, FORMS, Assignments, read_assignments
from hera_specon.cli.backend import Backend, Workflow, chosen_workflow
from hera_specon.cli.options import Command
from hera_specon.cli.output import say
from hera_specon.cli.programs import command_of, existing_file, save
from hera_specon.errors import SweepError
from hera_specon.points import grid_size, points
from hera_specon.script_options import truth_flags, unknown_options
from hera_specon.settings import Objective, maximize, minimize
from hera_specon.space import Choice, Space
from hera_specon.written_sweep import BEFOREHAND, WrittenSweep, code_of
from mlflow_hooks.printed.named import NOT_IN_NAMES, ONLY_PRINTED, kept_name

TRIALS: Final = 20
"""Trials of a random draw where nobody says how many."""
_GIVEN: Final = "hera_specon.words_given"
_WORKFLOWS: Final = (".py", ".yaml", ".yml")
_HOW: Final = {"grid": "a grid: every combination", "random": "drawn at random"}


class OneLineCommand(click.Command):
    """A command whose line may end in ``-- COMMAND...``, the words of a program."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the words of the program from being read as options of ours."""
        place = args.index("--") if "--" in args else len(args)
        ctx.meta[_GIVEN] = tuple(args)
        return super().parse_args(ctx, args[:place])


@dataclass(frozen=True)
class SweepInFile:
    """A sweep that a file defines."""

    file: Path

    def workflow(self, backend: Backend) -> Workflow:
        """Return the workflow of the file."""
        return chosen_workflow(backend, self.file)


@dataclass(frozen=True)
class OneLine:
    """A sweep that the command line defines.

    ``told_objective`` tells whether somebody has said what the objective is. ``line`` has the words of the command
    line, ``short`` only those that define the sweep; ``saved`` is the file to write the sweep to, ``asked_metric`` the
    objective's name as given.
    """

    file: Path
    sweep: WrittenSweep
    told_objective: bool
    line: tuple[str, ...]
    short: str
    saved: Path | None = None
    asked_metric: str | None = None

    @property
    def source(self) -> str:
        """The text of the file that defines the sweep."""
        return self.sweep.source(self._notes())

    def workflow(self, backend: Backend) -> Workflow:
        """Say what is swept, write it where that was asked for, and return the workflow."""
        workflow = built(backend, self.sweep)
        for told in (*self._summary(), *self._warnings()):
            say(told, err=True)
        if self.saved is not None:
            save(self.source, self.saved, force=False)
            say(f"wrote the sweep to {self.saved}: specon run {self.saved} runs the same trials", err=True)
        return workflow

    def command(self, objective: Objective) -> str:
        """Return the command line that runs this sweep for ``objective``."""
        place = self.line.index("--") if "--" in self.line else len(self.line)
        chosen = () if self.told_objective else (f"--{objective.direction.value}", objective.metric)
        return shlex.join(("specon", "run", *self.line[:place], *chosen, *self.line[place:]))

    def _notes(self) -> Iterator[str]:
        """Yield what stands at the top of the file that the sweep is written to."""
        file = shlex.quote(str(self.saved))
        yield f"The sweep of {self.sweep.name} that this line defines:"
        yield f"  {' '.join(self.short.splitlines())}"
        yield ""
        yield f"specon run {file}      trains it on this machine"
        yield f"specon submit {file}   sends it to a cluster with Argo Workflows: first set image= below, and"
        yield "state_claim= to a volume for checkpoints (docs/how-to/submit-a-sweep.md)"

    def _summary(self) -> Iterator[str]:
        sweep = self.sweep
        space = ", ".join(f"{name}={code_of(values)}" for name, values in sweep.space.items())
        drawn = points(sweep.space, "grid" if sweep.search == "grid" else "random", sweep.trials, sweep.seed)
        yield f"{len(drawn)} trials ({_HOW.get(sweep.search, sweep.search)}): {space}"
        if sweep.search in BEFOREHAND:
            yield f"the first runs: {shlex.join(sweep.words(drawn[0]))}"

    def _warnings(self) -> Iterator[str]:
        for file in _scripts(self.sweep.command):
            yield from (f"Warning: {line}" for line in unknown_options(file, self.sweep.passed))
        kept = self.sweep.objective.metric
        if self.asked_metric not in {None, kept}:
            yield f"MLflow takes no metric of the name {self.asked_metric!r}: what is printed of it is kept as {kept!r}"


def _scripts(command: tuple[str, ...]) -> list[Path]:
    """Return the file of Python that ``command`` runs, if it is one of the user's own."""
    from controllers.worlds.local.processes.own_files import entry_files  # noqa: PLC0415 - `specon --help` must not wait

    return entry_files(command, Path())


def built(backend: Backend, sweep: WrittenSweep) -> Workflow:
    """Return the workflow of ``sweep``, by the same text that stands in a file where the sweep is written to one."""
    with tempfile.TemporaryDirectory(prefix="specon-") as folder:
        file = Path(folder) / f"{sweep.name}.py"
        file.write_text(sweep.source(), encoding="utf-8")
        return chosen_workflow(backend, file)


def one_line_options(command: Command) -> Command:
    """Give ``command`` the options of a sweep that the command line defines."""
    for option in (
        click.option(
            "--search",
            metavar="SEARCH",
            help="Of a sweep in one line: random, grid, tpe, cmaes, or a class of optuna.samplers.  [default: grid "
            "where all are choices and there is no --trials, else random]",
        ),
        click.option("--maximize", "maximized", metavar="METRIC", help="As --minimize, where more is better."),
        click.option(
            "--minimize",
            "minimized",
            metavar="METRIC",
            help="Objective of a sweep in one line: a metric that the program logs or prints. Without one, a first "
            "trial shows which there are.",
        ),
        click.option(
            "--trials",
            type=click.IntRange(min=1),
            help=f"Trials of a sweep in one line.  [default: the whole grid where all are choices, else {TRIALS}]",
        ),
    ):
        command = option(command)
    return command


@dataclass(frozen=True)
class Given:
    """What stands on a command line.

    ``file`` is that of a sweep or of a program, ``command`` what stands behind ``--``. Options of a sweep in one line
    are None where they are not given; ``line`` has all words.
    """

    line: tuple[str, ...]
    file: Path | None
    assigned: tuple[str, ...]
    command: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def take(cls, ctx: click.Context, options: dict[str, Any]) -> "Given":
        """Take out of ``options`` what belongs to a sweep in one line.

        Raises:
            click.UsageError: the line names two programs, or a file that is not there.
        """
        line: tuple[str, ...] = ctx.meta[_GIVEN]
        words, command = tuple(options.pop("words")), line[line.index("--") + 1 :] if "--" in line else ()
        if odd := [word for word in line if any(0xD800 <= ord(letter) < 0xE000 for letter in word)]:  # noqa: PLR2004 - surrogates
            message = f"{odd[0]!r} is no text in UTF-8."
            raise click.UsageError(message, ctx)
        own = {name: options.pop(name) for name in ("trials", "minimized", "maximized", "search")}
        if not words and len(command) == 1 and Path(command[0]).suffix in _WORKFLOWS:
            words, command = command, ()
        assigned = tuple(word for word in words if ASSIGNMENT.fullmatch(word))
        files = [word for word in words if word not in assigned]
        if len(files) > 1 or (files and command):
            message = f"Got unexpected extra argument ({files[-1]}): name one FILE, or a command after --."
            raise click.UsageError(message, ctx)
        file = existing_file(files[0], ctx) if files else None
        return cls(line, file, assigned, command, own)


AskedSweep = SweepInFile | OneLine
"""A sweep to run; ``file`` is where it comes from: the sweep, or its program."""


def read_sweep(ctx: click.Context, options: dict[str, Any]) -> AskedSweep:
    """Return the sweep that a command line names or defines; what belongs to it alone is taken out of ``options``.

    Raises:
        click.UsageError: the line does not say what to run, or says it in two ways.
    """
    saved: Path | None = options.pop("saved")
    given = Given.take(ctx, options)
    if given.assigned or given.command:
        return one_line(given, options["seed"], saved)
    if given.file is None:
        message = "Missing argument 'FILE': name the file of a sweep, or a training script and its hyperparameters."
        raise click.UsageError(message, ctx)
    named = {**given.options, "save": saved}
    if wrong := [name.replace("mized", "mize") for name, value in named.items() if value is not None]:
        message = (
            f"--{wrong[0]} is for a sweep in one line; a file of a sweep says that itself. If {given.file} is a "
            f"training script, name its hyperparameters: {FORMS}."
        )
        raise click.UsageError(message, ctx)
    return SweepInFile(given.file)


def one_line(given: Given, seed: int, saved: Path | None) -> OneLine:
    """Return the sweep that a command line defines.

    Raises:
        click.UsageError: something of it makes no sense.
    """
    try:
        return _one_line(given, read_assignments(given.assigned), seed, saved)
    except SweepError as error:
        message = f"{error}."
        raise click.UsageError(message) from error


def _one_line(given: Given, assigned: Assignments, seed: int, saved: Path | None) -> OneLine:
    if given.file is None and not given.command:
        message = "Name the program: specon run train.py NAME=VALUES..., or specon run NAME=VALUES... -- COMMAND..."
        raise click.UsageError(message)
    if given.file is not None and saved is not None and saved.absolute() == given.file.absolute():
        message = f"--save {saved} would overwrite the program: name another file."
        raise click.UsageError(message)
    if not assigned.space:
        message = f"No hyperparameter has several values, so there is nothing to sweep. Write {FORMS}."
        raise click.UsageError(message)
    objective = _objective(given.options["minimized"], given.options["maximized"])
    search, trials = _search(assigned.space, given.options["search"], given.options["trials"])
    command = given.command or command_of(given.file or Path())
    sweep = WrittenSweep(
        command=command,
        space=assigned.space,
        fixed=assigned.fixed,
        flags={name: form for file in _scripts(command) for name, form in truth_flags(file, assigned.truths).items()},
        texts=assigned.texts,
        objective=objective or minimize("loss"),
        search=search,
        trials=trials,
        seed=seed,
    )
    if search in BEFOREHAND:
        points(sweep.space, search, trials, seed)
    else:
        from hera_specon.search import sampler, search_text  # noqa: PLC0415 - only such a sweep has to wait for Optuna

        search_text(sampler(search), sweep.space, trials, seed)
    short = _short(given, sweep)
    asked = given.options["minimized"] or given.options["maximized"]
    return OneLine(given.file or Path(sweep.name), sweep, objective is not None, given.line, short, saved, asked)


def _short(given: Given, sweep: WrittenSweep) -> str:
    """Return the command line without the options that do not define the sweep."""
    options = {
        "--trials": given.options["trials"],
        "--search": given.options["search"],
        "--seed": sweep.seed or None,
        f"--{sweep.objective.direction.value}": sweep.objective.metric,
    }
    words = [str(word) for option in options.items() if option[1] is not None for word in option]
    program, command = [str(given.file)] if given.file else [], ["--", *given.command] if given.command else []
    return shlex.join(["specon", "run", *program, *given.assigned, *words, *command])


def _objective(minimized: str | None, maximized: str | None) -> Objective | None:
    if minimized is not None and maximized is not None:
        message = "--minimize and --maximize: a sweep has one objective, so give one of them."
        raise click.UsageError(message)
    if minimized is not None:
        return minimize(_kept(minimized))
    return None if maximized is None else maximize(_kept(maximized))


def _kept(metric: str) -> str:
    """Return the name that a metric is kept under: who prints ``Acc@1`` has not chosen its name."""
    odd = set(NOT_IN_NAMES.findall(metric))
    return kept_name(metric) if odd and odd <= ONLY_PRINTED else metric


def _search(space: Space, asked: str | None, trials: int | None) -> tuple[str, int | None]:
    """Return how to search ``space``, and the number of trials, None for the whole grid."""
    if asked is not None:
        return asked, trials if asked == "grid" else trials or TRIALS
    if trials is None and all(isinstance(values, Choice) for values in space.values()):
        return "grid", None
    size = grid_size(space)
    # A draw of as many would take some points twice.
    return ("grid", None) if size is not None and size <= (trials or TRIALS) else ("random", trials or TRIALS)
