"""A workflow's templates after checking: what each would run, tags still in place."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from controllers.worlds.local.workflow.retry import RetryRule


@dataclass(frozen=True, slots=True)
class Loop:
    """The items that a step runs once for: a list, or text with tags that will be a JSON list."""

    items: tuple[Any, ...] = ()
    param: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A step or DAG task: which template to run, with what, after what."""

    name: str
    path: str
    template: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    loop: Loop | None = None
    when: str | None = None
    needs: tuple[str, ...] = ()
    on_failed: bool = False
    on_error: bool = False


@dataclass(frozen=True, slots=True)
class Pod:
    """A container or script. ``manifest`` has what tags may stand in: command, args, source, env, resources."""

    manifest: Mapping[str, Any]
    retry: RetryRule | None
    grace_s: float


@dataclass(frozen=True, slots=True)
class Suspend:
    """A pause of ``duration``, which may hold tags."""

    duration: str


@dataclass(frozen=True, slots=True)
class Steps:
    """Groups of calls one after the other, the calls of a group at once."""

    groups: tuple[tuple[Call, ...], ...]


@dataclass(frozen=True, slots=True)
class Dag:
    """Calls, each after those it needs."""

    tasks: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """One template. ``inputs`` holds each input parameter with its default, None where it has none."""

    name: str
    path: str
    inputs: Mapping[str, str | None]
    body: Pod | Suspend | Steps | Dag
    parallelism: int | None = None
    fail_fast: bool = False

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every call of the template, in the order written."""
        if isinstance(self.body, Steps):
            return tuple(call for group in self.body.groups for call in group)
        return self.body.tasks if isinstance(self.body, Dag) else ()
