"""The ordinary scripts and sweeps that once went wrong, each with the tests that hold what is right.

A test that several cases name runs them side by side, as whole sweeps take long.
"""

import ast
from pathlib import Path
from typing import Final

import pytest

REPOSITORY: Final = Path(__file__).parents[2]
HERE: Final = "tests/cases"
PLAIN: Final = f"{HERE}/test_plain_scripts.py::test_a_plain_script_trains_as_in_a_shell_and_what_is_told_of_it_is_true"
INTERRUPTED: Final = (
    f"{HERE}/test_interrupted_sweeps.py::test_an_interrupted_sweep_loses_no_step_and_a_changed_file_drops_nothing"
)
STARTED: Final = (
    f"{HERE}/test_where_a_sweep_is_started.py::"
    "test_neither_a_proxy_nor_another_job_nor_the_users_own_modules_get_in_the_way"
)
ODD_FOLDERS: Final = (
    f"{HERE}/test_odd_folders_and_readers.py::"
    "test_a_sweep_in_odd_folders_goes_on_without_a_reader_and_leaves_nothing_beside_them"
)
OBJECTIVES: Final = f"{HERE}/test_objectives_of_a_sweep.py"
SIDE_BY_SIDE: Final = f"{HERE}/test_scripts_side_by_side.py"
LAUNCHERS: Final = f"{HERE}/test_launchers_and_signals.py"
FRESH: Final = "tests/controllers/worlds/local/processes/test_fresh_interpreter.py"
PRINTS: Final = f"{HERE}/test_what_programs_print.py"
BOUNDS: Final = "tests/hera_specon/test_bounds_and_limits.py"

