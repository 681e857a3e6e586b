"""The record that a controller kept in MLflow, read back."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from mlflow.tracking import MlflowClient

from controllers.core.errors import SpeconError
from controllers.record.timeline import EventKind, TimelineEvent
from controllers.tracking.sweep_runs import Steering, open_sweep
from hera_specon.records.run_folder import RunRecord, combine_records
from hera_specon.records.tracked import tracked_record
from hera_specon.report.page import page
from tests.hera_specon.report.example_run import result, simulated


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> MlflowClient:
    folder = tmp_path_factory.mktemp("mlflow")
    client = MlflowClient(f"sqlite:///{folder / 'mlflow.db'}")
    client.create_experiment("vae", artifact_location=str(folder / "artifacts"))
    return client


def lines(events: list[TimelineEvent]) -> str:
    return "".join(f"{event.to_json()}\n" for event in events)


def kept(client: MlflowClient, workflow: str, policy: str = "specon", **texts: str) -> str:
    """A sweep's run as a controller leaves it; ``texts`` are further artifacts by path."""
    run = open_sweep(
        client, f"uid-{workflow}.vae", "vae", Steering(f"{workflow} · {policy}", policy, f"uid-{workflow}")
    ).run_id
    for path, text in texts.items():
        client.log_text(run, text, path)
    return run


def whole(client: MlflowClient, workflow: str, policy: str = "specon") -> str:
    world = simulated(speculative=policy != "default")
    half = len(world.events) // 2
    return kept(
        client,
        workflow,
        policy,
        **{
            "timeline/1000-000001.jsonl": lines(world.events[:half]),
            "timeline/2000-000010.jsonl": lines(world.events[half:]),
            # A controller that was killed in an upload tells the same again.
            "timeline/2000-000002.jsonl": lines(world.events[half - 5 : half + 5]),
            "result.json": json.dumps(result(policy, world).to_dict()),
        },
    )


@pytest.mark.parametrize("name", ["workflow", "sweep", "run"])
def test_a_sweep_is_found_by_its_workflow_its_id_or_its_run(client: MlflowClient, name: str) -> None:
    workflow = f"by-{name}"
    run = whole(client, workflow)
    wanted = {"workflow": workflow, "sweep": f"uid-{workflow}.vae", "run": run}[name]

    (found,) = tracked_record(client, wanted).runs

    assert found.policy == "specon"
    assert found.result is not None
    assert len(found.result.trials) == 12


def test_the_page_names_the_policy_with_its_parameters(client: MlflowClient) -> None:
    spec = "promote:rungs=best+ahead"
    steering = Steering("with-spec · promote+ahead", "promote+ahead", "uid-with-spec", spec=spec)
    run = open_sweep(client, "uid-with-spec.vae", "vae", steering).run_id
    client.log_text(run, lines(simulated(speculative=False).events), "timeline/1000-000001.jsonl")
    assert [one.policy for one in tracked_record(client, "with-spec").runs] == [spec]


def test_pieces_are_joined_in_order_and_what_is_told_twice_counts_once(client: MlflowClient) -> None:
    whole(client, "pieces")
    world = simulated(speculative=True)

    (run,) = tracked_record(client, "pieces").runs

    moves = [event for event in world.events if event.kind is EventKind.MOVE]
    reports = [event for event in world.events if event.kind is EventKind.REPORT]
    assert len(run.history.moves) == len(moves) > 0
    assert sum(map(len, run.history.reports.values())) == len(reports)
    assert run.history.end == max(event.at for event in world.events)


def test_two_sweeps_make_one_page_with_the_first_as_baseline(client: MlflowClient) -> None:
    whole(client, "before", "default")
    whole(client, "after", "specon")
    whole(client, "again", "specon")

    record = combine_records([tracked_record(client, name) for name in ("before", "after", "again")])

    assert [run.policy for run in record.runs] == ["default · before", "specon · after", "specon · again"]
    html = page(record)
    assert all(run.policy in html for run in record.runs)
    assert record.results()[1].makespan_s < record.results()[0].makespan_s


