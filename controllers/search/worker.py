"""The process that searches for all sweeps of a cluster: one JSON object a line in, one out, until its input ends.

    python -m controllers.search.worker MOST_BYTES

It has so much memory and no more, so that a search that wants too much fails alone.
"""

import json
import os
import resource
import sys
from collections import OrderedDict
from typing import Any, Final, TextIO

from pydantic import TypeAdapter

from controllers.core.errors import SearchError
from controllers.core.model import Direction, TrialId
from controllers.search.earlier import Lesson
from controllers.search.optuna_search import Study
from controllers.search.spec import read_search
from controllers.search.told import TrialNews

MOST_VALUES: Final = 150_000
"""Hyperparameters of trials in all studies that are kept, some 100 MiB; the one that was asked last is always kept."""
TOLD: Final = TypeAdapter(list[TrialNews])
LESSONS: Final = TypeAdapter(list[Lesson])


class Studies:
    """The studies that were asked last, each under the name that its owner gave it."""

    def __init__(self, most_values: int = MOST_VALUES) -> None:
        self._most_values = most_values
        self._kept: OrderedDict[str, Study] = OrderedDict()

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return what became of one message: ``learn``, ``ask`` or ``forget``."""
        name = asked["study"]
        if "forget" in asked:
            self._kept.pop(name, None)
            return {}
        try:
            return self._answered(name, asked)
        except SearchError as error:
            told = str(error)
        self._kept.pop(name, None)
        return {"error": told}

    def _answered(self, name: str, asked: dict[str, Any]) -> dict[str, Any]:
        study = self._kept.pop(name, None)
        if study is None:
            if "begin" not in asked:
                return {"unknown": True}
            directions, constrained = map(Direction, asked["directions"]), asked["constrained"]
            spec, before = read_search(asked["search"]), LESSONS.validate_python(asked.get("before", []))
            study = Study(spec, tuple(directions), asked["begin"], constrained=constrained, before=before)
        study.learn(TOLD.validate_python(asked["learn"]))
        point = study.ask(TrialId(asked["ask"])) if "ask" in asked else None
        self._kept[name] = study
        while len(self._kept) > 1 and sum(kept.size for kept in self._kept.values()) > self._most_values:
            self._kept.popitem(last=False)
        return {"point": point}


def serve(questions: TextIO, answers: TextIO, studies: Studies) -> None:
    """Answer each question in turn until there are no more."""
    for line in questions:
        answers.write(json.dumps(studies.answer(json.loads(line))) + "\n")
        answers.flush()


def main() -> None:
    """Limit this process, and serve the process that started it."""
    most = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    # Whatever a library prints must not stand among the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(sys.stdin, answers, Studies())
