import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controllers.core.devices import Devices
from controllers.core.errors import SpeconError
from controllers.core.goals import AskedGoals
from controllers.core.model import Direction, NodeName, TrialId
from controllers.core.parameters import bound_parameters
from controllers.lab.simulation.tables import TableError
from controllers.lab.simulation.workload_file import read_workload, write_workload
from controllers.worlds.simulated.scaling import SpotMarket
from controllers.worlds.simulated.workload import CurvePoint, NodeGroup, NodeSpec, Speedup, TrialSpec, Workload
from tests.property_examples import examples


def change(folder: Path, file: str, old: str, new: str) -> None:
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1))


def test_what_may_be_left_out_has_defaults(tables: Path) -> None:
    workload = read_workload(tables)
    assert workload.trials[0] == TrialSpec(TrialId("a"), 0.0, 10.0, (CurvePoint(5.0, 1.0), CurvePoint(10.0, 0.5)), 0.1)
    assert workload.nodes == (NodeSpec(NodeName("node-1"), 0.5),)


def test_hyperparameters_are_numbers_where_they_read_as_such_and_texts_elsewhere(tables: Path) -> None:
    change(
        tables,
        "trials.csv",
        "cpu\na,0,10,0.1\nb,5,20,0.1",
        "cpu,parameter.lr,parameter.kind\na,0,10,0.1,1e-3,\nb,5,20,0.1,2,cnn",
    )
    a, b = read_workload(tables).trials
    assert (a.parameters, b.parameters) == ((("lr", 0.001),), (("kind", "cnn"), ("lr", 2.0)))


def test_nodes_given_replace_those_of_the_table(tables: Path) -> None:
    (tables / "nodes.csv").unlink()
    given_nodes = [NodeSpec(NodeName("other"), 2.0)]
    assert read_workload(tables, given_nodes).nodes == tuple(given_nodes)


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("trials.csv", "b,5,20", "b,5,-20", "line 3, column work_s: expected a number greater than 0, found '-20'"),
        ("trials.csv", "a,0,10", "a,nan,10", "line 2, column submitted_s: expected a number, at least 0, found 'nan'"),
        ("trials.csv", "a,0,10", "a,inf,10", "column submitted_s: expected a number, at least 0, found 'inf'"),
        ("trials.csv", "a,0,10", "a,,10", "column submitted_s: expected a number, at least 0, found nothing"),
        ("trials.csv", ",work_s", ",work", "trials.csv, line 1 has no column 'work_s'"),
        ("trials.csv", "work_s,cpu", "work_s,cpu,cpu", "line 1 has twice the column 'cpu'"),
        (
            "trials.csv",
            "b,5",
            "a,5",
            "line 3, column trial: expected each name once (line 2 has this one too), found 'a'",
        ),
        ("trials.csv", "b,5,20,0.1", "b,5,20", "trials.csv, line 3: 3 cells, but the header names 4 columns"),
        (
            "trials.csv",
            "cpu\na,0,10,0.1\nb,5,20,0.1",
            "cpu,direction\na,0,10,0.1,up\nb,5,20,0.1,",
            "column direction: expected minimize or maximize, found 'up'",
        ),
        (
            "trials.csv",
            "cpu\na,0,10,0.1\nb,5,20,0.1",
            "cpu,retries\na,0,10,0.1,1.5\nb,5,20,0.1,",
            "column retries: expected a whole number, at least 0, found '1.5'",
        ),
        (
            "trials.csv",
            "cpu\na,0,10,0.1\nb,5,20,0.1",
            "cpu,speedup\na,0,10,0.1,2:0.5\nb,5,20,0.1,",
            "column speedup: expected pairs CORES:SPEED",
        ),
        (
            "trials.csv",
            "cpu\na,0,10,0.1\nb,5,20,0.1",
            "cpu,colour\na,0,10,0.1,red\nb,5,20,0.1,",
            "line 1 has the unknown 'colour'; it may have trial,",
        ),
        (
            "trials.csv",
            "cpu\na,0,10,0.1\nb,5,20,0.1",
            "cpu,deaf\na,0,10,0.1,1\nb,5,20,0.1,",
            "column deaf: expected yes or no, found '1'",
        ),
        (
            "trials.csv",
            "cpu\na,0,10,0.1\nb,5,20,0.1",
            "cpu,parameter.note\na,0,10,0.1,short\nb,5,20,0.1," + "x" * 65,
            "line 3, column parameter.note: expected one of at most 32 parameters",
        ),
        ("reports.csv", "b,10,2.0", "c,10,2.0", "line 4, column trial: expected a trial of trials.csv, found 'c'"),
        (
            "reports.csv",
            "a,10,0.5",
            "a,4,0.5",
            "line 3, column work_s: expected at least the 5 of the trial's report before it, found",
        ),
        ("reports.csv", "b,20,1.0", "b,21,1.0", "line 5, column work_s: expected at most the 20 that the trial has"),
        ("reports.csv", "b,20,1.0", "b,20,nan", "line 5, column value: expected a finite number, found 'nan'"),
        ("nodes.csv", "node-1,0.5", "node-1,0", "line 2, column cpu: expected a number greater than 0, found '0'"),
        (
            "nodes.csv",
            "cpu\nnode-1,0.5",
            "cpu,supply\nnode-1,0.5,0:0.6",
            "line 2, column supply: expected pairs SECOND:CORES",
        ),
        *(
            (
                "nodes.csv",
                "cpu\nnode-1,0.5",
                f"cpu,devices\nnode-1,0.5,{written}",
                "line 2, column devices: expected pairs KIND:NUMBER, each kind once, such as nvidia.com/gpu:2, found",
            )
            for written in ("gpu:1", "a.b/c", "a.b/c:-1", "a.b/c:1.5", "a.b/c:1 a.b/c:2", "a.b/c:" + "9" * 10)
        ),
        (
            "nodes.csv",
            "cpu\nnode-1,0.5",
            "cpu,devices,replicas\nnode-1,0.5,a.b/c:6,4",
            "line 2, column replicas: expected a number that those in devices (a.b/c:6), which count replicas, are",
        ),
        (
            "nodes.csv",
            "cpu\nnode-1,0.5",
            "cpu,device_speed\nnode-1,0.5,0",
            "line 2, column device_speed: expected a number greater than 0, found '0'",
        ),
        ("nodes.csv", "node-1,0.5", "", "a workload needs at least one node"),
    ],
)
def test_bad_input_is_told_with_file_line_column_and_value(
    tables: Path, file: str, old: str, new: str, told: str
) -> None:
    change(tables, file, old, new)
    with pytest.raises(TableError) as caught:
        read_workload(tables)
    assert told in str(caught.value)
    assert str(tables / file) in str(caught.value) or "at least one" in told


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b'trial,submitted_s,work_s,cpu\n"a,0,1,1\n'])
def test_what_is_no_table_is_refused_by_name(tables: Path, content: bytes) -> None:
    (tables / "trials.csv").write_bytes(content)
    with pytest.raises(TableError, match=r"trials\.csv"):
        read_workload(tables)


