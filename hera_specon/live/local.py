"""The runs in a state folder of this machine, and asking for their trials by the files that ``specon pause`` writes."""

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from controllers.core.model import Ask
from controllers.record.timeline import GrowingTimeline, TimelineEvent
from controllers.worlds.local.trusted_folders import check_trusted
from hera_specon.asking import RunDesk, ask_for, ask_for_policy, ask_no_more
from hera_specon.live.paced import Made, PacedPart
from hera_specon.live.standing import SweepStanding, newest_actions, node_lines, trial_lines
from hera_specon.live.sweeps import ReadOnlyError, SweepLine, UnknownSweepError
from hera_specon.records.run_folder import RUN_FILE, known_runs, load_run, parts_of, run_states
from mlflow_hooks.foreign_json import parsed

MOST_RUNS: Final = 500
"""Runs that are listed, the newest first."""
STANDING_S: Final = 2.0
REPORT_S: Final = 5.0
_RUNS_S: Final = 60.0
"""A run that wrote nothing for so many seconds is taken for one that was interrupted."""
_REPORT_FILE: Final = "report.html"


class LocalShelf:
    """The runs below ``state_dir``.

    Args:
        state_dir: folder that holds ``runs/``.
    """

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self._sweeps: dict[str, ShownRun] = {}
        self._lock = threading.Lock()

    def lines(self) -> Sequence[SweepLine]:
        """Return a line for each run, the one begun last first."""
        return [_line(folder) for folder in reversed(known_runs(self._state_dir)[-MOST_RUNS:])]

    def sweep(self, name: str) -> "ShownRun":
        """Return the run of that name.

        Raises:
            UnknownSweepError: there is none.
            UntrustedFolderError: somebody else may have prepared it.
        """
        with self._lock:
            if name not in self._sweeps:
                # The names that there are decide, so that none leads out of the folder.
                folder = next((path for path in known_runs(self._state_dir) if path.name == name), None)
                if folder is None:
                    message = f"there is no run {name!r} in {self._state_dir / 'runs'}"
                    raise UnknownSweepError(message)
                check_trusted(folder)
                self._sweeps[name] = ShownRun(folder)
            return self._sweeps[name]

    def expire(self) -> None:
        """Have every page made again as soon as somebody looks."""
        with self._lock:
            for sweep in self._sweeps.values():
                sweep.expire()


class ShownRun:
    """A run on this machine, under the policy that it runs under now.

    Args:
        folder: the run's.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._timelines: dict[Path, GrowingTimeline] = {}
        self._reading = threading.Lock()
        self._asking = threading.Lock()
        self._standing = PacedPart(self._make_standing, STANDING_S)
        self._report = PacedPart(self._make_report, REPORT_S)

    def now(self) -> Made:
        """Return how it stands, as HTML."""
        return self._standing.get()

    def body(self) -> Made:
        """Return what its report shows so far, as HTML."""
        return self._report.get()

    def expire(self) -> None:
        """Have its page made again as soon as somebody looks."""
        self._standing.expire()
        self._report.expire()

    def ask(self, what: str, trials: Sequence[str] | None) -> list[str]:
        """Ask as ``specon pause``, ``stop`` and ``resume`` do.

        Raises:
            SpeconError: that cannot be asked, of these trials or at all.
        """
        told: list[str] = []
        desk = RunDesk(self._folder)
        with self._asking:
            if what == "resume":
                told = [f"{trial}: goes on" for trial in ask_no_more(desk, trials or (), everything=trials is None)]
            elif what in {Ask.PAUSE, Ask.STOP}:
                ask_for(desk, Ask(what), trials or (), everything=trials is None, tell=told.append)
            else:
                message = f"a trial cannot be asked to {what!r}"
                raise ReadOnlyError(message)
        self._standing.expire()
        return told or ["no trial was asked to pause"]

    def set_policy(self, spec: str) -> list[str]:
        """Ask as ``specon set-policy`` does.

        Raises:
            SpeconError: it is none, or the run is over.
        """
        from controllers.policies.registry import parse_policy  # noqa: PLC0415 - most pages never ask

        desk = RunDesk(self._folder)
        with self._asking:
            told = f"{desk.name}: asked for {ask_for_policy(desk, parse_policy(spec))} from now on"
        self._standing.expire()
        return [told]

    def _read(self, path: Path) -> Sequence[TimelineEvent]:
        return self._timelines.setdefault(path, GrowingTimeline(path)).events()

    def _make_standing(self) -> str:
        from controllers.policies.registry import POLICIES  # noqa: PLC0415 - the door opens before that is read
        from controllers.worlds.local.engine_files import AskedFile  # noqa: PLC0415

        with self._reading:
            state = run_states(self._folder, self._read)[-1]
            part = parts_of(self._folder)[-1]
            nodes = node_lines(state, self._read(part / "timeline.jsonl"))
        about = _about(self._folder)
        known = about.get("nodes")
        report = self._folder / _REPORT_FILE
        phase = state.phase if state.over else "running" if _written_lately(self._folder) else "interrupted"
        return SweepStanding(
            state=replace(state, phase=phase),
            nodes=nodes,
            idle=max(0, known - len(nodes)) if isinstance(known, int) else 0,
            trials=trial_lines(state, AskedFile(part).asked(), may_ask=True),
            actions=newest_actions(part / "actions.jsonl"),
            policies=tuple(POLICIES),
            may_ask=True,
            report=str(report) if report.exists() else "",
        ).html()

    def _make_report(self) -> str:
        from hera_specon.report.page import live_body  # noqa: PLC0415 - plotly takes a second

        with self._reading:
            record = load_run(self._folder, self._read)
        return live_body(record)


def _line(folder: Path) -> SweepLine:
    about = _about(folder)
    policies = about.get("policies")
    told = ", ".join(map(str, policies)) if isinstance(policies, list) else ""
    phase = "over" if about.get("finished") else "running" if _written_lately(folder) else "interrupted"
    return SweepLine(folder.name, phase, str(about.get("started") or ""), told)


def _written_lately(folder: Path) -> bool:
    """Return whether something drives the run: it notes the time at every look."""
    written = max((file.stat().st_mtime for file in folder.glob("*/*.json*")), default=0.0)
    return time.time() - written < _RUNS_S


def _about(folder: Path) -> dict[str, Any]:
    try:
        about = parsed((folder / RUN_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return about if isinstance(about, dict) else {}
