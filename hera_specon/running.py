"""Sweeps from Python, for scripts and notebooks: ``run`` one on this machine, ``load`` one that has run."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from controllers.core.errors import SpeconError
from controllers.core.objectives import missing_objectives, not_counted
from controllers.core.policy import Policy
from controllers.core.results import RunResult, TrialResult
from hera_specon.cli.backend import chosen_policies, parse_spec, real_backend
from hera_specon.cli.found_runs import found_record
from hera_specon.display.console import OutlivingConsole
from hera_specon.display.screens import LiveScreen, PlainScreen
from hera_specon.records.comparison import label_results
from hera_specon.records.flat import flat_rows
from hera_specon.records.run_folder import newest_checkpoint, parts_of
from hera_specon.report.page import REPORT_FILE, write_report

if TYPE_CHECKING:
    from hera.workflows import Workflow


class NoModelError(SpeconError):
    """No trial of a sweep has come to a model."""


@dataclass(frozen=True, slots=True)
class SweepOutcome:
    """A sweep that has run: ``results`` holds one result for each policy, ``folder`` what it left on this machine.

    ``folder`` is None for a sweep that ran in a cluster.
    """

    folder: Path | None
    results: tuple[RunResult, ...]

    @property
    def best(self) -> TrialResult:
        """The best trial under the last policy: ``best.params``, ``best.final_metric``.

        Raises:
            NoModelError: none has a model, there are several sweeps, each with a best of its own, or the sweep has
                several objectives and so a ``front``.
        """
        ranked = self.results[-1].ranking() if self.results else {}
        if not ranked and self.results and (fronts := self.results[-1].fronts()):
            message = f"{', '.join(fronts)} has several objectives, so no one trial is the best: see .front"
            raise NoModelError(message)
        if len(ranked) != 1:
            which = (
                f"each of the sweeps {', '.join(ranked)} has a best trial: see ranked()"
                if ranked
                else "; ".join(_why_no_model(self.results[-1]) if self.results else ()) or "none ended well"
            )
            message = f"there is no best trial: {which}"
            raise NoModelError(message)
        return next(iter(ranked.values()))[0]

    @property
    def front(self) -> tuple[TrialResult, ...]:
        """The Pareto front under the last policy: the trials that no other beats by all objectives.

        The best by the first objective comes first; ``trial.final_metric`` is its value of that, and ``trial.values``
        has those of the others by name.

        Raises:
            NoModelError: the sweep has one objective, none of its trials has all of them within its constraints, or
                there are several such sweeps.
        """
        fronts = self.results[-1].fronts() if self.results else {}
        if len(fronts) == 1 and (front := next(iter(fronts.values()))):
            return tuple(front)
        missing = missing_objectives(self.results[-1]).errors if self.results else ()
        if len(fronts) > 1:
            why = f"each of the sweeps {', '.join(fronts)} has its own: results[-1].fronts()"
        elif fronts:
            why = "; ".join(missing) or "no trial has a finite value of each objective within the constraints"
        else:
            why = "the sweep has one objective: see .best"
        message = f"there is no front: {why}"
        raise NoModelError(message)

    @property
    def checkpoint(self) -> Path | None:
        """Newest checkpoint of the best trial on this machine; None where it left none."""
        parts = parts_of(self.folder) if self.folder else []
        return newest_checkpoint(parts[-1], self.best.id) if parts else None

    @property
    def trials(self) -> Any:  # noqa: ANN401 - pandas is no dependency of ours
        """A row for each trial under each policy: a data frame where pandas is installed, else a list of dicts."""
        rows = flat_rows(self.results)
        try:
            import pandas as pd  # noqa: PLC0415 - it takes half a second, and few ask for it
        except ImportError:
            return rows
        return pd.DataFrame(rows)

    def report(self) -> Path:
        """Write the page about the run into its folder, and return where it is.

        Raises:
            SpeconError: it ran in a cluster; ``specon report`` writes the page about that.
        """
        if self.folder is None:
            message = "this sweep ran in a cluster: write its page with `specon report`"
            raise SpeconError(message)
        write_report(self.folder, [self.folder / REPORT_FILE])
        return self.folder / REPORT_FILE


def _why_no_model(result: RunResult) -> Sequence[str]:
    return missing_objectives(result).errors or not_counted(result)


class RunOptions(TypedDict, total=False):
    """How ``run`` runs a sweep; each as the option of ``specon run`` of that name.

    ``nodes`` is how many nodes to divide this machine into, ``cpus_per_node`` the cores of every one or of each,
    ``jobs`` how many trials run at a time, ``inherit`` the names of variables of an outer launcher that trials get all
    the same, ``seed`` that of all random choices, ``state_dir`` where runs are kept. With
    ``fresh`` it starts over where an interrupted run could continue. Where the sweep was changed since that,
    ``as_begun`` goes on with it as it was when it began (``--continue``), and ``extend`` as it is now. With ``yes`` it
    trains all trials though the first that end do not log the objective. Without ``live`` it prints plain lines instead
    of a table.
    """

    nodes: int
    cpus_per_node: float | tuple[float, ...]
    jobs: int
    inherit: Sequence[str]
    seed: int
    state_dir: Path | str
    fresh: bool
    as_begun: bool
    extend: bool
    yes: bool
    live: bool


def run(
    workflow: "Workflow | Mapping[str, Any]",
    policy: Policy[Any] | str | Sequence[Policy[Any] | str] = (),
    **options: Unpack[RunOptions],
) -> SweepOutcome:
    """Run the sweep of ``workflow`` on this machine, once under each policy, as ``specon run`` does.

    Args:
        workflow: Hera's, with a ``Sweep`` in it, or a manifest.
        policy: one or several, as objects or as ``--policy`` takes them; the one that the sweep names by default.
        options: see ``RunOptions``.

    Ctrl-C and SIGTERM stop it where it runs in the main thread. In any other it leaves them to the program, and runs to
    its end.

    Raises:
        SweepInterrupted: it was told to stop; the same call goes on.
        MissingObjectiveError: trials have ended without the objective, and the others did not begin.
        SpeconError: this machine cannot honour the workflow, a policy or the settings; nothing was started.
    """
    from controllers.driving.stop_signals import STILL_ENDING, heard_while  # noqa: PLC0415
    from controllers.local_run.order import LocalSettings  # noqa: PLC0415 - MLflow's import takes seconds
    from hera_specon.advice import advice  # noqa: PLC0415

    backend = real_backend()
    given = workflow if isinstance(workflow, Mapping) else workflow.to_dict()
    manifest: dict[str, Any] = json.loads(json.dumps(given, default=str))
    source = Path(str((manifest.get("metadata") or {}).get("generateName") or "workflow").rstrip("-"))
    asked = [policy] if isinstance(policy, str) or not isinstance(policy, Sequence) else list(policy)
    policies = [
        parse_spec(backend.parse_policy, wanted, "policy") if isinstance(wanted, str) else wanted for wanted in asked
    ]
    sizes = options.get("cpus_per_node")
    settings = LocalSettings(
        nodes=options.get("nodes") or (len(sizes) if isinstance(sizes, tuple) else LocalSettings.nodes),
        cpus_per_node=sizes,
        jobs=options.get("jobs"),
        inherit=tuple(options.get("inherit", ())),
        seed=options.get("seed", 0),
        state_dir=Path(options.get("state_dir", LocalSettings.state_dir)),
        fresh=options.get("fresh", False),
        as_begun=options.get("as_begun", False),
        extends=options.get("extend", False),
        trains_anyway=options.get("yes", False),
    )
    console = OutlivingConsole()
    with LiveScreen(console) if options.get("live", True) else PlainScreen(console.print) as screen:
        chosen = policies or chosen_policies(backend, (), manifest, source)
        for told in advice(manifest, Path.cwd()):
            screen.say(f"Warning: {told}")
        run_it = partial(backend.run_locally, manifest, source, chosen, settings, screen)
        done = heard_while(run_it, lambda: screen.say(STILL_ENDING))
        if done.lacking:
            screen.say(f"{done.lacking}; the same call sends the rest")
    done.conclude()
    return SweepOutcome(done.folder, tuple(label_results(done.results, [str(wanted) for wanted in asked])))


def load(run: str | None = None, state_dir: Path | str = ".specon", tracking_uri: str | None = None) -> SweepOutcome:
    """Return a sweep that has run.

    Args:
        run: name or folder of a run on this machine, by default the one that began last; or a sweep in a cluster.
        state_dir: where runs are kept.
        tracking_uri: MLflow that keeps the record of a sweep in a cluster, by default that of ``MLFLOW_TRACKING_URI``.

    Raises:
        SpeconError: there is none, or it cannot be read.
    """
    uri = tracking_uri or os.environ.get("MLFLOW_TRACKING_URI") or None
    record = found_record([run], Path(state_dir), uri)
    here = record.folder if record.folder != Path() else None
    return SweepOutcome(here, tuple(record.results()))
