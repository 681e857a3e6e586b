"""Rules that end a sweep, as they stand on a command line."""

import click
import pytest
from click.testing import CliRunner

from controllers.core.stop_rules import StopRules
from hera_specon.cli.stop_option import StopRule, stop_option
from hera_specon.stops import after, budget, plateau, terminator, value


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("value=0.01", value(0.01)),
        ("value=-1e-3", value(-0.001)),
        ("plateau=20:0.001", plateau(trials=20, by=0.001)),
        ("terminator=30", terminator()),
        ("terminator=20:0.01", terminator(regret=0.01)),
        ("after=3h", after("3h")),
        ("cpu-hours=40", budget(cpu_hours=40)),
    ],
)
def test_a_rule_is_read(text: str, rule: StopRules) -> None:
    assert StopRule().convert(text, None, None) == rule


@pytest.mark.parametrize(
    "text",
    [
        *("", "0.01", "value", "value=low", "value=nan", "plateau=20", "plateau=x:1", "after=soon", "cpu-hours=0"),
        *("terminator", "terminator=0", "terminator=9:0", "terminator=9:low", "by=3"),
    ],
)
def test_what_is_no_rule_is_refused_with_its_value_and_the_forms(text: str) -> None:
    with pytest.raises(
        click.BadParameter, match=rf"'{text}' is no rule .*write it like value=0\.01, plateau=20:0\.001"
    ):
        StopRule().convert(text, None, None)


@click.command()
@stop_option("none")
def _command(stop: StopRules) -> None:
    click.echo(stop.model_dump_json())


def test_several_rules_are_joined_and_none_is_said_twice() -> None:
    runner = CliRunner()
    assert runner.invoke(_command, ["--stop", "value=0.5", "--stop", "after=1m"]).output.strip() == (
        '{"value":0.5,"after_s":60.0}'
    )
    assert runner.invoke(_command, []).output.strip() == "{}"
    twice = runner.invoke(_command, ["--stop", "value=0.5", "--stop", "value=0.4"])
    assert (twice.exit_code, "value() is given twice" in twice.output) == (2, True)
