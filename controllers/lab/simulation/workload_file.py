"""A workload as a folder of CSV tables: ``trials.csv``, ``reports.csv``, ``nodes.csv``, and perhaps ``groups.csv``.

docs/reference/workload-files.md has their columns.
"""

import csv
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf, isinf
from pathlib import Path
from typing import Final

from controllers.core.devices import Devices, is_device
from controllers.core.errors import SpeconError
from controllers.core.goals import AskedGoals
from controllers.core.model import Direction, NodeName, TrialId
from controllers.lab.simulation.tables import PARAMETER, PARAMETERS, TableError, TableRow, read_rows
from controllers.worlds.simulated.errors import WorkloadError
from controllers.worlds.simulated.scaling import SpotMarket
from controllers.worlds.simulated.workload import (
    BOOTS_S,
    CurvePoint,
    NodeGroup,
    NodeSpec,
    Speedup,
    TrialSpec,
    WorkerExchange,
    Workload,
)

TRIALS: Final = "trials.csv"
REPORTS: Final = "reports.csv"
NODES: Final = "nodes.csv"
GROUPS: Final = "groups.csv"
_TRIAL_COLUMNS: Final = ("trial", "submitted_s", "work_s", "cpu")
_GOALS: Final = ("deadline_s", "target", "seconds_per_step")
_TRIAL_OPTIONS: Final = (
    "speedup",
    "memory",
    "direction",
    "retries",
    "checkpoint_every_s",
    "limit",
    "deaf",
    *_GOALS,
    "upkeep",
    "steps_told",
    "cpu_every_s",
    "waits_untold",
    "devices",
    "device_use",
    "min_workers",
    "max_workers",
    "step_s",
    "exchanged",
)
_REPORT_COLUMNS: Final = ("trial", "work_s", "value")
_NODE_COLUMNS: Final = ("node", "cpu")
_NODE_OPTIONS: Final = (
    *("memory", "speed", "zone", "supply", "contention", "devices", "price"),
    *("device_speed", "device_model", "replicas"),
)
_GROUP_COLUMNS: Final = ("group", "cpu", "most")
_SPOT: Final = ("notice_s", "drains", "mean_life_s", "available")
_GROUP_OPTIONS: Final = (*_NODE_OPTIONS, "least", "boots_s", *_SPOT)
_RETRIES: Final = 2
_MOST_DIGITS: Final = 9
_ROUNDING: Final = 1e-9
"""Relative: a report written as a rounded decimal may lie this far beyond the work of its trial."""


def read_workload(folder: Path, nodes: Sequence[NodeSpec] | None = None) -> Workload:
    """Read the tables in ``folder``.

    Args:
        folder: Holds ``trials.csv``, ``reports.csv`` and, unless ``nodes`` are given, ``nodes.csv``, ``groups.csv`` or
            both.
        nodes: To use instead of these.

    Raises:
        TableError: A table is missing or holds a wrong value; names file, line, column and value.
    """
    rows = read_rows(folder / TRIALS, _TRIAL_COLUMNS, (*_TRIAL_OPTIONS, PARAMETERS))
    trials = _distinct(rows, "trial")
    reports = _reports(folder / REPORTS, trials)
    try:
        made = tuple(_trial(row, reports.get(name, ())) for name, row in trials.items())
        if nodes is not None:
            return Workload(made, tuple(nodes))
        groups = _groups(folder / GROUPS) if (folder / GROUPS).exists() else ()
        # With groups, there may be no other nodes.
        return Workload(made, () if groups and not (folder / NODES).exists() else _nodes(folder / NODES), groups=groups)
    except WorkloadError as error:
        message = f"{folder}: {error}"
        raise TableError(message) from error


def write_workload(workload: Workload, folder: Path) -> None:
    """Write the tables into the new folder ``folder``, all of them or none.

    Raises:
        SpeconError: There is something at ``folder`` already.
    """
    if folder.exists():
        message = f"{folder} is there already: name a new folder for the workload"
        raise SpeconError(message)
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.absolute().parent))
    try:
        beside.chmod(0o755)
        names = sorted({name for trial in workload.trials for name, _ in trial.parameters})
        columns = (*_TRIAL_COLUMNS, *_TRIAL_OPTIONS, *(PARAMETER + name for name in names))
        _write(beside / TRIALS, columns, (_trial_cells(trial, names) for trial in workload.trials))
        reports = ((trial.id, _cell(r.work_s), _cell(r.value)) for trial in workload.trials for r in trial.reports)
        _write(beside / REPORTS, _REPORT_COLUMNS, reports)
        _write(beside / NODES, (*_NODE_COLUMNS, *_NODE_OPTIONS), map(_node_cells, workload.nodes))
        if workload.groups:
            _write(beside / GROUPS, (*_GROUP_COLUMNS, *_GROUP_OPTIONS), map(_group_cells, workload.groups))
        os.rename(beside, folder)  # noqa: PTH104 - refuses a folder that somebody else filled meanwhile
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _distinct(rows: Iterable[TableRow], column: str) -> dict[str, TableRow]:
    by_name: dict[str, TableRow] = {}
    for row in rows:
        name = row.text(column)
        if name in by_name:
            raise row.problem(column=column, expected=f"each name once (line {by_name[name].line} has this one too)")
        by_name[name] = row
    return by_name


