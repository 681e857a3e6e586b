"""Which nodes a pod may go to by what its author and the nodes' owners wrote: selectors, affinity, taints, tolerations.

As kube-scheduler filters nodes (NodeAffinity and TaintToleration): what a pod merely prefers counts for nothing.
Whatever a pod says of itself is untrusted.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from controllers.worlds.argo.calls.api import Json
from controllers.worlds.argo.calls.untrusted import at, mappings, text

HOSTNAME: Final = "kubernetes.io/hostname"
_KEEPS_AWAY: Final = frozenset({"NoSchedule", "NoExecute"})
_ILL: Final = "node.kubernetes.io/"
"""Begins the taints by which Kubernetes itself says that something is amiss with a node."""
_MOST_PARTS: Final = 128
"""Selectors, tolerations, expressions and their values of a pod."""
_MOST_TAINTS: Final = 64
_MOST_LABELS: Final = 512
_MOST_WORD: Final = 253 + 1 + 63
_NO_WORD: Final = "?"
"""Stands for a text that is too long, or none: no label may be like it."""


@dataclass(frozen=True, slots=True)
class Taint:
    """What keeps pods off a node that do not tolerate it."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class _Toleration:
    key: str
    operator: str
    value: str
    effect: str

    def covers(self, taint: Taint) -> bool:
        if self.effect not in {"", taint.effect} or self.key not in {"", taint.key}:
            return False
        if self.operator == "Exists":
            return True
        return bool(self.key) and self.operator in {"", "Equal"} and self.value == taint.value


@dataclass(frozen=True, slots=True)
class _Expression:
    key: str
    operator: str
    values: tuple[str, ...]

    def holds(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return self._compares(value)
            case _:
                return False

    def _compares(self, value: str | None) -> bool:
        number, bound = _whole(value), _whole(self.values[0] if len(self.values) == 1 else None)
        if number is None or bound is None:
            return False
        return number > bound if self.operator == "Gt" else number < bound


@dataclass(frozen=True, slots=True)
class _Term:
    """Expressions that must all hold: of a node's labels, and of its fields."""

    labels: tuple[_Expression, ...]
    fields: tuple[_Expression, ...]

    def holds(self, name: str, labels: Mapping[str, str]) -> bool:
        if not (self.labels or self.fields):
            return False  # to Kubernetes, an empty term is no node
        named = {"metadata.name": name}
        return all(expression.holds(labels) for expression in self.labels) and all(
            expression.holds(named) for expression in self.fields
        )


@dataclass(frozen=True, slots=True)
class Demands:
    """What a pod demands of its node. ``terms`` is None where any will do; otherwise one of them must hold.

    ``understood`` is False where there is more of it than is read: then no node is for it.
    """

    selector: tuple[tuple[str, str], ...] = ()
    terms: tuple[_Term, ...] | None = None
    tolerations: tuple[_Toleration, ...] = ()
    understood: bool = True

    @property
    def host(self) -> bool:
        """Whether the pod's author chose a host by its name."""
        return any(key == HOSTNAME for key, _ in self.selector)

    @property
    def length(self) -> int:
        """How many characters it holds, roughly."""
        kept = self.selector, self.terms, self.tolerations
        return len(repr(kept)) if any(kept) else 0

    def allow(self, name: str, labels: Mapping[str, str], taints: Iterable[Taint]) -> bool:
        """Whether a node is one for the pod, by its labels and its taints."""
        return (
            self.understood
            and all(labels.get(key) == value for key, value in self.selector)
            and (self.terms is None or any(term.holds(name, labels) for term in self.terms))
            and all(map(self.tolerate, taints))
        )

    def tolerate(self, taint: Taint) -> bool:
        """Whether the pod may go to a node with ``taint``."""
        return any(toleration.covers(taint) for toleration in self.tolerations)


ANY_NODE: Final = Demands()
_NO_NODE: Final = Demands(understood=False)


def demands_of(pod: Json, *, bound: bool) -> Demands:
    """Return what a pod demands of its node; ``bound`` where the host that it selects is not its author's choice.

    A toleration that ends after some seconds counts for nothing: a trial would be put off its node again.
    """
    spec = at(pod, "spec")
    selects = at(spec, "nodeSelector")
    selector = selects if isinstance(selects, Mapping) else {}
    needs = at(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    tolerates = [
        toleration for toleration in mappings(spec, "tolerations") if at(toleration, "tolerationSeconds") is None
    ]
    parts = len(selector) + len(tolerates) + sum(1 + len(list(_expressions(term))) for term in mappings(needs))
    values = sum(len(_values(expression)) for term in mappings(needs) for expression in _expressions(term))
    if parts + values > _MOST_PARTS:
        return _NO_NODE
    demands = Demands(
        selector=tuple(
            sorted((_word(key), _word(value)) for key, value in selector.items() if not (bound and key == HOSTNAME))
        ),
        terms=tuple(_term(term) for term in mappings(needs)) if isinstance(needs, list) else None,
        tolerations=tuple(_toleration(toleration) for toleration in tolerates),
    )
    return ANY_NODE if demands == ANY_NODE else demands


def _term(item: Mapping[str, Any]) -> _Term:
    of_labels, of_fields = (
        tuple(
            _Expression(_word(at(expression, "key")), _word(at(expression, "operator")), _values(expression))
            for expression in mappings(item, part)
        )
        for part in ("matchExpressions", "matchFields")
    )
    return _Term(of_labels, of_fields)


def _expressions(term: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from mappings(term, "matchExpressions")
    yield from mappings(term, "matchFields")


def _values(expression: Mapping[str, Any]) -> tuple[str, ...]:
    values = at(expression, "values")
    return tuple(_word(value) for value in values) if isinstance(values, list) else ()


def _toleration(item: Mapping[str, Any]) -> _Toleration:
    key, operator, value, effect = (_word(at(item, part) or "") for part in ("key", "operator", "value", "effect"))
    return _Toleration(key, operator, value, effect)


def _word(value: object) -> str:
    return value if isinstance(value, str) and len(value) <= _MOST_WORD else _NO_WORD


def _whole(value: str | None) -> int | None:
    digits = (value or "").removeprefix("-")
    return int(value or "") if digits.isascii() and digits.isdecimal() and len(digits) < len(str(2**63)) else None


def labels_of(node: Json) -> Mapping[str, str]:
    """Return a node's labels, as many as are read."""
    labels = at(node, "metadata", "labels")
    kept = sorted(labels.items())[:_MOST_LABELS] if isinstance(labels, Mapping) else ()
    return {key: value for key, value in kept if _word(key) == key and _word(value) == value}


def taints_of(node: Json) -> tuple[Sequence[Taint], bool]:
    """Return the taints that keep pods away, and whether they keep all away, whatever these tolerate.

    Nobody is sent where Kubernetes itself says that something is amiss, nor to a node with more taints than are read.
    """
    taints = [
        Taint(text(taint, "key"), text(taint, "value"), text(taint, "effect"))
        for taint in mappings(node, "spec", "taints")
        if text(taint, "effect") in _KEEPS_AWAY
    ]
    amiss = any(taint.key.startswith(_ILL) for taint in taints) or len(taints) > _MOST_TAINTS
    return taints[:_MOST_TAINTS], amiss