CASES: Final[dict[str, tuple[str, ...]]] = {
    "a script logs its arguments as parameters, of other types than specon gives them": (PLAIN,),
    "a script names the MLflow experiment itself": (PLAIN,),
    "a script without hooks is interrupted: it begins again, and is said to": (PLAIN,),
    "a script without hooks goes on from its own checkpoint: in its MLflow run, in another, or in what it prints": (
        (
            f"{HERE}/test_own_checkpoints.py::"
            "test_scripts_that_go_on_by_themselves_have_one_history_and_others_begin_again"
        ),
    ),
    "an objective ends as infinity or NaN": (
        f"{OBJECTIVES}::test_an_objective_that_ends_infinite_or_as_no_number_is_diverged_and_never_the_best",
    ),
    "one trial crashes before it has logged its objective": (
        f"{OBJECTIVES}::test_a_trial_that_crashes_before_its_objective_fails_alone",
    ),
    "the objective is logged under a name with a typing error": (
        f"{OBJECTIVES}::test_an_objective_of_another_name_is_told_at_the_end_of_the_first_trial_and_no_other_begins",
        f"{OBJECTIVES}::test_an_objective_that_does_not_show_trains_all_anyway_where_that_is_wanted",
    ),
    "the objective is logged once, at the end, while other trials go on": (
        f"{OBJECTIVES}::test_an_objective_that_comes_once_at_the_end_counts",
    ),
    "the disk is full under what a run keeps": (
        f"{HERE}/test_full_disk.py::test_a_run_waits_for_room_under_each_file_that_it_keeps",
    ),
    "each fold of a cross-validation has a trial of its own": (
        f"{HERE}/test_second_trials.py::test_the_second_fold_with_a_trial_of_its_own_is_refused_before_it_trains",
    ),
    "the program stands behind a shell, and is interrupted": (
        INTERRUPTED,
        f"{LAUNCHERS}::test_a_program_with_hooks_saves_behind",
    ),
    "the program has worker processes, and is interrupted": (
        INTERRUPTED,
        f"{LAUNCHERS}::test_workers_live_until_their_program_has_saved",
    ),
    "the best value so far is a plain variable, and the program is interrupted": (
        INTERRUPTED,
        "tests/mlflow_hooks/test_hooks_values.py::test_values_come_back_with_the_step_that_they_belong_to",
    ),
    "the file of an interrupted sweep is changed before the same command": (
        INTERRUPTED,
        (
            f"{HERE}/test_changed_before_a_resume.py::"
            "test_the_command_says_what_changed_and_what_can_be_done_and_begins_nothing"
        ),
    ),
    "trials wait and use hardly any CPU, and their end is foreseen": (
        "tests/controllers/forecast/test_trials_that_wait.py::test_trials_that_sleep_end_when_their_steps_are_through",
    ),
    "a script exits with 75 by itself": (
        f"{SIDE_BY_SIDE}::test_a_script_that_exits_with_75_by_itself_fails_after_a_few_attempts_and_is_told",
    ),
    "a script ends with 0, 1 or 130 when it is asked to leave": (
        (
            f"{HERE}/test_asked_and_ended.py::"
            "test_a_script_that_was_asked_to_pause_waits_however_it_ends_and_has_not_failed"
        ),
        (
            f"{HERE}/test_asked_in_a_sweep.py::"
            "test_scripts_that_end_with_0_or_an_error_when_paused_wait_and_are_trained_to_their_end"
        ),
    ),
    "a script ends by a signal of its own": (
        f"{HERE}/test_asked_and_ended.py::test_a_script_that_ends_by_itself_is_tried_as_often_as_its_retries_say",
        (
            f"{HERE}/test_asked_in_a_sweep.py::"
            "test_scripts_that_end_by_signals_of_their_own_are_tried_as_often_as_retries_says"
        ),
    ),
    "a script closes a standard stream at its end": (
        f"{SIDE_BY_SIDE}::test_a_script_that_closes_a_stream_at_its_end_has_succeeded",
        f"{FRESH}::test_a_program_may_close_or_replace_its_streams",
    ),
    "a script crashes behind a pipe": (f"{SIDE_BY_SIDE}::test_a_crash_behind_a_pipe_is_retried_and_a_failure",),
    "a script reads a truth value by type=bool": (
        f"{SIDE_BY_SIDE}::test_a_truth_value_that_the_script_takes_for_another_is_told_before_the_start",
    ),
    "scripts draw random numbers without a seed": (
        f"{SIDE_BY_SIDE}::test_trials_that_draw_without_a_seed_draw_other_numbers",
        f"{FRESH}::test_each_attempt_draws_chance_of_its_own",
    ),
    "trials save their models under one name": (f"{SIDE_BY_SIDE}::test_trials_that_save_under_one_name_are_warned_of",),
    "sweep.py prints, and the result goes to standard output": (
        f"{SIDE_BY_SIDE}::test_a_sweep_that_prints_leaves_standard_output_to_the_json",
    ),
    "run() is called in a thread that is not the main one": (
        f"{HERE}/test_runs_in_a_thread.py::test_a_sweep_runs_in_any_thread_and_leaves_the_signals_alone",
    ),
    "a sweep is started behind a proxy": (STARTED,),
    "a project has a package of the same name as one of specon's": (STARTED,),
    "the reader of specon's output goes away": (ODD_FOLDERS,),
    "a hyperparameter is a store_true flag": (ODD_FOLDERS,),
    "another virtual environment is active than specon's": (
        f"{HERE}/test_where_a_sweep_is_started.py::test_a_trial_trains_in_the_environment_that_is_active",
    ),
    "a script chooses the backend of Keras at its top": (
        f"{FRESH}::test_a_backend_chosen_at_the_top_of_a_script_is_the_one_that_keras_has",
    ),
    "a search gets texts, choices or hyperparameters beyond its limits": (
        f"{BOUNDS}::test_what_a_search_cannot_take_is_told_with_its_name_and_limit",
    ),
    "a script prints names and numbers with single spaces, and numbers as other languages do": (
        f"{PRINTS}::test_a_script_that_prints_its_loss_needs_no_change",
    ),
    "a program colours what improved in a table": (f"{PRINTS}::test_coloured_rows_of_a_table_count_as_others",),
    "well-known programs print lines of their own kinds": (
        "tests/mlflow_hooks/printed/test_named.py::test_lines_of_public_programs_are_read_as_a_person_reads_them",
    ),
    "bounds are beyond all numbers, and an objective's name holds what MLflow refuses": (
        f"{BOUNDS}::test_a_range_that_gives_no_usable_values_is_refused_where_it_is_written",
        f"{BOUNDS}::test_an_objective_that_mlflow_cannot_keep_is_refused_with_what_is_wrong_in_it",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_every_case_has_tests_that_exist(case: str) -> None:
    missing = [test for test in CASES[case] if test.partition("::")[2] not in _tests_of(test.partition("::")[0])]
    assert missing == []
    assert CASES[case]


def _tests_of(file: str) -> set[str]:
    """Return the names of the tests that pytest finds in a file."""
    tree = ast.parse((REPOSITORY / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}
