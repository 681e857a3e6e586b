"""When a sweep is to end early: what an author may write, and where it stands then."""

from typing import Any

import pytest
from hera.workflows import Workflow

from controllers.core import labels
from controllers.core.stop_rules import NO_RULES, StopRules, Terminator, rules_in, rules_of
from controllers.worlds.argo.reading.workflows import record_of
from hera_specon import Sweep, after, budget, choice, minimize, plateau, terminator, tpe, value
from hera_specon.errors import SubmissionError, SweepError
from hera_specon.stops import with_stops
from hera_specon.submission.checks import check_for_cluster, stop_warning
from hera_specon.submission.edits import Overrides, edit_manifest
from hera_specon.submission.resuming import continue_manifest


def built(**settings: Any) -> dict[str, Any]:  # noqa: ANN401 - any of Sweep's
    given: dict[str, Any] = {"search": "grid", "objective": minimize("loss"), "state_claim": "checkpoints", **settings}
    with Workflow(generate_name="vae-", entrypoint="vae") as made:
        Sweep(name="vae", image="trainer:1", command=["train"], space={"lr": choice(0.1, 0.2)}, **given)
    return dict(made.to_dict())


def notes_of(manifest: dict[str, Any]) -> dict[str, str]:
    (template,) = [one for one in manifest["spec"]["templates"] if one["name"] == "vae-trial"]
    return dict(template["metadata"]["annotations"])


def test_each_rule_is_written_with_its_units_and_several_are_joined() -> None:
    every = value(1) | plateau(trials=20, by=0.001) | after("90m") | budget(cpu_hours=40)
    assert every == StopRules.model_validate(
        {"value": 1.0, "plateau": {"trials": 20, "by": 0.001}, "after_s": 5400.0, "cpu_hours": 40.0}
    )
    assert after(30) == after("30s")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: value(float("nan")), r"value\(\): .*finite"),
        (lambda: value("0.01"), r"value\(\): .*not '0\.01'"),  # type: ignore[arg-type]
        (lambda: value(objective=True), r"value\(\): .*not True"),
        (lambda: plateau(trials=0, by=0.1), r"plateau\(\): .*not 0"),
        (lambda: plateau(trials=2.5, by=0.1), r"plateau\(\): .*not 2\.5"),  # type: ignore[arg-type]
        (lambda: plateau(trials=2, by=0), r"plateau\(\): .*not 0\.0"),
        (lambda: terminator(trials=0), r"terminator\(\): .*not 0"),
        (lambda: terminator(regret=0), r"terminator\(\): .*not 0\.0"),
        (lambda: terminator(regret=float("inf")), r"terminator\(\): .*not inf"),
        (lambda: after("soon"), r"after\(\) takes a time such as 10800 or '3h', not 'soon'"),
        (lambda: after(0), r"after\(\): .*not 0\.0"),
        (lambda: after("9000h"), r"after\(\): "),
        (lambda: budget(cpu_hours=-1), r"budget\(\): .*not -1\.0"),
    ],
)
def test_what_makes_no_sense_is_refused_by_the_name_of_the_rule(wrong: Any, words: str) -> None:  # noqa: ANN401 - makes one
    with pytest.raises(SweepError, match=words):
        wrong()


def test_a_sweep_takes_rules_only_and_tells_money_from_cpu_hours() -> None:
    with pytest.raises(SweepError, match=r"stop= is value\(0\.01\), .*, joined by \|, not 0\.01"):
        built(stop=0.01)
    with pytest.raises(SweepError, match=r"budget= is an amount of money.*stop=budget\(cpu_hours=\.\.\.\)"):
        built(budget=budget(cpu_hours=40))
    assert built(stop=budget(cpu_hours=40), budget=40)


def test_a_terminator_takes_as_many_trials_as_optuna_does_by_default() -> None:
    assert [rules.terminator for rules in (terminator(), terminator(regret=1), terminator(trials=5))] == [
        Terminator(trials=30),
        Terminator(trials=20, regret=1.0),
        Terminator(trials=5),
    ]


def test_a_terminator_is_refused_where_there_is_no_search_or_several_objectives() -> None:
    with pytest.raises(SweepError, match=r"stop=: terminator\(\) asks how much a search has left.*search=tpe\(\)"):
        built(stop=terminator())
    searched: dict[str, Any] = {"search": tpe(), "trials": 50, "stop": terminator()}
    assert rules_in(notes_of(built(**searched))) == terminator()
    with pytest.raises(SweepError, match="one objective"):
        built(**searched, objective=None, objectives=[minimize("loss"), minimize("latency")])


def test_a_terminator_from_the_command_line_is_refused_for_a_cluster_by_name() -> None:
    drawn, searched = built(), built(search=tpe(), trials=50)
    check_for_cluster(with_stops(searched, terminator()))
    with pytest.raises(SubmissionError, match=r"ends by a rule that it cannot have: .* drawn beforehand"):
        check_for_cluster(with_stops(drawn, terminator()))
    with pytest.raises(SubmissionError, match="the controller of a cluster does without"):
        check_for_cluster(with_stops(searched, terminator(regret=0.1)))


def test_no_controller_that_all_share_fits_models_for_a_tenant() -> None:
    manifest = with_stops(built(search=tpe(), trials=50), terminator(regret=0.1) | value(0.5))
    record = record_of({**manifest, "metadata": {"name": "vae-x1", "namespace": "lab", "uid": "u"}})
    assert record is not None
    assert [sweep.stops for sweep in record.sweeps] == [value(0.5)]


def test_rules_stand_on_the_trials_and_the_controller_reads_them() -> None:
    manifest = built(stop=value(0.01) | after("3h"))
    record = record_of({**manifest, "metadata": {"name": "vae-x1", "namespace": "lab", "uid": "u"}})
    assert record is not None
    assert [sweep.stops for sweep in record.sweeps] == [value(0.01) | after("3h")]
    assert labels.ANNOTATION_END_WHEN not in notes_of(built())


def test_the_command_line_goes_before_the_file() -> None:
    manifest = built(stop=value(0.01))
    for changed in (
        edit_manifest(manifest, Overrides(stops=rules_of(after_s=60.0))),
        with_stops(manifest, rules_of(after_s=60.0)),
    ):
        assert rules_in(notes_of(changed)) == after(60)
    assert rules_in(notes_of(edit_manifest(manifest, Overrides()))) == value(0.01)
    assert rules_in(notes_of(manifest)) == value(0.01)


def test_who_submits_hears_that_only_a_controller_ends_a_sweep() -> None:
    assert stop_warning(built()) is None
    assert "only a controller ends vae by stop=" in str(stop_warning(built(stop=value(0.01))))


def test_rules_that_make_no_sense_are_not_submitted() -> None:
    manifest = built(stop=value(0.01))
    for template in manifest["spec"]["templates"]:
        if template["name"] == "vae-trial":
            template["metadata"]["annotations"][labels.ANNOTATION_END_WHEN] = '{"value": "low"}'
    with pytest.raises(SubmissionError, match=r'\{"value": "low"\}.* as annotation hera-specon\.io/end-when'):
        check_for_cluster(manifest)


def test_trials_that_are_resumed_are_not_ended_by_what_ended_their_sweep() -> None:
    manifest = built(stop=value(0.01))
    workflow = {**manifest, "metadata": {"name": "vae-x1", "namespace": "lab", "uid": "u"}}
    record = record_of(workflow)
    assert record is not None
    resumed = continue_manifest(workflow, record, lambda _: True, {})
    assert rules_in(notes_of(resumed)) == NO_RULES