def test_a_missing_table_is_named(tables: Path) -> None:
    (tables / "reports.csv").unlink()
    with pytest.raises(TableError, match=r"reports\.csv"):
        read_workload(tables)


def test_a_folder_that_is_there_is_left_alone(tables: Path) -> None:
    before = (tables / "trials.csv").read_bytes()
    with pytest.raises(SpeconError, match="is there already"):
        write_workload(read_workload(tables), tables)
    assert (tables / "trials.csv").read_bytes() == before


def test_a_writing_that_fails_leaves_nothing(tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    workload = read_workload(tables)
    monkeypatch.setattr("controllers.lab.simulation.workload_file.os.rename", full)
    with pytest.raises(OSError, match="No space"):
        write_workload(workload, tmp_path / "copy")
    assert [path.name for path in tmp_path.iterdir()] == ["workload"]


NAMES = st.text(st.characters(exclude_categories=("Cc", "Cs", "Z")), min_size=1, max_size=8)
AMOUNTS = st.floats(1e-3, 1e6)
KINDS = st.sampled_from(["nvidia.com/gpu", "amd.com/gpu", "example.com/mig-1g.5gb"])


@st.composite
def trials(draw: st.DrawFn) -> TrialSpec:
    marks = sorted(draw(st.lists(AMOUNTS, max_size=3)))
    return TrialSpec(
        id=TrialId(draw(NAMES)),
        submitted_at=draw(st.floats(0, 1e6)),
        work_s=marks[-1] if marks else draw(AMOUNTS),
        reports=tuple(CurvePoint(mark, draw(st.floats(allow_nan=False, allow_infinity=False))) for mark in marks),
        cpu=draw(st.floats(0, 64)),
        speedup=Speedup(((0.5, 0.7), (draw(st.floats(1, 64)), 1.0))),
        memory=draw(st.floats(0, 1e12)),
        direction=draw(st.sampled_from(Direction)),
        retries=draw(st.integers(0, 9)),
        checkpoint_every_s=draw(st.none() | AMOUNTS),
        limit=draw(st.just(math.inf) | AMOUNTS),
        deaf=draw(st.booleans()),
        upkeep=draw(st.floats(0, 1)),
        steps_told=draw(st.none() | st.integers(0, 10**6)),
        cpu_every_s=draw(st.floats(0, 60)),
        waits_untold=draw(st.booleans()),
        devices=Devices.of(draw(st.dictionaries(KINDS, st.integers(1, 99), max_size=2))),
        device_use=draw(st.floats(0.01, 1.0)),
        parameters=bound_parameters(
            draw(st.dictionaries(st.text(max_size=4), st.floats() | st.text(max_size=6), max_size=3))
        ),
        goals=AskedGoals(draw(st.none() | AMOUNTS), draw(st.none() | st.floats(-9, 9)), draw(st.none() | AMOUNTS)),
    )


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(trials(), min_size=1, max_size=2, unique_by=lambda trial: trial.id), st.sampled_from([math.inf, 1e9]))
def test_what_was_written_reads_back_the_same(
    tmp_path_factory: pytest.TempPathFactory, made: list[TrialSpec], memory: float
) -> None:
    devices = Devices.of({"nvidia.com/gpu": 8})
    node = NodeSpec(NodeName("n"), 0.3, memory, 1.5, "zone a", ((1.5, 0.1), (20.0, 0.3)), 0.05, devices)
    node = replace(node, device_speed=2.5, device_model="NVIDIA-A100", replicas=4)
    workload = Workload(tuple(made), (node,))
    folder = tmp_path_factory.mktemp("written") / "workload"
    write_workload(workload, folder)
    assert read_workload(folder) == workload


