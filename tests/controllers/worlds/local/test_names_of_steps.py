"""Steps of any name get files and control groups of their own."""

from controllers.worlds.local.jobs import file_name
from controllers.worlds.local.shares.base import checked_name


def test_an_ordinary_name_stays_as_it_is() -> None:
    assert file_name("vae-1-00.vae.t007") == "vae-1-00.vae.t007"
    assert file_name("wf[0].train(1:b c)") == "wf-0-.train-1-b-c-"


def test_names_that_are_not_ascii_or_too_long_can_name_groups_and_are_told_apart() -> None:
    names = ["wf[0].train(0:größe)", "wf[0].train(0:größé)", "日本", "日木", "x" * 300, "x" * 301, "\udcff"]
    found = [file_name(name) for name in names]
    assert len(set(found)) == len(names)
    assert [checked_name(f"{name}.12") for name in found] == [f"{name}.12" for name in found]