def _trial(row: TableRow, reports: Sequence[CurvePoint]) -> TrialSpec:
    return TrialSpec(
        id=TrialId(row.text("trial")),
        submitted_at=row.number("submitted_s", least=0),
        work_s=row.number("work_s", above=0),
        reports=tuple(reports),
        cpu=row.number("cpu", least=0),
        speedup=_speedup(row),
        memory=row.number("memory", 0.0, least=0),
        direction=_direction(row),
        retries=row.whole("retries", _RETRIES, least=0),
        checkpoint_every_s=_optional(row, "checkpoint_every_s", above=0.0),
        limit=row.number("limit", inf, above=0.0),
        deaf=_flag(row, "deaf"),
        upkeep=row.number("upkeep", 0.0, least=0.0),
        steps_told=row.whole("steps_told", least=0) if row.cells.get("steps_told") else None,
        cpu_every_s=row.number("cpu_every_s", 0.0, least=0.0),
        waits_untold=_flag(row, "waits_untold"),
        goals=AskedGoals(
            _optional(row, "deadline_s", above=0.0),
            _optional(row, "target"),
            _optional(row, "seconds_per_step", above=0.0),
        ),
        devices=_devices(row),
        device_use=_part(row, "device_use"),
        parameters=row.parameters(),
        min_workers=row.whole("min_workers", 1, least=1),
        max_workers=row.whole("max_workers", row.whole("min_workers", 1, least=1), least=1),
        exchange=WorkerExchange(row.number("step_s", 1.0, above=0.0), row.number("exchanged", 0.0, least=0.0)),
    )


def _optional(row: TableRow, column: str, above: float = -inf, least: float = -inf) -> float | None:
    return row.number(column, above=above, least=least) if row.cells.get(column) else None


def _part(row: TableRow, column: str) -> float:
    part = row.number(column, 1.0, above=0.0)
    if part > 1:
        raise row.problem(column=column, expected="a part of 1, above 0")
    return part


def _flag(row: TableRow, column: str, usual: str = "no") -> bool:
    written = row.cells.get(column) or usual
    if written not in {"yes", "no"}:
        raise row.problem(column=column, expected="yes or no")
    return written == "yes"


def _direction(row: TableRow) -> Direction:
    try:
        return Direction(row.cells.get("direction") or Direction.MINIMIZE)
    except ValueError:
        raise row.problem(column="direction", expected=" or ".join(Direction)) from None


def _speedup(row: TableRow) -> Speedup:
    expected = "pairs CORES:SPEED that rise, the last of speed 1, such as 0.5:0.6 1:1"
    points = _pairs(row, "speedup", expected)
    try:
        return Speedup(points) if points else Speedup()
    except WorkloadError:
        raise row.problem(column="speedup", expected=expected) from None


def _pairs(row: TableRow, column: str, expected: str) -> tuple[tuple[float, float], ...]:
    try:
        pairs = (pair.partition(":") for pair in row.cells.get(column, "").split())
        return tuple((float(first), float(second)) for first, _, second in pairs)
    except ValueError:
        raise row.problem(column=column, expected=expected) from None


def _devices(row: TableRow) -> Devices:
    counts: dict[str, int] = {}
    for pair in row.cells.get("devices", "").split():
        kind, _, count = pair.partition(":")
        if not (is_device(kind) and count.isdecimal() and len(count) <= _MOST_DIGITS and kind not in counts):
            raise row.problem(column="devices", expected="pairs KIND:NUMBER, each kind once, such as nvidia.com/gpu:2")
        counts[kind] = int(count)
    return Devices.of(counts)


def _reports(path: Path, trials: Mapping[str, TableRow]) -> dict[str, list[CurvePoint]]:
    by_trial: dict[str, list[CurvePoint]] = {}
    for row in read_rows(path, _REPORT_COLUMNS):
        name = row.text("trial")
        if name not in trials:
            raise row.problem(column="trial", expected=f"a trial of {TRIALS}")
        reports = by_trial.setdefault(name, [])
        work_s = row.number("work_s", least=0)
        if reports and work_s < reports[-1].work_s:
            raise row.problem(
                column="work_s", expected=f"at least the {reports[-1].work_s:g} of the trial's report before it"
            )
        if work_s > (total := trials[name].number("work_s", above=0)) * (1 + _ROUNDING):
            raise row.problem(column="work_s", expected=f"at most the {total:g} that the trial has in {TRIALS}")
        reports.append(CurvePoint(work_s, row.number("value")))
    return by_trial