GROUPS = "group,cpu,most,least,boots_s,price,notice_s,drains,mean_life_s,available\n"


def test_groups_of_nodes_and_prices_are_read(tables: Path) -> None:
    (tables / "groups.csv").write_text(f"{GROUPS}spot,4,8,1,90,0.12,15,no,7200,0:8 600:2\nbig,16,2,,,,,,,\n")
    change(tables, "nodes.csv", "node,cpu\nnode-1,0.5", "node,cpu,price\nnode-1,0.5,0.02")
    workload = read_workload(tables)
    market = SpotMarket(15.0, drains=False, mean_life_s=7200.0, available=((0.0, 8.0), (600.0, 2.0)))
    assert workload.groups == (
        NodeGroup(NodeSpec(NodeName("spot"), 4.0, price=0.12), 8, 1, 90.0, market),
        NodeGroup(NodeSpec(NodeName("big"), 16.0), 2),
    )
    assert workload.nodes == (NodeSpec(NodeName("node-1"), 0.5, price=0.02),)


def test_with_groups_there_may_be_no_other_nodes(tables: Path) -> None:
    (tables / "groups.csv").write_text("group,cpu,most\nbig,16,2\n")
    (tables / "nodes.csv").unlink()
    assert read_workload(tables).nodes == ()


def test_groups_read_back_as_they_were_written(tables: Path, tmp_path: Path) -> None:
    (tables / "groups.csv").write_text(f"{GROUPS}spot,4,8,1,90,0.12,0,yes,,0:8 600:2\nbig,16,2,,,,,,,\n")
    workload = read_workload(tables)
    write_workload(workload, tmp_path / "again")
    assert read_workload(tmp_path / "again") == workload


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("big,16,0,,,,,,,", "column most: expected a number, at least 1, found '0'"),
        ("big,16,2,3,,,,,,", "column least: expected at most the 2 in column most, found '3'"),
        ("big,16,2,,-1,,,,,", "column boots_s: expected a number, at least 0, found '-1'"),
        ("big,16,2,,,-1,,,,", "column price: expected a number, at least 0, found '-1'"),
        ("big,16,2,,,,15,perhaps,,", "column drains: expected yes or no, found 'perhaps'"),
        ("big,16,2,,,,,,,5:1 5:2", "column available: expected pairs SECOND:NODES that rise in time"),
        ("big,16,2,,,,,,,5:inf", "column available: expected pairs SECOND:NODES that rise in time"),
    ],
)
def test_a_group_that_makes_no_sense_is_refused_with_the_place(tables: Path, row: str, told: str) -> None:
    (tables / "groups.csv").write_text(f"{GROUPS}{row}\n")
    with pytest.raises(TableError, match=f"groups.csv, line 2, {told}"):
        read_workload(tables)
