"""The Pareto front at the end of a run, as a table for people."""

from dataclasses import replace
from io import StringIO

from rich.console import Console, Group

from controllers.core.results import RunResult, TrialResult
from hera_specon.display.front_table import front_tables
from hera_specon.display.tables import leaderboard

EVIL = "lat\x1b[31mency[/]"


def result(trials: int) -> RunResult:
    """Return a sweep whose trials are all on its front."""
    base = TrialResult("", 0.0, 9.0, "n", 0, 1, 1.0, params={"lr": 0.5}, objective="loss", sweep="s")
    base = replace(base, further_objectives=f"minimize {EVIL}", constraints="memory <= 2")
    return RunResult(
        "ahead",
        tuple(
            replace(base, id=f"s.t{n}", final_metric=float(n), values={EVIL: -float(n), "memory": 1.0})
            for n in range(trials)
        ),
    )


def printed(tables: Group) -> str:
    out = StringIO()
    Console(file=out, width=120).print(tables)
    return out.getvalue()


def test_it_has_each_metric_of_the_best_by_the_first_objective_and_says_what_it_leaves_out() -> None:
    text = printed(Group(*front_tables(result(7), most=5)))
    assert "The Pareto front: 7 trials" in text
    assert [f"s.t{n}" in text for n in range(7)] == [True] * 5 + [False] * 2
    assert "and 2 more; the report has all of them" in text
    assert "memory" in text
    assert "lr=0.5" in text


def test_words_of_others_do_not_steer_the_terminal() -> None:
    text = printed(Group(*front_tables(result(2), most=5)))
    assert "\x1b" not in text
    assert "[/]" in text


def test_it_stands_where_the_best_models_of_one_objective_do() -> None:
    text = printed(Group(leaderboard(result(2))))
    assert "The Pareto front" in text
    assert "The best models" not in text
