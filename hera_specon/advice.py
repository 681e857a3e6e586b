"""What is probably not meant about a sweep: told before it starts."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from controllers.worlds.local.processes.own_files import entry_files
from hera_specon.manifest import Manifest, program, sweep_of, trial_templates
from hera_specon.script_options import ScriptOption, options_of
from hera_specon.settings import input_name
from hera_specon.several_objectives import aims_told
from hera_specon.shared_names import hidden_from_trials
from hera_specon.trial_values import options, trial_values

_PASSED: Final = re.compile(r"(?P<flag>-[^={}$]*)=(?:\{\{inputs\.parameters\.(\w+)\}\}|\$\(SPECON_PARAM_(\w+)\))")
_TRUTH: Final = frozenset({"true", "false", "True", "False"})
_BARE: Final = frozenset({"store_true", "store_false", "store_const", "count", "BooleanOptionalAction"})
_SHOWN: Final = 5
_SEE: Final = "docs/how-to/define-a-sweep.md, Pass the hyperparameters"


def advice(manifest: Manifest, folder: Path) -> list[str]:
    """Return a line for what is probably not meant.

    That is what goes by the first of several objectives alone, a truth value that the program reads as another one,
    trials that repeat others, and modules that are not found, since a package of ours has their name.

    Args:
        manifest: The workflow's.
        folder: Where trials run: their program is looked for there. Elsewhere than on this machine it may differ.
    """
    lines: list[str] = [*aims_told(manifest)]
    for trial in trial_templates(manifest):
        lines += [*_misread(manifest, trial, folder), *_find_repeats(manifest, sweep_of(trial))]
        lines += hidden_from_trials(trial, folder)
    return list(dict.fromkeys(lines))


def _find_repeats(manifest: Manifest, sweep: str) -> Iterator[str]:
    """Yield which trials of ``sweep`` have the hyperparameters of an earlier one."""
    first: dict[tuple[tuple[str, str], ...], str] = {}
    again: list[str] = []
    for number, values in trial_values(manifest, sweep).items():
        earlier = first.setdefault(tuple(sorted(values.items())), number)
        if earlier != number and values:
            again.append(f"{number} those of {earlier}")
    if again:
        more = f" and {len(again) - _SHOWN} more" if len(again) > _SHOWN else ""
        yield (
            f"{len(again)} trials of {sweep} repeat the hyperparameters of others ({', '.join(again[:_SHOWN])}{more}): "
            f"the draw has only {len(first)} different ones. search='grid' takes each once"
        )


def _misread(manifest: Manifest, trial: Manifest, folder: Path) -> Iterator[str]:
    """Yield which truth values the program of ``trial`` reads as others, as far as its own source shows it."""
    started = program(trial)
    words = [str(word) for word in (*(started.get("command") or []), *(started.get("args") or []))]
    passed = [match for word in words if (match := _PASSED.fullmatch(word))]
    truths = {name for name, texts in options(manifest, trial).items() if texts & _TRUTH}
    asked = {match["flag"]: match[2] or match[3] for match in passed if (match[2] or match[3]) in truths}
    if not asked:
        return
    for file in entry_files(words, folder):
        reads = options_of(file)
        for option, known_as in asked.items():
            # Inputs have underscores where hyperparameters have dots and dashes.
            bare = option.lstrip("-")
            name = bare if input_name(bare) == known_as else known_as
            if (how := reads.get(option)) is not None and (told := _advise_on_flag(option, name, how)):
                yield f"{told} in {file.name} ({_SEE})"


def _advise_on_flag(option: str, name: str, how: ScriptOption) -> str:
    if how.type == "bool":
        return (
            f"hyperparameter {name!r} is passed as {option}=true or {option}=false, and argparse's type=bool takes "
            f"both for True: say flags={{{name!r}: {{True: '{option}=1', False: '{option}='}}}}, or {name!r}: "
            f"'{option}' with action='store_true'"
        )
    if how.action in _BARE:
        pair = f"{{True: '{option}', False: '--no-{option.lstrip('-')}'}}"
        form = pair if how.action == "BooleanOptionalAction" else repr(option)
        return (
            f"hyperparameter {name!r} is passed as {option}=true or {option}=false, and {option} takes no value, since "
            f"it is action={how.action}: say flags={{{name!r}: {form}}}"
        )
    return ""
