"""What is wrong with a workflow before anything of it runs, collected while its untyped manifest is read."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from controllers.core.errors import SpeconError
from controllers.worlds.local.workflow.values import ManifestValueError


class WorkflowError(SpeconError):
    """The workflow is malformed: Argo would not run it either. ``problems`` holds one line per fault."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class UnsupportedWorkflowError(WorkflowError):
    """The workflow asks for what this machine cannot honour. ``problems`` names every such field by its path."""


T = TypeVar("T")


class Findings:
    """Problems found so far, each under the path of the field it is about."""

    def __init__(self) -> None:
        self._unsupported: list[str] = []
        self._malformed: list[str] = []

    def unsupported(self, path: str, why: str) -> None:
        """Note a field that this machine cannot honour."""
        self._unsupported.append(f"{path}: {why}")

    def malformed(self, path: str, why: str) -> None:
        """Note a field that Argo would refuse as well."""
        self._malformed.append(f"{path}: {why}")

    def raise_if_any(self) -> None:
        """Raise for all that was noted.

        Raises:
            UnsupportedWorkflowError: This machine cannot honour some fields (and others may be malformed).
            WorkflowError: All problems are of malformed fields.
        """
        problems = list(dict.fromkeys(self._malformed + self._unsupported))
        if self._unsupported:
            raise UnsupportedWorkflowError(problems)
        if problems:
            raise WorkflowError(problems)

    def mapping(self, value: object, path: str) -> Mapping[str, Any]:
        """Return ``value`` where it is a mapping, else note that and return an empty one; None is an empty one."""
        if isinstance(value, Mapping):
            return value
        if value is not None:
            self.malformed(path, f"must be a mapping, not {value!r}")
        return {}

    def sequence(self, value: object, path: str) -> Sequence[Any]:
        """Return ``value`` where it is a list, else note that and return an empty one; None is an empty one."""
        if isinstance(value, list | tuple):
            return value
        if value is not None:
            self.malformed(path, f"must be a list, not {value!r}")
        return ()

    def text(self, value: object, path: str) -> str:
        """Return ``value`` where it is text, else note that and return an empty one."""
        if isinstance(value, str) and value:
            return value
        self.malformed(path, f"must be text, not {value!r}")
        return ""

    def whole(self, value: object, path: str) -> int | None:
        """Return a number that is not negative (Argo also takes it as text), None for None."""
        if value is None:
            return None
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value).isdecimal():
            return int(value)
        self.malformed(path, f"must be a whole number, not {value!r}")
        return None

    def attempt(self, path: str, parse: Callable[[], T]) -> T | None:
        """Return what ``parse`` gives; note its ManifestValueError and return None."""
        try:
            return parse()
        except ManifestValueError as error:
            self.malformed(path, str(error))
            return None
