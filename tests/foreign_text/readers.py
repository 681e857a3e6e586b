"""Every reader of what programs, tenants and servers write, as a function of bytes that someone else chose."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Final

import yaml

from controllers.core import foreign_yaml, labels
from controllers.core.aims import read_aims
from controllers.core.asks import asks_in
from controllers.core.errors import SpeconError
from controllers.core.goals import aims_in, goals_in
from controllers.core.lineage import lineage_in
from controllers.core.model import Phase, TrialId
from controllers.core.parameters import parameters_in
from controllers.core.queue_places import places_in
from controllers.core.stop_rules import rules_in
from controllers.local_run.journals import JournalReader
from controllers.local_run.printed_objectives import PrintedObjectives
from controllers.local_run.trial_notices import Notices
from controllers.record.forecasts import forecasts_in
from controllers.worlds.argo.calls.untrusted import PackedError, TooManyPartsError, gunzipped
from controllers.worlds.argo.calls.untrusted import parsed as parsed_parts
from controllers.worlds.local.beginnings import beginnings
from controllers.worlds.local.endings import owned_by, steps_gained
from controllers.worlds.local.jobs import LocalJob, file_name
from controllers.worlds.local.last_words import last_lines
from controllers.worlds.local.workflow import PodStep
from hera_specon.doctor.tryout.report import read_report
from mlflow_hooks import contract, foreign_json
from mlflow_hooks.bounds import MOST_POINTS, MOST_VALUES
from mlflow_hooks.errors import HookError
from mlflow_hooks.foreign_files import both_ends
from mlflow_hooks.head import Head
from mlflow_hooks.journal import POINTS, count_unsent, kept_bytes, logged_keys, read_unsent, sent_bytes
from mlflow_hooks.objects import StoreError
from mlflow_hooks.points import Point
from mlflow_hooks.presence import presences
from mlflow_hooks.printed.form import PrintedForm
from mlflow_hooks.printed.lines import lines_of
from mlflow_hooks.printed.named import printed_metrics
from mlflow_hooks.printed.numbers import number, unwrapped, whole
from mlflow_hooks.printed.reader import BURST, PrintedReader
from mlflow_hooks.state_folder import NOTICES, read_ending, read_identity, read_run

TRIAL: Final = "uid.s.a"
_FORMS: Final = (
    PrintedForm(),
    PrintedForm(keys=("loss", "a.b"), step="epoch"),
    PrintedForm(patterns=(r"loss[:=] ?(?P<loss>\S+)", r"(?P<acc>\d)", r"epoch (?P<epoch>\d+)")),
)
Reader = Callable[[bytes, Path], object]


def job() -> LocalJob:
    """Return a trial that has ended."""
    notes = {labels.ANNOTATION_OBJECTIVE: "loss", labels.ANNOTATION_DIRECTION: "minimize"}
    step = PodStep(TRIAL, "t", ("x",), env={contract.ENV_TRIAL_ID: TRIAL}, labels={labels.LABEL_SWEEP: "s"})
    ended = LocalJob(replace(step, annotations=notes), 0.0, 1.0)
    return replace(ended, phase=Phase.SUCCEEDED, attempt=1)


def printed(text: bytes, _folder: Path) -> None:
    """Read the lines of a pod, as a program prints them in pieces."""
    for form in _FORMS:
        reader = PrintedReader(form, "loss", lambda: 0.0)
        found = [line for at in range(0, len(text), 9_999) for line in reader.read(1, text[at : at + 9_999])]
        found += reader.last()
        assert sum(len(line.values) for line in found) <= 2 * (10 * BURST + MOST_VALUES)
        assert len(reader.notes) <= MOST_VALUES


def followed(text: bytes, folder: Path) -> None:
    """Follow the log of a run on one machine."""
    (folder / "logs").mkdir(exist_ok=True)
    (folder / "logs" / f"{file_name(TRIAL)}.log").write_bytes(text)
    ticks = count()
    following = PrintedObjectives(folder, lambda _: None, lambda: 0.0, lambda: 0.001 * next(ticks))
    following.read_all([job()], lambda: False)
    assert len(following.points(job())) <= MOST_POINTS
    last_lines(folder / "logs" / f"{file_name(TRIAL)}.log", 5)
    both_ends(folder / "logs" / f"{file_name(TRIAL)}.log", 1_000)


def journalled(text: bytes, folder: Path) -> None:
    """Read a trial's journal, and send it."""
    state = folder / "state" / TRIAL
    state.mkdir(parents=True, exist_ok=True)
    (state / POINTS).write_bytes(text)
    reader = JournalReader(folder / "state", lambda: [job()], float)
    reader.read_all(lambda: False)
    reader.samples()
    read_unsent(state, 1000), count_unsent(state), logged_keys(state), steps_gained(state)
    list(map(Point.decode, text.splitlines()))


def small_files(text: bytes, folder: Path) -> None:
    """Read the notes of a trial's state folder."""
    state = folder / "notes" / TRIAL
    state.mkdir(parents=True, exist_ok=True)
    for name in (
        "trial.json",
        "run.json",
        "ended.json",
        "process.json",
        NOTICES,
        "points.sent",
        "points.kept",
        "owner",
    ):
        (state / name).write_bytes(text)
    (state / "printed-from").write_bytes(text)
    read_identity(state), read_run(state), read_ending(state), presences(state, "1"), owned_by(state, "1")
    sent_bytes(state), kept_bytes(state), beginnings(state)
    Notices(folder / "notes", str).look([replace(job(), phase=Phase.RUNNING)])


def annotations(text: bytes, _folder: Path) -> None:
    """Read what a tenant writes on pods and workflows."""
    told = text.decode(errors="replace")
    notes: Mapping[str, str] = _Everywhere(told)
    for read in (rules_in, goals_in, aims_in, places_in):
        with suppress(SpeconError, ValueError):  # told as what makes no sense
            read(notes)
    with suppress(SpeconError, ValueError):
        read_aims(told, told)
    parameters_in(told), lineage_in(told, TrialId(TRIAL)), asks_in(told), read_report(told)
    list(forecasts_in(told.splitlines()))


def parsers(text: bytes, _folder: Path) -> None:
    """Parse JSON and YAML, plain and packed."""
    told = text.decode(errors="replace")
    refused: tuple[tuple[Callable[[], object], type[Exception]], ...] = (
        (lambda: foreign_json.parsed(text), ValueError),
        (lambda: foreign_json.parsed(told), ValueError),
        (lambda: foreign_yaml.parsed(told[:3_000]), yaml.YAMLError),
        (lambda: gunzipped(told, 1_000), PackedError),
        (lambda: Head.decode(text), StoreError),
        (lambda: PrintedForm.decode(told), HookError),
    )
    for parse, error in refused:
        with suppress(error):
            parse()
    with suppress(TooManyPartsError, ValueError):
        parsed_parts(text, 10_000)


def words(text: bytes, _folder: Path) -> None:
    """Read numbers and lines."""
    for line in lines_of(text)[:200]:
        number(line), whole(line), unwrapped(line)
    list(printed_metrics(*lines_of(text)[:200]))


READERS: Final[tuple[Reader, ...]] = (printed, followed, journalled, small_files, annotations, parsers, words)


class _Everywhere(dict[str, str]):
    """The same text under each name."""

    def __init__(self, text: str) -> None:
        super().__init__({name: text for name in vars(labels).values() if isinstance(name, str)})
