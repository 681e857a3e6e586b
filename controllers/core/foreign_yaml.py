"""The one parser of YAML that others write: what is nested too deeply is refused, in every version of Python. Pure."""

from typing import Any

import yaml

from mlflow_hooks.bounds import MOST_DEPTH


class _Shallow(yaml.SafeLoader):
    """Counts the levels of what it puts together, and stops where they are too many."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Put one node together, with all that is in it."""
        if self._depth > MOST_DEPTH:
            why = f"it is nested more than {MOST_DEPTH} times"
            raise yaml.composer.ComposerError(None, None, why, None if parent is None else parent.start_mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def parsed(text: str) -> Any:  # noqa: ANN401 - whatever the YAML holds
    """Return the YAML in ``text``, whose mappings and lists are nested ``MOST_DEPTH`` times at most.

    Raises:
        yaml.YAMLError: it is no YAML, or is nested more deeply.
    """
    return yaml.load(text, _Shallow)  # noqa: S506 - a safe loader
