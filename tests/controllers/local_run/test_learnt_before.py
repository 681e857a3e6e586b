"""What a run on this machine learns from earlier sweeps: once for all of its policies, and an error where none is."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hera.workflows import Workflow
from mlflow.tracking import MlflowClient

from controllers.local_run.learnt_before import LEARNT_FILE, UnknownEarlierError, learn, learnt_in
from controllers.local_run.order import LocalSettings, Order
from controllers.local_run.run_folder import RunFolder, find_or_make_run
from hera_specon import Sweep, minimize, tpe, uniform
from mlflow_hooks import contract

Learning = Callable[..., tuple[RunFolder, list[str]]]


@pytest.fixture
def learning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Learning:
    """Learn as a run that was just made does, or one that goes on in ``folder``; MLflow is at ``uri``."""

    def of(after: object, uri: str = "", folder: RunFolder | None = None) -> tuple[RunFolder, list[str]]:
        monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
        if uri:
            monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        with Workflow(generate_name="vae-", entrypoint="vae") as made:
            Sweep(
                name="vae",
                command=["python", "-c", "0"],
                space={"x": uniform(0, 1)},
                search=tpe(),
                trials=2,
                objective=minimize("loss"),
                experiment="learnt-before",
                after=after,  # type: ignore[arg-type] # as given
            )
        order = Order(made.to_dict(), tmp_path / "sweep.py", (), LocalSettings(state_dir=tmp_path / "state"))
        folder = folder or find_or_make_run(tmp_path / "state", "vae", {"n": after}, fresh=False)
        return folder, learn(order, order.program("check").trials(), folder)

    return of


def train_before(client: MlflowClient, sweep: str) -> None:
    known = client.get_experiment_by_name("learnt-before")
    where = known.experiment_id if known else client.create_experiment("learnt-before")
    tags = {contract.TAG_SWEEP_ID: sweep, contract.TAG_TRIAL_ID: f"{sweep}.t0"}
    run = client.create_run(where, tags=tags).info.run_id
    client.log_param(run, "x", 0.5)
    client.log_metric(run, "loss", 0.1, step=1)
    client.set_terminated(run)


def test_it_is_read_once_and_kept_for_every_policy_and_for_going_on(learning: Learning, client: MlflowClient) -> None:
    train_before(client, "first.vae")
    folder, lines = learning("same experiment", client.tracking_uri)
    assert [line.startswith("learnt before: 1 trials of earlier sweeps") for line in lines] == [True]
    (trial,) = learnt_in(folder.path).trials["vae"]
    assert (trial.parameters, trial.came_to) == ((("x", 0.5),), (0.1,))
    train_before(client, "second.vae")
    assert learning("same experiment", "http://127.0.0.1:9", folder)[1] == lines
    assert len(learnt_in(folder.path).trials["vae"]) == 1


def test_a_sweep_that_nobody_has_is_an_error_and_leaves_nothing(
    learning: Learning, client: MlflowClient, tmp_path: Path
) -> None:
    with pytest.raises(UnknownEarlierError, match=r"after= names 'nobody', and MLflow at .* has no trial of such"):
        learning("nobody", client.tracking_uri)
    with pytest.raises(UnknownEarlierError, match="MLflow, which is still empty here"):
        learning(["nobody"])
    assert list((tmp_path / "state" / "runs").iterdir()) == []


def test_an_mlflow_that_does_not_answer_leaves_the_sweep_without(
    learning: Learning, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    folder, lines = learning("nobody", "http://127.0.0.1:9")
    assert lines[0].startswith("nothing was learnt before, as MLflow does not tell: ")
    assert learnt_in(folder.path).trials == {"vae": ()}


def test_the_first_sweep_of_an_experiment_begins_from_nothing(learning: Learning) -> None:
    folder, lines = learning("same experiment")
    assert lines == ["nothing was learnt before: no trial of an earlier sweep had ended"]
    assert not list(learnt_in(folder.path))


def test_what_learns_from_nobody_reads_nothing(learning: Learning) -> None:
    folder, lines = learning(None, "http://127.0.0.1:9")
    assert (lines, (folder.path / LEARNT_FILE).exists()) == ([], False)


def test_a_file_that_cannot_be_read_any_more_counts_as_nothing(tmp_path: Path) -> None:
    (tmp_path / LEARNT_FILE).write_text('{"vae": [{"id": 3}]}')
    assert not list(learnt_in(tmp_path))
