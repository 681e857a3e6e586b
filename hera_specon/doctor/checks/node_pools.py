"""Whether nodes come by themselves, as far as the labels of those that are there tell."""

from collections.abc import Iterator
from typing import Final

from controllers.worlds.argo.reading.demands import labels_of
from controllers.worlds.argo.reading.node_kinds import KARPENTER, NOTHING_GIVEN
from hera_specon.doctor.facts import ServerFacts, Unread
from hera_specon.doctor.findings import Finding, ok

_SUBJECT: Final = "nodes that come"
_MOST_NAMED: Final = 5


def check_node_pools(facts: ServerFacts) -> Iterator[Finding]:
    """Yield what is known of nodes that an autoscaler can add; nothing where nodes cannot be listed."""
    if isinstance(facts.nodes, Unread):
        return
    labelled = [labels_of(dict(node)) for node in facts.nodes]
    made = sorted({labels[KARPENTER] for labels in labelled if labels.get(KARPENTER)})
    kinds = sorted({name for labels in labelled if (name := NOTHING_GIVEN.of(labels).name)})
    if made:
        yield ok(_SUBJECT, f"Karpenter adds some of the pools {_listed(made)}")
        return
    of = f" of the kinds {_listed(kinds)}" if kinds else ""
    how = "one trial that finds no room tries it, or the controller's --node-kinds says it"
    yield ok(_SUBJECT, f"no label tells whether an autoscaler adds some{of}: {how}")


def _listed(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
