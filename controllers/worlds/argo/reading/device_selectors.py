"""Which devices a DeviceClass selects, as far as its expressions are plain. Whatever they say is untrusted.

Kubernetes evaluates them in its Common Expression Language. Read here is what the classes of drivers consist of:
comparisons of the driver and of attributes with words, numbers and truth values, joined by ``&&``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

Value = str | int | bool
_MOST_TEXT: Final = 2048
_MOST_TERMS: Final = 32
_WORD: Final = r"""(?:'[^'"\\&]*'|"[^'"\\&]*")"""
_TERM: Final = re.compile(
    rf"device\.(?:(?P<driver>driver)|attributes\[(?P<domain>{_WORD})\](?:\.(?P<plain>\w+)|\[(?P<quoted>{_WORD})\]))"
    rf"\s*(?P<operator>==|!=)\s*(?P<value>{_WORD}|-?\d{{1,18}}|true|false)"
)


@dataclass(frozen=True, slots=True)
class AttributeComparison:
    """What one comparison holds of: the ``attribute`` as ``domain/name``, empty for the driver."""

    attribute: str
    equal: bool
    value: Value

    def holds(self, driver: str, attributes: Mapping[str, Value]) -> bool:
        """Whether a device of ``driver`` is selected; Kubernetes selects none that lacks the attribute."""
        found = attributes.get(self.attribute) if self.attribute else driver
        if found is None or type(found) is not type(self.value):
            return False
        return (found == self.value) is self.equal


def comparisons_in(expression: str) -> tuple[AttributeComparison, ...] | None:
    """Return the comparisons that must all hold; None where an expression says more than is read."""
    if len(expression) > _MOST_TEXT:
        return None
    terms = expression.split("&&")
    if len(terms) > _MOST_TERMS:
        return None
    found = [_TERM.fullmatch(term.strip()) for term in terms]
    return tuple(_comparison(match) for match in found if match) if all(found) else None


def _comparison(match: re.Match[str]) -> AttributeComparison:
    value, attribute = match["value"], ""
    if not match["driver"]:
        attribute = f"{match['domain'][1:-1]}/{match['plain'] or match['quoted'][1:-1]}"
    if value[0] in "'\"":
        read: Value = value[1:-1]
    else:
        read = value == "true" if value in {"true", "false"} else int(value)
    return AttributeComparison(attribute, match["operator"] == "==", read)
