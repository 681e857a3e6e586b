"""Links that lead from a page to code, tests and other files of the repository, which the site does not have.

MkDocs calls this. Where ``repo_url`` of ``mkdocs.yml`` says where the repository is, such a link leads there. Without
it, the link is plain text.
"""

import posixpath
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

_LINK: Final = re.compile(r"(?<!!)\[([^\[\]]*)\]\((\.\./[^)\s]*)\)")
_OUTSIDE: Final = "../"


def on_page_markdown(markdown: str, *, page: "Page", config: "MkDocsConfig", **_others: object) -> str:
    """Return the text of ``page`` without relative links that leave the folder of the pages."""
    here = posixpath.dirname(page.file.src_uri)

    def led(found: re.Match[str]) -> str:
        text, target = found.groups()
        path, sharp, heading = target.partition("#")
        from_docs = posixpath.normpath(posixpath.join(here, path))
        if not from_docs.startswith(_OUTSIDE):
            return found.group()
        if not config.repo_url:
            return text
        return f"[{text}]({config.repo_url.rstrip('/')}/blob/HEAD/{from_docs.removeprefix(_OUTSIDE)}{sharp}{heading})"

    return _LINK.sub(led, markdown)