def _nodes(path: Path) -> tuple[NodeSpec, ...]:
    rows = _distinct(read_rows(path, _NODE_COLUMNS, _NODE_OPTIONS), "node")
    return tuple(_node(row, name) for name, row in rows.items())


def _groups(path: Path) -> tuple[NodeGroup, ...]:
    rows = _distinct(read_rows(path, _GROUP_COLUMNS, _GROUP_OPTIONS), "group")
    return tuple(_group(row, name) for name, row in rows.items())


def _group(row: TableRow, name: str) -> NodeGroup:
    spot = None
    if any(row.cells.get(column) for column in _SPOT):
        usual, pairs = SpotMarket(), "pairs SECOND:NODES that rise in time, such as 0:8 3600:5"
        available = _pairs(row, "available", pairs)
        try:
            spot = SpotMarket(
                row.number("notice_s", usual.notice_s, least=0.0),
                _flag(row, "drains", "yes"),
                _optional(row, "mean_life_s", above=0.0),
                available,
            )
        except WorkloadError:
            raise row.problem(column="available", expected=pairs) from None
    most = row.whole("most", least=1)
    if (least := row.whole("least", 0, least=0)) > most:
        raise row.problem(column="least", expected=f"at most the {most} in column most")
    return NodeGroup(_node(row, name), most, least, row.number("boots_s", BOOTS_S, least=0.0), spot)


def _node(row: TableRow, name: str) -> NodeSpec:
    node = NodeSpec(
        name=NodeName(name),
        cpu=row.number("cpu", above=0),
        memory=row.number("memory", inf, above=0.0),
        speed=row.number("speed", 1.0, above=0),
        zone=row.cells.get("zone", ""),
        contention=row.number("contention", 0.0, least=0.0),
        devices=_devices(row),
        price=_optional(row, "price", least=0.0),
        device_speed=row.number("device_speed", 1.0, above=0.0),
        device_model=row.cells.get("device_model", ""),
    )
    replicas = row.whole("replicas", 1, least=1)
    try:
        node = replace(node, replicas=replicas)
    except WorkloadError:
        pairs = _device_pairs(node.devices)
        expected = f"a number that those in devices ({pairs}), which count replicas, are multiples of"
        raise row.problem(column="replicas", expected=expected) from None
    expected = f"pairs SECOND:CORES that rise in time, cores above 0 and up to {node.cpu:g}, such as 0:0.2 60:0.1"
    try:
        return replace(node, supply=_pairs(row, "supply", expected))
    except WorkloadError:
        raise row.problem(column="supply", expected=expected) from None


def _trial_cells(trial: TrialSpec, parameters: Sequence[str]) -> tuple[str, ...]:
    goals, values = trial.goals, dict(trial.parameters)
    return (
        *(trial.id, _cell(trial.submitted_at), _cell(trial.work_s), _cell(trial.cpu)),
        _joined(trial.speedup.points),
        *(_cell(trial.memory), trial.direction.value, str(trial.retries), _cell(trial.checkpoint_every_s)),
        *(_cell(trial.limit), "yes" if trial.deaf else "no"),
        *(_cell(goals.deadline_s), _cell(goals.target), _cell(goals.seconds_per_step), _cell(trial.upkeep)),
        *("" if trial.steps_told is None else str(trial.steps_told), _cell(trial.cpu_every_s)),
        "yes" if trial.waits_untold else "no",
        *(_device_pairs(trial.devices), _cell(trial.device_use), str(trial.min_workers), str(trial.max_workers)),
        *(_cell(trial.exchange.step_s), _cell(trial.exchange.bytes)),
        *(value if isinstance(value := values.get(name), str) else _cell(value) for name in parameters),
    )


def _node_cells(node: NodeSpec) -> tuple[str, ...]:
    return (
        *(node.name, _cell(node.cpu), _cell(node.memory), _cell(node.speed), node.zone),
        *(_joined(node.supply), _cell(node.contention), _device_pairs(node.devices), _cell(node.price)),
        *(_cell(node.device_speed), node.device_model, str(node.replicas)),
    )


def _group_cells(group: NodeGroup) -> tuple[str, ...]:
    name, cpu, *options = _node_cells(group.node)
    spot, told = group.spot, ("", "", "", "")
    if spot is not None:
        available = _joined(spot.available)
        told = (_cell(spot.notice_s), "yes" if spot.drains else "no", _cell(spot.mean_life_s), available)
    return (name, cpu, str(group.most), *options, str(group.least), _cell(group.boots_s), *told)


def _device_pairs(devices: Devices) -> str:
    return " ".join(f"{kind}:{count}" for kind, count in devices.counts)


def _joined(pairs: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{first!r}:{second!r}" for first, second in pairs)


def _cell(number: float | None) -> str:
    """Return the shortest text that reads back as the same number; nothing where there is none, or no bound."""
    return "" if number is None or isinf(number) else repr(float(number))


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
