"""The templates of trials in a workflow manifest, and the containers in them."""

from collections.abc import Iterator, Mapping
from typing import Any

from controllers.core.labels import LABEL_SWEEP

Manifest = Mapping[str, Any]


def trial_templates(manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Yield the templates of trials, each of which has a container or a script."""
    for template in (manifest.get("spec") or {}).get("templates") or []:
        marks = (template.get("metadata") or {}).get("labels") or {}
        if LABEL_SWEEP in marks and (template.get("container") or template.get("script")):
            yield template


def program(template: Manifest) -> dict[str, Any]:
    """Return the container or script of a trial's template."""
    found: dict[str, Any] = template.get("container") or template["script"]
    return found


def variable(template: Manifest, name: str) -> str:
    """Return the plain value of an environment variable, empty where it has none."""
    values = (entry.get("value") for entry in program(template).get("env") or [] if entry.get("name") == name)
    return str(next(values, None) or "")


def sweep_of(template: Manifest) -> str:
    """Return the name of the sweep that a trial's template belongs to."""
    return str(template["metadata"]["labels"][LABEL_SWEEP])
