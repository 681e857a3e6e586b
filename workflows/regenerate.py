"""Write the YAML beside each example again: ``python -m workflows.regenerate``."""

import importlib
from pathlib import Path

from hera.workflows import Workflow

EXAMPLES = (
    "composed_sweep",
    "deadline_sweep",
    "decorated_function",
    "demo",
    "digits_sweep",
    "elastic_keras_sweep",
    "elastic_sweep",
    "flowcon2_sweep",
    "mixed_sweep",
    "pace_sweep",
    "pipeline",
    "target_sweep",
    "vae_sweep",
)


def workflow_of(example: str) -> Workflow:
    """Return the workflow that an example exposes as ``w``."""
    workflow: Workflow = importlib.import_module(f"workflows.{example}").w
    return workflow


def yaml_path(example: str) -> Path:
    """Return where the YAML of an example is kept."""
    return Path(__file__).with_name(f"{example}.yaml")


def main() -> None:
    """Write every example's YAML."""
    for example in EXAMPLES:
        yaml_path(example).write_text(workflow_of(example).to_yaml())


if __name__ == "__main__":
    main()
