"""What a platform grants its namespaces is read from a file, and every mistake in it is named at once."""

from pathlib import Path

import pytest

from controllers.cluster.namespace_terms import read_terms
from controllers.cluster.settings import ControllerSettingsError
from controllers.policies.arbiter import NamespaceTerms


def terms(tmp_path: Path, text: str) -> dict[str, NamespaceTerms]:
    file = tmp_path / "shares.yaml"
    file.write_text(text)
    return dict(read_terms(file))


def test_weights_priorities_and_quotas_are_read_as_kubernetes_writes_amounts(tmp_path: Path) -> None:
    read = terms(
        tmp_path,
        """
namespaces:
  vision: {weight: 2, priority: 5, quota: {cpu: 500m, memory: 64Gi, nvidia.com/gpu: 8}}
  text:
  "*": {quota: {nvidia.com/gpu: 0}}
""",
    )
    assert read == {
        "vision": NamespaceTerms(2.0, 5, 0.5, 64 * 2**30, (("nvidia.com/gpu", 8),)),
        "text": NamespaceTerms(),
        "*": NamespaceTerms(quota_devices=(("nvidia.com/gpu", 0),)),
    }


def test_every_mistake_is_named(tmp_path: Path) -> None:
    with pytest.raises(ControllerSettingsError) as raised:
        terms(
            tmp_path,
            """
namespaces:
  a: {weight: 0, priority: high, colour: red}
  b: {weight: true, quota: {cpu: lots, disk: 3}}
  c: 7
  d: {quota: [1]}
""",
        )
    told = str(raised.value)
    for part in (
        "a: 'colour' is none of",
        "a: weight 0",
        "a: priority 'high'",
        "b: weight True",
        "b: quota of cpu 'lots'",
        "b: quota of 'disk'",
        "c: 7 is no mapping",
        "d: quota [1]",
    ):
        assert part in told


@pytest.mark.parametrize("text", ["[1]", "namespaces: [a]", "spaces: {}", "{", "7"])
def test_what_is_no_such_file_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ControllerSettingsError, match="--shares"):
        terms(tmp_path, text)


def test_an_empty_mapping_grants_everybody_the_same(tmp_path: Path) -> None:
    assert terms(tmp_path, "namespaces: {}") == {}
