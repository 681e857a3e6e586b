from controllers.policies.registry import POLICIES
from tests.controllers.policies.policies_page import PAGE, tables, with_tables

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_page_has_every_table_and_each_is_what_specon_policies_tells() -> None:
    missing = [name for name in tables() if f"<!-- table: {name} -->" not in TEXT]
    assert missing == [], "the page lacks the marks of these tables"
    assert with_tables(TEXT) == TEXT, "run: python -m tests.controllers.policies.policies_page"


def test_the_page_has_a_section_for_every_policy() -> None:
    assert [name for name in POLICIES if f"## `{name}`\n" not in TEXT] == []
