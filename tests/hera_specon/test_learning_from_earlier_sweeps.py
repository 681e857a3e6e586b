"""Earlier sweeps to learn from: what an author may write, and where it stands then."""

from typing import Any

import click
import pytest
from click.testing import CliRunner
from hera.workflows import Workflow

from controllers.core import labels
from controllers.core.after_sweeps import after_in
from controllers.worlds.argo.reading.workflows import record_of
from hera_specon import Sweep, maximize, tpe, uniform
from hera_specon.cli.after_option import after_option
from hera_specon.earlier_sweeps import with_after
from hera_specon.errors import SubmissionError, SweepError
from hera_specon.submission.checks import after_warning, check_for_cluster
from hera_specon.submission.edits import Overrides, edit_manifest


def built(**settings: Any) -> dict[str, Any]:  # noqa: ANN401 - any of Sweep's
    with Workflow(generate_name="vae-", entrypoint="vae") as made:
        Sweep(
            name="vae",
            image="trainer:1",
            command=["train"],
            space={"lr": uniform(0.1, 0.2)},
            search=tpe(),
            trials=4,
            objective=maximize("accuracy"),
            state_claim="checkpoints",
            **settings,
        )
    return dict(made.to_dict())


def names_in(manifest: dict[str, Any]) -> tuple[str, ...]:
    (template,) = [one for one in manifest["spec"]["templates"] if one["name"] == "vae-trial"]
    return after_in(template["metadata"]["annotations"]).names


def test_they_stand_on_the_trials_and_the_controller_reads_them_with_what_the_sweep_wants() -> None:
    manifest = built(after=["6f1c.vae", "same experiment"])
    record = record_of({**manifest, "metadata": {"name": "vae-x1", "namespace": "lab", "uid": "u"}})
    assert record is not None
    (after,) = [sweep.after for sweep in record.sweeps]
    assert after.names == ("6f1c.vae", "same experiment")
    assert (after.objective, after.direction) == ("accuracy", "maximize")
    assert '"tpe"' in after.search
    assert names_in(built(after="same experiment")) == ("same experiment",)
    assert names_in(built()) == ()


def test_the_command_line_goes_before_the_file() -> None:
    manifest = built(after="one")
    for changed in (edit_manifest(manifest, Overrides(after=("other",))), with_after(manifest, ["other"])):
        assert names_in(changed) == ("other",)
    assert names_in(edit_manifest(manifest, Overrides())) == names_in(manifest) == ("one",)


def test_what_names_no_sweep_is_refused_with_its_value() -> None:
    with pytest.raises(SweepError, match="after= names the sweep 'the last one'"):
        built(after="the last one")
    manifest = built(after="one")
    for template in manifest["spec"]["templates"]:
        if template["name"] == "vae-trial":
            template["metadata"]["annotations"][labels.ANNOTATION_AFTER] = "the last one"
    with pytest.raises(SubmissionError, match=r"'the last one' as annotation hera-specon\.io/after, which names none"):
        check_for_cluster(manifest)


def test_who_submits_hears_that_a_controller_reads_them() -> None:
    assert after_warning(built()) is None
    assert "only a controller reads what vae learns by after=" in str(after_warning(built(after="one")))


@click.command()
@after_option()
def _command(after: tuple[str, ...]) -> None:
    click.echo(after)


def test_the_option_takes_several_and_refuses_what_names_none() -> None:
    runner = CliRunner()
    assert runner.invoke(_command, ["--after", "a.b", "--after", "same experiment"]).output.strip() == (
        "('a.b', 'same experiment')"
    )
    wrong = runner.invoke(_command, ["--after", "a b"])
    assert (wrong.exit_code, "names the sweep 'a b'" in wrong.output) == (2, True)