def test_a_sweep_that_still_runs_is_shown_as_far_as_it_got(client: MlflowClient) -> None:
    begun = lines(simulated(speculative=True).events[:200])
    kept(client, "begun", **{"timeline/1-000001.jsonl": begun})

    record = tracked_record(client, "begun")

    assert record.runs[0].result is None
    assert "specon has not finished" in page(record)


def test_what_a_sweep_says_of_itself_cannot_break_the_page(client: MlflowClient) -> None:
    evil = "</script><script>alert(1)</script>"
    first, *rest = simulated(speculative=True).events
    events = [replace(first, trial=evil, node=evil, reason=evil), *rest]
    kept(client, "evil", **{"timeline/1-000001.jsonl": lines(events)})

    assert "<script>alert" not in page(tracked_record(client, "evil"))


@pytest.mark.parametrize(
    "line",
    [
        "no json",
        "[]",
        '{"at": 1}',
        '{"at": 1, "kind": "party", "trial": "a"}',
        '{"at": "soon", "kind": "phase", "trial": "a"}',
        '{"at": NaN, "kind": "phase", "trial": "a"}',
        '{"at": 1, "kind": "phase", "trial": "a", "phase": "dancing"}',
        '{"at": 1, "kind": "phase", "trial": "' + "a" * 70_000 + '"}',
    ],
)
def test_a_timeline_that_makes_no_sense_is_refused_with_its_run(client: MlflowClient, line: str) -> None:
    run = kept(client, "nonsense", **{"timeline/1-000001.jsonl": f"{line}\n"})

    with pytest.raises(SpeconError, match=run):
        tracked_record(client, "nonsense")


@pytest.mark.parametrize("text", ["{}", "[", '{"policy": "x", "trials": []}', '{"policy": "x", "trials": [{"id": 1}]}'])
def test_a_result_that_makes_no_sense_is_refused(client: MlflowClient, text: str) -> None:
    begun = lines(simulated(speculative=True).events[:20])
    kept(client, "odd-result", **{"timeline/1-000001.jsonl": begun, "result.json": text})

    with pytest.raises(SpeconError, match=r"result\.json"):
        tracked_record(client, "odd-result")


def test_other_files_beside_the_timeline_are_not_read(client: MlflowClient) -> None:
    whole(client, "others")
    kept(client, "others", **{"timeline/notes.jsonl": "no json", "timeline/deep/1-000001.jsonl": "no json"})

    assert tracked_record(client, "others").runs


def test_more_than_a_report_can_hold_is_refused(client: MlflowClient, monkeypatch: pytest.MonkeyPatch) -> None:
    whole(client, "long")
    monkeypatch.setattr("hera_specon.records.tracked._MOST_BYTES", 1000)

    with pytest.raises(SpeconError, match="too long"):
        tracked_record(client, "long")


@pytest.mark.parametrize("wanted", ["nobody", "by_workflow", "a' OR '1'='1", "%", ""])
def test_a_sweep_that_is_not_there_is_named(client: MlflowClient, wanted: str) -> None:
    whole(client, "by-workflow")

    with pytest.raises(SpeconError, match="sweep"):
        tracked_record(client, wanted)


def test_runs_without_a_timeline_say_so(client: MlflowClient) -> None:
    kept(client, "empty")

    with pytest.raises(SpeconError, match="no timeline yet"):
        tracked_record(client, "empty")


def test_where_mlflow_is_away_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")

    with pytest.raises(SpeconError, match="does not answer"):
        tracked_record(MlflowClient("http://127.0.0.1:9"), "x")


def test_one_record_stays_as_it_is() -> None:
    record = RunRecord(Path("a"), {"name": "a"}, ())

    assert combine_records([record]) is record
